/**
 * Deduplication keys at thousands of events per second. Invariants: a repeat within a day publishes
 * nothing, even if the `events` actor (the matcher) no longer stores the key, and no event is
 * refused.
 */
import t from 'tap'
import type { Cause } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import { publish } from '../../../actors/events/publish.ts'
import { initialSources } from '../../../actors/events/state.ts'
import { publishIdempotently } from '../../../gateway/commands/publish-idempotently.ts'
import type { Outcome } from '../../../gateway/ports.ts'
import {
  defaultTriggerLimits,
  type Published,
  type Recalled,
  type SourcesEvent,
} from '../../../protocol/events/sources.ts'
import { START } from '../../support/given.ts'

const actor = eventsActor(defaultTriggerLimits)
const DAY_MS = 86_400_000

/** The matcher of a project, with a stub of the view that stores the deduplication keys. */
class Place {
  state = initialSources()
  now = START
  questions = 0
  #count = 0
  readonly #view = new Map<string, { id: string; at: number }>()
  send(dedup_key: string, recalled?: Recalled): Published {
    const cause = { at: this.now, mint: () => `sevt_${++this.#count}` } as unknown as Cause
    const { events, reply } = publish(
      this.state,
      {
        event_type: 'order.paid',
        source_kind: 'custom',
        source_id: 's',
        event: {},
        meta: {},
        depth: 0,
        dedup_key,
        ...(recalled && { recalled }),
      },
      cause,
      defaultTriggerLimits,
    )
    for (const event of events) {
      this.state = actor.evolve['source.published'](
        this.state,
        event as Extract<SourcesEvent, { type: 'source.published' }>,
        this.now,
      )
      if (event.type === 'source.published')
        this.#view.set(dedup_key, { id: event.id, at: this.now })
    }
    return reply as Published
  }
  /**
   * Publishes an event as a gateway does.
   * @param between is called after each query of the view, before the next attempt.
   */
  async publish(key: string, between = () => {}): Promise<Outcome> {
    const view = async (
      _: string,
      __: string,
      { keys, since }: { keys: readonly string[]; since: number },
    ) => {
      this.questions++
      const ids = keys.map((one) => {
        const found = this.#view.get(one)
        return found && found.at > since ? found.id : null
      })
      between()
      return { ids }
    }
    return publishIdempotently(
      { view: view as never, now: () => this.now },
      'prj_1',
      async (recalled) => ({
        reply: this.send(key, recalled),
      }),
    )
  }
}
const idOf = (outcome: Outcome) => ('refused' in outcome ? outcome : (outcome.reply as Published))

t.test('at 5,000 keys a second, no event is duplicated or lost', async (t) => {
  const place = new Place()
  const first = new Map<string, string>()
  const odd: unknown[] = []
  let seed = 1
  const random = (n: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % n
  }
  for (let i = 0; i < 120_000; i++) {
    if (i % 5 === 0) place.now++
    const key = i > 0 && random(20) === 0 ? `k${random(i)}` : `k${i}`
    const answer = idOf(await place.publish(key))
    const id = 'source_event_id' in answer ? answer.source_event_id : ''
    const known = first.get(key)
    if (
      id === '' ||
      (known !== undefined && (known !== id || !('deduped' in answer))) ||
      (known === undefined && 'deduped' in answer)
    )
      odd.push([i, key, answer, known])
    if (known === undefined) first.set(key, id)
  }
  t.strictSame(odd.slice(0, 3), [])
  t.ok(
    place.questions > 0 &&
      Object.keys(place.state.keys.young).length + Object.keys(place.state.keys.old).length <=
        60_000,
  )
})

t.test('a key that is used while the view is queried is not used again', async (t) => {
  const place = new Place()
  for (let i = 0; i < 70_000; i++) place.send(`k${i}`)
  let rival: unknown
  const answer = idOf(
    await place.publish('late', () => {
      rival ??= place.send('late', {
        generation: place.state.keys.generation,
        asked: ['late'],
        ids: [null],
      })
    }),
  )
  t.match(rival, { source_event_id: String, deduped: undefined })
  t.match(answer, { source_event_id: (rival as Published).source_event_id, deduped: true })
  let pushed = 0
  const slow = idOf(
    await place.publish('k5', () => {
      if (pushed++ === 0)
        for (let i = 0; i < 65_000; i++)
          place.send(`n${i}`, {
            generation: place.state.keys.generation,
            asked: [`n${i}`],
            ids: [null],
          })
    }),
  )
  t.match(slow, { deduped: true })
  t.equal(pushed, 2, 'the matcher was too far to believe the first answer')
})

t.test('few keys need no query, and a key is free again after a day', async (t) => {
  const place = new Place()
  for (let i = 0; i < 1000; i++) await place.publish(`k${i}`)
  t.match(idOf(await place.publish('k1')), { deduped: true })
  t.equal(place.questions, 0)
  for (let i = 0; i < 70_000; i++) place.send(`n${i}`)
  place.now += DAY_MS - 1
  t.match(idOf(await place.publish('k1')), { deduped: true }, 'a view remembers')
  place.now += 2
  t.notOk('deduped' in idOf(await place.publish('k1')))
})
