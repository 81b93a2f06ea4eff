/**
 * Helpers that scenarios share: small workflows, reading all pages of a list, and waiting for the
 * end of a run.
 */
import type { RowName } from '../../../protocol/api.ts'
import type { CallOptions, Service } from '../../support/service.ts'

type Open = Record<string, unknown>
/** A record from a response. Its type allows tests to read any field. */
export type Found = Record<string, never>
export const listOf = (answer: object, name = 'items'): Found[] =>
  (answer as Record<string, unknown>)[name] as Found[]
export const fieldsOf = ({ details }: { readonly details: object }): string[] =>
  listOf(details, 'fields').map(({ field }) => String(field))

export const sleeping = (duration = '1h', more: Open = {}): Open => ({
  steps: [{ id: 'nap', kind: 'sleep', config: { duration } }],
  ...more,
})
export const waiting = (signal = 'go', step: Open = {}, more: Open = {}): Open => ({
  steps: [
    { id: 'gate', kind: 'wait_for_event', config: { event_type: `signal.${signal}` }, ...step },
  ],
  ...more,
})
export const acting = (action = 'act', step: Open = {}, more: Open = {}): Open => ({
  steps: [{ id: 'call', kind: 'action', config: { action_name: action }, ...step }],
  ...more,
})
export const instant = (output: Open = { done: true }): Open => ({
  steps: [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }],
  output,
})
/**
 * Returns a workflow whose only step fails, even on a retry: the value of its condition is not a
 * boolean.
 */
export const failing = (more: Open = {}): Open => ({
  steps: [{ id: 'odd', kind: 'sleep', config: { duration: '0' }, if: 'meta.run_id' }],
  ...more,
})

export async function ended(s: Service, id: unknown): Promise<Found> {
  await s.follow('run.events', { id }, () => false)
  return s.ok('run.get', { id })
}
/** Returns the types of the first 200 events of a run's timeline. */
export const timelineOf = async (s: Service, id: unknown): Promise<string[]> =>
  listOf(await s.ok('run.events', { id, limit: 200 })).map((event) => String(event['event_type']))

/**
 * Reads the items of all pages of a list.
 * @throws {Error} when a page has more items than `limit`, or fewer although more pages follow.
 */
export async function pages(
  s: Service,
  name: RowName,
  input: Open = {},
  limit = 2,
  options: CallOptions = {},
): Promise<Found[]> {
  const items: Found[] = []
  for (let cursor: unknown; ; ) {
    const page = await s.ok(
      name,
      { ...input, limit, ...(cursor !== undefined && { cursor }) },
      options,
    )
    const part = listOf(page)
    if (part.length > limit)
      throw new Error(`${name} answered ${part.length} items for a limit of ${limit}`)
    if (page['has_more'] && part.length !== limit)
      throw new Error(`${name} says that more follow, but the page is not full`)
    items.push(...part)
    if (!page['has_more']) return items
    cursor = page['next_cursor']
  }
}
export const ids = (items: readonly object[]): string[] =>
  (items as readonly Found[]).map(({ id }) => String(id))
export const idsOf = (answer: object): string[] => ids(listOf(answer))

/** Returns a nested member of a body, by the names of the members. */
export const memberOf = (body: unknown, ...names: readonly string[]): unknown =>
  names.reduce<unknown>((value, name) => (value as Readonly<Record<string, unknown>>)[name], body)

/**
 * Repeats the request until the response satisfies the predicate, and returns the response.
 * @param what name of the condition, for the error.
 * @param every first interval between two requests, in milliseconds. Each interval is a tenth
 *   longer than the one before it, up to 100 ms, so that a long wait takes little processor time.
 * @throws {Error} after 30 s.
 */
export async function until<T>(
  ask: () => Promise<T>,
  satisfied: (answer: T) => boolean,
  what = 'the expected answer',
  every = 25,
): Promise<T> {
  let interval = every
  for (const end = Date.now() + 30_000; ; ) {
    const answer = await ask()
    if (satisfied(answer)) return answer
    if (Date.now() > end)
      throw new Error(
        `${what} did not come within 30 s; the last answer was ${JSON.stringify(answer)?.slice(0, 600)}`,
      )
    await new Promise((resolve) => setTimeout(resolve, interval))
    interval = Math.max(every, Math.min(interval * 1.1, 100))
  }
}
