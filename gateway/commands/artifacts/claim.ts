/**
 * Finds the lease that the header of an upload identifies, and binds the idempotency key of an
 * upload, before the body is read.
 */
import type { ArtifactRecord } from '../../../protocol/artifacts/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { queueOfLease } from '../../../protocol/jobs/lease-token.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import { sendNew } from '../../http/send.ts'
import type { World } from '../../ports.ts'
import { artifactAt, type Lease, toArtifact, type UploadContext } from './reservation.ts'

/**
 * Finds the lease with the given token. The token contains the name of its queue but not the shard,
 * so the queue of every shard is queried. If none of them has the lease, returns the refusal of a
 * queue that could not answer, or else `lease_lost`.
 */
export async function findLease(
  world: World,
  project: string,
  token: string,
): Promise<Lease | Refusal> {
  const name = queueOfLease(token)
  if (name === undefined) return refuse('lease_lost')
  const answers = await Promise.all(
    Array.from({ length: world.settings.shards }, async (_, shard) => {
      const queue: AddressOf<'queue'> = { project, kind: 'queue', id: `${shard}.${name}` }
      return { queue, facts: await world.ask(queue, 'lease', { lease_token: token }) }
    }),
  )
  for (const { queue, facts } of answers)
    if (facts && !isRefusal(facts)) return { token, queue, facts }
  const unknown = answers.map(({ facts }) => facts).find((facts) => facts && isRefusal(facts))
  return unknown && isRefusal(unknown) ? unknown : refuse('lease_lost')
}

/**
 * Binds an idempotency key to a new artifact. Returns undefined when the upload may begin, or the
 * record of the artifact that was uploaded under the key before. Refuses a key whose upload has not
 * ended, or whose artifact was deleted.
 * @param artifact_id id of the new artifact.
 */
export async function claimKey(
  context: Pick<UploadContext, 'world' | 'project' | 'origin'>,
  key: string,
  artifact_id: string,
): Promise<ArtifactRecord | undefined | Refusal> {
  const { world, project, origin } = context
  const id = world.id('artifact_key', `${project}/${origin.principal.id}/${key}`)
  const claim = (replaces?: string) =>
    sendNew(
      world,
      { project, kind: 'artifact_key', id },
      'artifact_key.claim',
      { artifact_id, ...(replaces !== undefined && { replaces }) },
      origin,
    )
  const first = await claim()
  if (isRefusal(first)) return first
  const bound = first.reply.artifact_id
  if (bound === artifact_id) return undefined
  const to = artifactAt(project, bound)
  const kept = await world.ask(to, 'content', {})
  if (kept && isRefusal(kept)) return kept
  if (kept?.state === 'ready') return kept.artifact
  if (kept && kept.state !== 'abandoned') return refuse('artifact_conflict')
  // Abandons the bound artifact, so that a delayed command of its upload cannot store it.
  const given = await toArtifact(context, to, 'artifact.abandon', { unreserved: true })
  if (isRefusal(given)) return given
  if (given.reply.state !== 'abandoned') return refuse('artifact_conflict')
  const second = await claim(bound)
  if (isRefusal(second)) return second
  return second.reply.artifact_id === artifact_id ? undefined : refuse('artifact_conflict')
}
