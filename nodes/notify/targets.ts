/**
 * Checks the principals in questions that steps and models ask, because no gateway has looked them
 * up. The targets and reviewers are looked up after the question is committed. A question that
 * refers to missing principals or roles is cancelled before anyone is notified.
 */
import type { World } from '../../gateway/ports.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import { systemOrigin } from '../executor/system-origin.ts'
import type { Notice } from '../host/deps.ts'

type Asking = Pick<World, 'ask' | 'command' | 'organization' | 'now' | 'node' | 'hash'>

/**
 * Looks up the targets of a new question.
 * @returns `valid` if the targets may be notified, `invalid` if the question was cancelled, and
 *   undefined if the targets cannot be looked up now.
 */
export async function checkTargets(
  world: Asking,
  { id, about, of, record }: Notice,
): Promise<'valid' | 'invalid' | undefined> {
  const { target_user_ids, resolution_policy, created_by } = record as Interaction
  // The targets of a client's question were checked when it was created.
  if (about !== 'requested' || created_by !== undefined) return 'valid'
  const targets = [
    ...new Set([...target_user_ids, ...(resolution_policy.review?.reviewer_user_ids ?? [])]),
  ]
  const here = await world.ask(
    { project: of.project, kind: 'project', id: of.project },
    'unknown_targets',
    { targets },
  )
  const unknown = isRefusal(here) || here.length === 0 ? here : await unknownOf(world, here)
  if (isRefusal(unknown)) return undefined
  if (unknown.length === 0) return 'valid'
  const done = await world.command({
    ...of,
    kind: 'interaction',
    command_id: world.hash(`targets\n${id}`).slice(0, 40),
    name: 'interaction.invalidate',
    input: { unknown },
    origin: systemOrigin(world, world.node),
  })
  return isRefusal(done) ? undefined : 'invalid'
}

/** Returns the ids that are not the principal of any organization key. */
async function unknownOf(
  world: Asking,
  ids: readonly string[],
): Promise<readonly string[] | Refusal> {
  const organization = world.organization()
  return await world.ask(
    { project: organization, kind: 'organization', id: organization },
    'unknown_principals',
    { ids },
  )
}
