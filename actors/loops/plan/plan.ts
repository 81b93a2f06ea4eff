/**
 * The actor of the organization's concurrency slots: the single writer of the count of active loop
 * runs across all projects. Loops request slots only while the operator has set a limit
 * (actors/loops/slots.ts).
 *
 * Invariants:
 * P1. No slot is granted while `limit` or more slots are in use. Slots are granted in FIFO order.
 * P2. No run waits while a slot is free. Exceptions: for up to a minute after the limit was raised,
 *     and while more slots are free than one commit can grant (`MAX_GRANTED`).
 */
import type { Api } from '../../../protocol/api.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { SlotCommands, SlotEvent, SlotRequest } from '../../../protocol/loops/slots.ts'
import type { Actor, Decided } from '../../actor.ts'

/** Maximum number of slots that one commit grants. The rest follow in the next commit. */
const MAX_GRANTED = 50
/**
 * Milliseconds between checks for free slots while runs wait, because the operator may have raised
 * the limit.
 */
const CHECK_EVERY_MS = 60_000

interface PlanState {
  /** Loop and project of each run that holds a slot. */
  readonly given: Record<string, Omit<SlotRequest, 'run_id'>>
  line: readonly SlotRequest[]
  /** Unix milliseconds of the last check that found no free slot. */
  counted: number
}

/**
 * Creates the actor of the organization's slots.
 * @param limit maximum number of active runs in the organization; absent: no limit.
 */
export function planActor({
  plan_concurrency: limit = Infinity,
}: {
  readonly plan_concurrency?: number
}): Actor<PlanState, SlotEvent, Api, 'plan', SlotCommands> {
  const roomIn = ({ given }: PlanState): number => Math.max(0, limit - Object.keys(given).length)
  /**
   * Returns the events that grant slots to the first waiting runs.
   * @param capacity number of free slots, including a slot that the same decision frees.
   */
  const give = ({ line }: PlanState, capacity: number): SlotEvent[] =>
    line
      .slice(0, Math.min(capacity, MAX_GRANTED))
      .map((wanting) => ({ ...wanting, type: 'place.given' }))
  const done = (events: readonly SlotEvent[]): Decided<SlotEvent, undefined> => ({
    events,
    reply: undefined,
  })
  return {
    kind: 'plan',
    initial: () => ({ given: {}, line: [], counted: 0 }),
    decide: {
      'place.ask': (state, { run_id, loop_id, project }) => {
        if (getOwn(state.given, run_id) || state.line.some((waiting) => waiting.run_id === run_id))
          return done([])
        return done([
          {
            type: state.line.length === 0 && roomIn(state) > 0 ? 'place.given' : 'place.lined_up',
            run_id,
            loop_id,
            project,
          },
        ])
      },
      'place.return': (state, { run_id }) => {
        const had = getOwn(state.given, run_id) !== undefined
        if (!had)
          return done(
            state.line.some((waiting) => waiting.run_id === run_id)
              ? [{ type: 'place.freed', run_id }]
              : [],
          )
        return done([
          { type: 'place.freed', run_id },
          ...give(state, Math.max(0, limit - Object.keys(state.given).length + 1)),
        ])
      },
      wake: (state, _, { at }) => {
        const events = give(state, roomIn(state))
        return events.length > 0
          ? done(events)
          : { ...done([]), soft: [{ type: 'places.counted', at }] }
      },
    },
    evolve: {
      'place.given': (state, { run_id, loop_id, project }) => {
        state.given[run_id] = { loop_id, project }
        state.line = state.line.filter((waiting) => waiting.run_id !== run_id)
        return state
      },
      'place.lined_up': (state, { run_id, loop_id, project }) => {
        state.line = [...state.line, { run_id, loop_id, project }]
        return state
      },
      'place.freed': (state, { run_id }) => {
        delete state.given[run_id]
        state.line = state.line.filter((waiting) => waiting.run_id !== run_id)
        return state
      },
      'places.counted': (state, { at }) => Object.assign(state, { counted: at }),
    },
    react: {
      'place.given': ({ run_id, loop_id, project }) => [
        {
          tell: {
            to: { kind: 'loop', id: loop_id, project },
            name: 'place.give',
            input: { run_id },
          },
        },
      ],
    },
    ask: {
      /** The number of slots in use, and the number of runs that wait for a slot. */
      places: ({ given, line }) => ({ given: Object.keys(given).length, waiting: line.length }),
    },
    deadline: (state) =>
      state.line.length === 0 ? undefined : roomIn(state) > 0 ? 0 : state.counted + CHECK_EVERY_MS,
  }
}
