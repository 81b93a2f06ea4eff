/** Deliberate faults in the actor of sessions, which the checks of the simulation must detect. */
import type { SessionState } from '../../../actors/sessions/state.ts'
import { jobOf } from '../../../actors/sessions/turns/jobs.ts'
import type { Plant } from '../simulation.ts'
import { type Arm, deciding } from './planted.ts'

type SessionArm = Arm<SessionState, { readonly job_id: string }>
/** Returns a fault that replaces the handling of one command of sessions. */
const planted = (
  name: string,
  seed: number,
  command: string,
  replaced: (arm: SessionArm) => SessionArm,
): Plant => ({ name, seed, kinds: (kinds) => deciding(kinds, 'session', command, replaced) })

export const sessionPlants: readonly Plant[] = [
  planted(
    'starts another turn for a used key',
    2,
    'agent.invoke',
    (arm) => (state, input, cause) => arm({ ...state, keys: [] }, input, cause),
  ),
  planted('loses the results of tools', 23, 'job.settled', (arm) => (state, input, cause) => {
    const found = jobOf(state, input.job_id)
    return found && 'call' in found ? { events: [], reply: undefined } : arm(state, input, cause)
  }),
  planted(
    'repeats a tool call after a nudge',
    101,
    'session.nudge',
    (arm) => (state, input, cause) => {
      const ready = (
        calls: NonNullable<SessionState['turns'][string]['work']['segment']>['calls'],
      ) =>
        Object.fromEntries(
          Object.entries(calls).map(([id, call]) => [
            id,
            call.state === 'job' ? { ...call, state: 'ready' as const } : call,
          ]),
        )
      const turns = Object.fromEntries(
        Object.entries(state.turns).map(([id, turn]) => [
          id,
          turn.work.segment
            ? {
                ...turn,
                work: {
                  ...turn.work,
                  segment: { ...turn.work.segment, calls: ready(turn.work.segment.calls) },
                },
              }
            : turn,
        ]),
      )
      return arm({ ...state, turns }, input, cause)
    },
  ),
]
