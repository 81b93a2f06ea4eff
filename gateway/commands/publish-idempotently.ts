/**
 * Publishes source events under deduplication keys. A key that the project's `events` actor may no
 * longer have is looked up in a view, which still has it (K1, K2 of protocol/events/sources.ts).
 */
import type { Origin } from '../../protocol/entry.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { EventAccepted } from '../../protocol/events/rows.ts'
import type { Published, Recalled, ServicePublication } from '../../protocol/events/sources.ts'
import type { CommandReply } from '../../protocol/queries/commands.ts'
import type { Answer } from '../http/respond.ts'
import type { Outcome, World } from '../ports.ts'

/** Time in milliseconds within which one key publishes at most one event. */
const DAY_MS = 86_400_000
/**
 * Maximum number of queries to the view. A second query is needed only when the actor has started
 * several new generations of keys during the first query.
 */
const MAX_QUERIES = 5

/**
 * Reads from a view the ids of the events that were published under these keys within the last day.
 */
const rememberedIn = (
  world: Pick<World, 'view' | 'now'>,
  project: string,
  keys: readonly string[],
) => world.view(project, 'published_keys', { keys, since: world.now() - DAY_MS })

/**
 * Repeats the command until the `events` actor can decide which events are duplicates. Each repeat
 * contains a view's answer (`Recalled`) about the keys that the actor may no longer have. Returns
 * `service_unavailable` if the actor still cannot decide after `MAX_QUERIES` queries.
 * @param send sends the command, under the same command id each time.
 * @param first the outcome of an earlier send, if any.
 */
export async function publishIdempotently<R extends Pick<Published, 'unsure'>>(
  world: Pick<World, 'view' | 'now'>,
  project: string,
  send: (recalled?: Recalled) => Promise<Outcome<R>>,
  first?: Outcome<R>,
): Promise<Outcome<R>> {
  let outcome = first ?? (await send())
  for (let i = 0; i < MAX_QUERIES; i++) {
    if (isRefusal(outcome)) return outcome
    const { unsure } = outcome.reply
    if (!unsure) return outcome
    const found = await rememberedIn(world, project, unsure.keys)
    if (isRefusal(found)) return found
    outcome = await send({ generation: unsure.generation, asked: unsure.keys, ids: found.ids })
  }
  return isRefusal(outcome) || !outcome.reply.unsure ? outcome : refuse('service_unavailable')
}

/**
 * Publishes an event of the service itself.
 * @param prefix prefix of the command id, which names the part of the service that publishes.
 */
export function publishEvent(
  world: Pick<World, 'command' | 'id' | 'view' | 'now'>,
  project: string,
  prefix: string,
  publication: ServicePublication,
  origin: Origin,
): Promise<Outcome<CommandReply<'events', 'source.publish'>>> {
  const command = {
    project,
    kind: 'events',
    id: project,
    command_id: `${prefix}:${world.id('source_event')}`,
    name: 'source.publish',
    origin,
  } as const
  return publishIdempotently(world, project, (recalled) =>
    world.command({ ...command, input: { ...publication, ...(recalled && { recalled }) } }),
  )
}
/** Answers a request whose event was published, or had been published before (`deduped`). */
export const acceptedEvent = (source_event_id: string, deduped?: boolean): Answer => ({
  status: 202,
  body: {
    source_event_id,
    status: 'accepted',
    ...(deduped && { deduped }),
  } satisfies EventAccepted,
})

/**
 * Returns the id of the event that was published under the given key within the last day; undefined
 * if no event was published under the key.
 */
export async function publishedUnder(
  world: Pick<World, 'ask' | 'view' | 'now'>,
  project: string,
  key: string,
): Promise<string | undefined | Refusal> {
  const known = await world.ask({ project, kind: 'events', id: project }, 'published', { key })
  if (known !== null) return known
  const found = await rememberedIn(world, project, [key])
  return isRefusal(found) ? found : (found.ids[0] ?? undefined)
}
