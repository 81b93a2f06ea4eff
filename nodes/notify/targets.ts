/**
 * Questions of steps and models name principals that no gateway has looked up. When such a question was committed, its targets
 * and reviewers are looked up here; one that names principals or roles that do not exist is cancelled before anybody is notified.
 */
import type { World } from '../../gateway/ports.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import type { Notice } from '../host/deps.ts'

type Asking = Pick<World, 'ask' | 'command' | 'organization' | 'now' | 'node' | 'hash'>

/**
 * Look up the targets of a new question.
 * @returns `valid`: notify them; `invalid`: it was cancelled; undefined: this cannot be said now.
 */
export async function checkTargets(
  world: Asking,
  { id, about, of, record }: Notice,
): Promise<'valid' | 'invalid' | undefined> {
  const { target_user_ids, resolution_policy, created_by } = record as Interaction
  // What a client asks was checked when it was created.
  if (about !== 'requested' || created_by !== undefined) return 'valid'
  const targets = [
    ...new Set([...target_user_ids, ...(resolution_policy.review?.reviewer_user_ids ?? [])]),
  ]
  const here = (await world.ask(
    { project: of.project, kind: 'project', id: of.project },
    'unknown_targets',
    { targets },
  )) as readonly string[] | Refusal
  const unknown = isRefusal(here) || here.length === 0 ? here : await unknownOf(world, here)
  if (isRefusal(unknown)) return undefined
  if (unknown.length === 0) return 'valid'
  const done = await world.command({
    ...of,
    command_id: world.hash(`targets\n${id}`).slice(0, 40),
    name: 'interaction.invalidate',
    input: { unknown },
    origin: {
      at: world.now(),
      principal: { type: 'system', id: 'system' },
      credential: { type: 'internal', id: world.node },
    },
  })
  return isRefusal(done) ? undefined : 'invalid'
}

/** Those that are no principals of organization keys either. */
async function unknownOf(
  world: Asking,
  ids: readonly string[],
): Promise<readonly string[] | Refusal> {
  const organization = world.organization()
  return (await world.ask(
    { project: organization, kind: 'organization', id: organization },
    'unknown_principals',
    { ids },
  )) as readonly string[] | Refusal
}
