/**
 * Publishes under a deduplication key that the project's matcher may have forgotten: a view still
 * has it (K1, K2 of protocol/events/sources.ts).
 */
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type { Published, Recalled } from '../../protocol/events/sources.ts'
import type { Outcome, World } from '../ports.ts'

/** Milliseconds within which a key publishes only once. */
const DAY = 86_400_000
/**
 * Maximum number of queries to the view. A second one is needed only when tens of thousands of keys
 * were used during the first.
 */
const QUESTIONS = 5

/** The events of the last day that a view has under these keys. */
const rememberedIn = (
  world: Pick<World, 'view' | 'now'>,
  project: string,
  keys: readonly string[],
) => world.view(project, 'published_keys', { keys, since: world.now() - DAY })

/**
 * Publishes until the matcher knows whether the events are duplicates.
 * @param send sends the command, with the keys that a view found.
 * @param first the outcome of the first send, if there was one.
 */
export async function publishIdempotently<R extends Pick<Published, 'unsure'>>(
  world: Pick<World, 'view' | 'now'>,
  project: string,
  send: (recalled?: Recalled) => Promise<Outcome<R>>,
  first?: Outcome<R>,
): Promise<Outcome<R>> {
  let outcome = first ?? (await send())
  for (let i = 0; i < QUESTIONS; i++) {
    if (isRefusal(outcome)) return outcome
    const { unsure } = outcome.reply
    if (!unsure) return outcome
    const found = await rememberedIn(world, project, unsure.keys)
    if (isRefusal(found)) return found
    outcome = await send({ generation: unsure.generation, asked: unsure.keys, ids: found.ids })
  }
  return isRefusal(outcome) || !outcome.reply.unsure ? outcome : refuse('service_unavailable')
}

/** The event that was published under a key within the last day; undefined: none. */
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
