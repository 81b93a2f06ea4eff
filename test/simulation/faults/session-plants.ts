/** Deliberate faults of sessions, which the checks of the simulation must detect. */
import type { AnyActor, Decision } from '../../../actors/actor.ts'
import type { SessionState } from '../../../actors/sessions/state.ts'
import { jobOf } from '../../../actors/sessions/turns/jobs.ts'
import type { Event } from '../../../protocol/entry.ts'
import type { Plant } from '../simulation.ts'

type Arm = (
  state: SessionState,
  input: { readonly job_id: string },
  cause: never,
) => Decision<Event, unknown>
/** A fault that replaces one command of sessions. */
const planted = (name: string, command: string, replaced: (arm: Arm) => Arm): Plant => ({
  name,
  kinds: (kinds) => {
    const arm = kinds.session.decide[command] as unknown as Arm
    return {
      ...kinds,
      session: {
        ...kinds.session,
        decide: {
          ...kinds.session.decide,
          [command]: replaced(arm) as unknown as AnyActor['decide'][string],
        },
      },
    }
  },
})

export const sessionPlants: readonly Plant[] = [
  planted(
    'starts another turn for a used key',
    'agent.invoke',
    (arm) => (state, input, cause) => arm({ ...state, keys: [] }, input, cause),
  ),
  planted('loses the results of tools', 'job.settled', (arm) => (state, input, cause) => {
    const found = jobOf(state, input.job_id)
    return found && 'call' in found ? { events: [], reply: undefined } : arm(state, input, cause)
  }),
  planted('repeats a tool call after a nudge', 'session.nudge', (arm) => (state, input, cause) => {
    const ready = (calls: NonNullable<SessionState['turns'][string]['work']['segment']>['calls']) =>
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
  }),
]
