/**
 * Limits on the runs that triggers start in response to events of runs. Invariant: a bounded number
 * of runs follows from one event, however loops trigger each other.
 */

import fc from 'fast-check'
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import type { SourcesState } from '../../../actors/events/state.ts'
import type {
  Chain,
  Overrun,
  Publication,
  TriggerLimits,
} from '../../../protocol/events/sources.ts'
import { given, type Scene, START } from '../../support/given.ts'

type Fires = Readonly<Record<string, readonly string[]>>
type Overruns = Readonly<Record<string, Overrun>>
interface Outcome {
  /** The number of runs that triggers started, by loop. */
  readonly started: Record<string, number>
  /** The reasons why loops were paused, by loop. */
  readonly paused: Record<string, string>
}

/**
 * Creates an `events` actor with loops that have a trigger for completed runs. The first loop also
 * has a trigger for `go`.
 */
const listening = (loops: number, limits: TriggerLimits): Scene<SourcesState> => {
  let scene = given<SourcesState>(defineActor(eventsActor(limits)))
  for (let n = 0; n < loops; n++)
    scene = scene.when('triggers.set', {
      loop_id: `loop_${n}`,
      version: 1,
      triggers: [
        { trigger_id: `trg_${n}`, event_type: 'run.completed' },
        ...(n === 0 ? [{ trigger_id: 'trg_go', event_type: 'go' }] : []),
      ],
    })
  return scene
}
const go = (id: string, depth = 0): Publication => ({
  event_type: 'go',
  source_kind: 'custom',
  source_id: 'x',
  id,
  event: {},
  meta: {},
  depth,
})
const ended = (run: number, depth: number, chain: Chain): Publication => ({
  event_type: 'run.completed',
  source_kind: 'loop_run',
  source_id: `run_${run}`,
  event: {},
  meta: { run_id: `run_${run}` },
  depth,
  chain,
})

/**
 * Publishes an event and all events that follow from it. Each run completes immediately after a
 * trigger has started it.
 * @param at returns the time of the n-th event, in Unix milliseconds.
 */
function follow(
  first: Scene<SourcesState>,
  publication: Publication,
  at: (n: number) => number = () => START,
): Outcome & { readonly scene: Scene<SourcesState> } {
  const [started, paused]: [Record<string, number>, Record<string, string>] = [{}, {}]
  const line = [publication]
  let scene = first
  let [runs, events] = [0, 0]
  for (let said = line.shift(); said; said = line.shift()) {
    const after = scene.when('source.publish', said, { at: at(events++) })
    scene = after
    const [event] = after.events
    for (const [loop_id, ids] of Object.entries((event?.['fires'] ?? {}) as Fires)) {
      if (said.depth > 8) continue
      started[loop_id] = (started[loop_id] ?? 0) + ids.length
      const { root, loops } = said.chain ?? { root: String(event?.['id']), loops: [] }
      for (const _ of ids)
        line.push(ended(++runs, said.depth + 1, { root, loops: [...loops, loop_id] }))
    }
    for (const [loop_id, { reason }] of Object.entries((event?.['overruns'] ?? {}) as Overruns)) {
      paused[loop_id] ??= reason
      scene = scene.when('triggers.set', { loop_id, version: 2 + events, triggers: [] })
    }
  }
  return { started, paused, scene }
}
const total = ({ started }: Outcome): number =>
  Object.values(started).reduce((sum, count) => sum + count, 0)

t.test('nineteen loops that start each other stop at the limit, and all are paused', async (t) => {
  const outcome = follow(listening(19, { per_root: 1000, per_minute: 10_000 }), go('sevt_root'))
  t.equal(total(outcome), 1000)
  t.equal(Object.keys(outcome.paused).length, 19)
  const [reason = ''] = Object.values(outcome.paused)
  const limit =
    'Triggers have started 1000 runs for the event sevt_root and the events that it caused; ' +
    '1000 are allowed. '
  t.equal(reason.slice(0, limit.length), limit)
  t.match(
    reason.slice(limit.length),
    /^The next run would be started by run\.completed, through loop_0 → loop_\d+ → /,
  )
})

t.test('for any loops and limits, no tree of runs exceeds its limit', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 3 }),
      async (loops, per_root, roots) => {
        let scene = listening(loops, { per_root, per_minute: 10_000 })
        for (let n = 0; n < roots; n++) {
          const outcome = follow(scene, go(`sevt_${n}`))
          scene = outcome.scene
          // The run that the root event starts is always allowed, but counts toward the limit.
          if (total(outcome) > per_root) return false
          if (Object.keys(outcome.paused).length > 0) break
        }
        return true
      },
    ),
    { numRuns: 60 },
  )
})

t.test('events of runs start a limited number of runs of a loop per minute', async (t) => {
  const limits = { per_root: 1000, per_minute: 20 }
  const cause = (n: number): Publication => ({ ...ended(n, 1, { root: `sevt_${n}`, loops: [] }) })
  let scene = listening(1, limits)
  const fires = (n: number, at: number) => {
    const after = scene.when('source.publish', cause(n), { at })
    scene = after
    return after.events[0]
  }
  for (let n = 0; n < 20; n++) t.match(fires(n, START), { fires: { loop_0: ['trg_0'] } })
  t.match(fires(20, START + 59_999), {
    fires: undefined,
    overruns: {
      loop_0: {
        trigger_ids: ['trg_0'],
        reason: /^Events of runs have started 20 runs of the loop within a minute; 20 are allowed/,
      },
    },
  })
  t.match(fires(21, START + 60_000), { fires: { loop_0: ['trg_0'] } })
})

t.test('events that no run caused are not limited, however many loops listen', async (t) => {
  let scene = listening(1, { per_root: 2, per_minute: 1 })
  for (let n = 1; n < 10; n++)
    scene = scene.when('triggers.set', {
      loop_id: `loop_${n}`,
      version: 1,
      triggers: [{ trigger_id: `trg_${n}`, event_type: 'go' }],
    })
  const { events } = scene.when('source.publish', go('sevt_1'))
  t.equal(Object.keys(events[0]?.['fires'] as Fires).length, 10)
})

t.test('a loop that must be paused receives the event with the reason', async (t) => {
  const scene = listening(1, { per_root: 1, per_minute: 1 })
  const { effects } = scene.when(
    'source.publish',
    ended(1, 1, { root: 'sevt_1', loops: ['loop_9'] }),
  )
  t.match(effects, [
    {
      tell: {
        to: { kind: 'loop', id: 'loop_0' },
        name: 'loop.stop',
        input: {
          trigger_ids: ['trg_0'],
          reason: /through loop_9 → loop_0\.$/,
          source: { event_type: 'run.completed', depth: 1, chain: { root: 'sevt_1' } },
        },
      },
    },
  ])
})
