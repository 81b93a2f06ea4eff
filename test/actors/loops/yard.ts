/**
 * A loop whose runs are stubs. Messages from the loop to a run update the run's stub. Tests end the
 * runs.
 */

import {
  type AnyActor,
  type Cause,
  type Decided,
  type Effect,
  evolve,
} from '../../../actors/actor.ts'
import { loopActor } from '../../../actors/loops/loop.ts'
import type { LoopState } from '../../../actors/loops/state.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { Chain } from '../../../protocol/events/sources.ts'
import { makeId } from '../../../protocol/ids.ts'
import type { LoopEvent } from '../../../protocol/loops/events.ts'

export const ORGANIZATION = 'org_1'
/** 2026-01-01T00:00:00.000Z */
export const START = 1_767_225_600_000
type Values = Record<string, unknown>

export class Yard {
  readonly actor: AnyActor
  readonly id: string
  state: LoopState
  now = START
  events: LoopEvent[] = []
  readonly runs = new Map<
    string,
    { state: 'waiting' | 'running' | 'leaving' | 'ended'; opening: Values; trigger: string }
  >()
  readonly began: string[] = []
  /** The halts that runs were told, in order. */
  readonly halts: { readonly run_id: string; readonly said: Values }[] = []
  #count: number

  /**
   * @param n distinguishes the ids of several yards.
   */
  constructor({
    n = 0,
    ...options
  }: { readonly n?: number; readonly plan_concurrency?: number } = {}) {
    this.actor = loopActor({ brand: 'Service', ...options })
    this.id = makeId('loop', 1, new Uint8Array(10).fill(n), 5)
    this.state = this.actor.initial() as LoopState
    this.#count = n * 10_000
  }

  send(name: string, input: Values = {}): unknown {
    const cause: Cause = {
      id: `c${++this.#count}`,
      at: this.now,
      self: { project: 'prj_1', kind: 'loop', id: this.id },
      shard: 0,
      principal: { type: 'user', id: 'user_1', name: 'Ada' },
      mint: (prefix) =>
        makeId(
          prefix,
          this.now,
          Uint8Array.from([++this.#count >> 8, this.#count & 255, 1, 2, 3, 4, 5, 6, 7, 8]),
          5,
        ),
      secret: () => 'secret',
    }
    const arm = this.actor.decide[name]
    if (!arm) throw new Error(name)
    const before = JSON.stringify(this.state)
    const decided = arm(this.state as never, input as never, cause)
    if (JSON.stringify(this.state) !== before)
      throw new Error(`${name} changed the state while deciding`)
    this.events = []
    if (isRefusal(decided)) return decided
    const { events, tells = [], reply, next } = decided as Decided<LoopEvent, unknown>
    this.events = [...events]
    for (const event of JSON.parse(JSON.stringify(events)) as LoopEvent[])
      this.state = evolve(this.actor, this.state, event, this.now) as LoopState
    if (next !== undefined && JSON.stringify(next) !== JSON.stringify(this.state))
      throw new Error(
        `${name} decided ${JSON.stringify(next)}, but its events give ${JSON.stringify(this.state)}`,
      )
    for (const { to, name: told, input: said } of tells) this.#tell(to.id, told, said as Values)
    return reply
  }
  #tell(id: string, name: string, said: Values): void {
    const run = this.runs.get(id)
    if (name === 'run.open') {
      const waits = said['queue_reason'] !== undefined
      this.runs.set(id, {
        state: waits ? 'waiting' : 'running',
        opening: said,
        trigger: String((said['source'] as Values)['trigger_id'] ?? ''),
      })
      if (!waits) this.began.push(id)
    } else if (name === 'run.begin' && run) {
      run.state = 'running'
      this.began.push(id)
    } else if (name === 'run.halt') {
      this.halts.push({ run_id: id, said })
    } else if (name === 'run.displace' && run && run.state !== 'ended')
      run.state = run.state === 'waiting' ? 'ended' : 'leaving'
  }
  create(more: Values = {}): Refusal | Values {
    return this.send('loop.create', {
      name: 'L',
      steps: [{ id: 'a', kind: 'sleep', config: { duration: '1h' } }],
      organization: ORGANIZATION,
      ...more,
    }) as Values
  }
  start(more: Values = {}): unknown {
    return this.send('loop.start', {
      run_id: makeId(
        'run',
        this.now,
        Uint8Array.from([++this.#count >> 8, this.#count & 255, 9, 9, 9, 9, 9, 9, 9, 9]),
        5,
      ),
      ...more,
    })
  }
  fire(key: string, id = `sevt_${++this.#count}`, depth = 0, chain?: Chain): unknown {
    return this.send('trigger.fire', {
      trigger_id: this.state.trigger_ids[key],
      source: {
        id,
        event_type: 'order.paid',
        source_kind: 'custom',
        source_id: 'x',
        event: {},
        meta: {},
        depth,
        ...(chain && { chain }),
        occurred_at: '',
      },
    })
  }
  end(id: string, status = 'completed'): void {
    const run = this.runs.get(id)
    if (run) run.state = 'ended'
    this.send('run.left', { run_id: id, status })
  }
  /** Returns the effects of the last command. */
  effects(): readonly Effect[] {
    return this.events.flatMap(
      (event) =>
        this.actor.react?.[event.type]?.(event as never, {
          project: 'prj_1',
          kind: 'loop',
          id: this.id,
        }) ?? [],
    )
  }
  in(...states: string[]): string[] {
    return [...this.runs].filter(([, { state }]) => states.includes(state)).map(([id]) => id)
  }
  /** Wakes the loop while a wake-up is due. Each wake-up advances the time by 1 ms. */
  settle(): void {
    for (let i = 0; (this.state.more_at ?? Infinity) <= this.now + 1; i++) {
      this.now++
      this.send('wake')
      if (i > 1000) throw new Error('the loop never rests')
    }
  }
}
