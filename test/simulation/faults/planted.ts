/** Replaces the handling of one command, for deliberate faults. */
import type { AnyActor, Cause, Decision } from '../../../actors/actor.ts'
import type { Event, Kind } from '../../../protocol/entry.ts'

type Kinds = Readonly<Record<Kind, AnyActor>>
/** The function that decides a command. */
export type Arm<S, I> = (state: S, input: I, cause: Cause) => Decision<Event, unknown>

/**
 * Returns the actors of all kinds, with the function that decides one command replaced.
 * @param replaced receives the original function and returns its replacement.
 */
export function deciding<S, I>(
  kinds: Kinds,
  kind: Kind,
  command: string,
  replaced: (arm: Arm<S, I>) => Arm<S, I>,
): Kinds {
  const actor = kinds[kind]
  const arm = actor.decide[command] as unknown as Arm<S, I>
  return {
    ...kinds,
    [kind]: {
      ...actor,
      decide: {
        ...actor.decide,
        [command]: replaced(arm) as unknown as AnyActor['decide'][string],
      },
    },
  }
}
