/**
 * Sessions of 10,000 messages, with and without compaction. Invariants: the stored state is
 * bounded, and the commits of a turn and the remembered replies are as small as in a young session.
 * Sizes are in characters of JSON.
 */
import t from 'tap'
import { type Cause, type Decided, defineActor } from '../../../actors/actor.ts'
import { type Remembered, recall, remember } from '../../../actors/sessions/history/remembered.ts'
import { sessionActor } from '../../../actors/sessions/session.ts'
import type { SessionState } from '../../../actors/sessions/state.ts'
import type { Event } from '../../../protocol/entry.ts'
import { prefixes } from '../../../protocol/ids.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { START } from '../../support/given.ts'
import { definition, message, say, tool, use } from './story.ts'

type Open = Record<string, unknown>
t.setTimeout(120_000)
const actor = defineActor(sessionActor({ brand: 'Service' }))
const sizeOf = (value: unknown): number => JSON.stringify(value).length

/** A session actor without a shard and without the slow checks of other tests. */
class Long {
  state = actor.initial() as SessionState
  readonly jobs: string[] = []
  /** The events of the current turn, up to the answer. */
  #events: Event[] = []
  #answer: () => unknown = () => undefined
  #count = 0
  readonly #definition

  constructor(compaction: { strategy: 'auto' | 'disabled'; threshold_tokens: number }) {
    this.#definition = definition([tool('act')], { compaction })
  }
  #do(name: string, input: Open): void {
    const mint: Cause['mint'] = (prefix) =>
      `${prefixes[prefix]}_${String(++this.#count).padStart(9, '0')}`
    const cause: Cause = {
      id: mint('job'),
      at: START + 1000 * this.#count,
      principal: { type: 'user', id: 'user_1' },
      shard: 0,
      self: { project: 'prj_1', kind: 'session', id: 'ses_1' },
      mint,
      secret: () => 'secret',
    }
    const decided = actor.decide[name]?.(this.state as never, input as never, cause)
    if (!decided || 'refused' in decided)
      throw new Error(`${name} was refused: ${JSON.stringify(decided)}`)
    const { events, tells = [], next, reply } = decided as Decided<Event, unknown>
    if (next !== undefined) this.state = next as SessionState
    this.#events.push(...events)
    const { state } = this
    if (typeof reply === 'function')
      this.#answer = () => (reply as (state: never) => unknown)(state as never)
    for (const { name: told, input: given } of tells)
      if (told === 'queue.enqueue') this.jobs.push((given as { job: { id: string } }).job.id)
  }
  #settle(content: readonly Open[] | undefined): void {
    const job_id = this.jobs.shift()
    if (job_id === undefined) throw new Error('nothing is queued')
    this.#do('job.settled', {
      job_id,
      attempt: 1,
      outcome: 'completed',
      result: content ? message(content) : { ok: true },
    })
  }
  /**
   * Runs a turn with one tool call, which adds four messages. The returned function returns the
   * size of the events of the turn.
   */
  turn(
    n: number,
    words = 'What is the state of the hosts, and which of them are not green?',
  ): () => number {
    this.#events = []
    this.#do('agent.invoke', {
      agent_ref: { id: 'agt_1' },
      input: { content: [say(words)], idempotency_key: `key ${String(n).padStart(9, '0')}` },
      place: {
        root: 'ses_1',
        generation: 0,
        session_key: 'default',
        agent_id: 'agt_1',
        agent_name: 'Bot',
      },
      definition: this.#definition,
    })
    this.#settle([use(`call ${n}`, 'act', { n: String(n).padStart(9, '0') })])
    this.#settle(undefined)
    this.#settle([say('All of them are green but the third one, which is being restarted.')])
    const events = this.#events
    if (this.state.compacting) this.#events = []
    if (this.state.compacting) this.#settle([say('The hosts were asked after; they are green.')])
    return () => sizeOf(events)
  }
  /** Returns the size of the newest reply that is remembered. */
  answered(): number {
    return sizeOf(this.#answer())
  }
}
const rest = ({ keys: _, ...others }: SessionState): number => sizeOf(others)
const TURNS = 2500

for (const [name, compaction, most] of [
  ['without compaction', { strategy: 'disabled', threshold_tokens: 1000 }, 1_200_000],
  ['with compaction', { strategy: 'auto', threshold_tokens: 4000 }, 150_000],
] as const)
  t.test(`a session of 10,000 messages ${name} is as small as a young one`, async (t) => {
    const session = new Long(compaction)
    let largest = 0
    let young = 0
    const [early, late]: [number[], number[]] = [[], []]
    for (let n = 1; n <= TURNS; n++) {
      const size = session.turn(n)
      if (n > 10 && n <= 110) early.push(size())
      if (n > TURNS - 100) late.push(size())
      if (n === 100) young = session.answered()
      if (n % 100 === 0) largest = Math.max(largest, rest(session.state))
    }
    t.ok(session.state.sequence >= 10_000, `${session.state.sequence} messages`)
    t.ok(largest < most, `its state has ${largest} characters at most`)
    t.ok(session.state.window.length <= limits.window.rows)
    const [first, last] = [Math.max(...early), Math.max(...late)]
    t.ok(
      last <= first * 1.02,
      `a turn commits ${last} characters; in the beginning it was ${first}`,
    )
    const answered = session.answered()
    t.ok(
      answered <= young * 1.02,
      `an answer that is remembered has ${answered} characters; in the beginning it was ${young}`,
    )
  })

t.test('a remembered reply does not contain the message', async (t) => {
  const session = new Long({ strategy: 'disabled', threshold_tokens: 1000 })
  session.turn(1, 'word '.repeat(20_000))
  t.ok(session.answered() < 3000, `${session.answered()} characters`)
})

t.test('the window also drops long messages, and starts with a message of a person', async (t) => {
  const session = new Long({ strategy: 'disabled', threshold_tokens: 1000 })
  for (let n = 1; n <= 60; n++) {
    session.turn(n, 'word '.repeat(20_000))
    const [first] = session.state.window as readonly TranscriptMessage[]
    if (
      session.state.size > limits.window.size ||
      first?.role !== 'user' ||
      first.content[0]?.type !== 'text'
    )
      t.fail(
        `turn ${n}: ${session.state.size} characters, beginning with ${JSON.stringify(first).slice(0, 200)}`,
      )
    if (
      session.state.size !==
      session.state.window.reduce((sum, { content }) => sum + sizeOf(content), 0)
    )
      t.fail(`turn ${n}: the size is not that of the rows`)
  }
  t.ok(
    session.state.window.length < 240 && session.state.window.length > 60,
    `${session.state.window.length} rows are shown`,
  )
})

t.test('the newest keys are remembered, and few others', async (t) => {
  let keys: Remembered<number> = []
  for (let n = 0; n < 20_000; n++) keys = remember(keys, String(n), n, 5000)
  t.equal(keys.reduce((sum, bucket) => sum + Object.keys(bucket).length, 0) <= 5000 + 2 * 128, true)
  t.strictSame(
    [19_999, 15_001, 15_000].map((n) => recall(keys, String(n))),
    [19_999, 15_001, 15_000],
  )
  t.equal(recall(keys, '1000'), undefined)
  t.equal(recall(remember([], '__proto__', 1, 10), '__proto__'), 1)
  t.equal(recall([{}], 'constructor'), undefined)
})
