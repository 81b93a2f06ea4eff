/** Sends commands that may need additional input before their actor can decide them. */
import type { Command } from '../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Outcome, World } from '../ports.ts'

/**
 * Returns additional input for repeating a command that the actor could not decide with the given
 * input. Returns undefined when the outcome is final. The actor stores nothing for an outcome that
 * is not final.
 */
export type Revise = (
  outcome: Outcome,
) => Promise<Readonly<Record<string, unknown>> | undefined | Refusal>

/**
 * Sends a command, and repeats it under the same id while `revise` supplies additional input.
 * Nothing was stored for the earlier attempts.
 */
export async function decideWithRevisions(
  world: Pick<World, 'commandRow'>,
  command: Command,
  revise: Revise,
): Promise<Outcome> {
  const outcome = await world.commandRow(command)
  const more = await revise(outcome)
  if (more === undefined) return outcome
  return isRefusal(more)
    ? more
    : decideWithRevisions(
        world,
        { ...command, input: Object.assign({}, command.input, more) },
        revise,
      )
}
