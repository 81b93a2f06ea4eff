/**
 * The places of the organization: the one writer of how many runs of loops are under way in all its projects together. It is asked
 * only while the operator has set a limit.
 *
 * Invariants:
 * P1. Runs with a place are at most as many as the limit allowed when they were given it; whoever comes first is first.
 * P2. Nobody waits while there is room, except for a minute after the limit was raised.
 */
import type { Api } from '../../../protocol/api.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import type { PlaceCommands, PlaceEvent, Wanting } from '../../../protocol/loops/places.ts'
import type { Actor, Decided } from '../../actor.ts'

/** Places that one commit hands out; the rest follow with the next. */
const GIVEN = 50
/** Milliseconds after which it is looked again whether there is room: its operator may have raised the limit. */
const AGAIN = 60_000

interface PlanState {
  /** Loops and projects by run. */
  readonly given: Record<string, Omit<Wanting, 'run_id'>>
  line: readonly Wanting[]
  /** When it was looked last whether there is room, Unix milliseconds. */
  counted: number
}

/** The actor of the places. @param limit runs under way in the organization; absent: any number. */
export function planActor({
  plan_concurrency: limit = Infinity,
}: {
  readonly plan_concurrency?: number
}): Actor<PlanState, PlaceEvent, Api, 'plan', PlaceCommands> {
  const roomIn = ({ given }: PlanState): number => Math.max(0, limit - Object.keys(given).length)
  /** Places for the first in the line. @param room as it will be. */
  const give = ({ line }: PlanState, room: number): PlaceEvent[] =>
    line.slice(0, Math.min(room, GIVEN)).map((wanting) => ({ ...wanting, type: 'place.given' }))
  const done = (events: readonly PlaceEvent[]): Decided<PlaceEvent, undefined> => ({
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
      /** How many places are given, and how many runs wait for one. */
      places: ({ given, line }) => ({ given: Object.keys(given).length, waiting: line.length }),
    },
    deadline: (state) =>
      state.line.length === 0 ? undefined : roomIn(state) > 0 ? 0 : state.counted + AGAIN,
  }
}
