/** Sends commands that may need further input before their actor can decide them. */
import type { Command } from '../../protocol/entry.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { Outcome, World } from '../ports.ts'

/**
 * Returns the further input with which a command is repeated, if the actor could not decide it with
 * the given input. Undefined when the outcome is final. The actor has stored nothing for an outcome
 * that is not.
 */
export type Revise = (
  outcome: Outcome,
) => Promise<Readonly<Record<string, unknown>> | undefined | Refusal>

/**
 * Sends a command, and sends it again under the same id for as long as its preparation supplies
 * further input. Nothing was stored for the earlier attempts.
 */
export async function decide(
  world: Pick<World, 'commandRow'>,
  command: Command,
  revise: Revise,
): Promise<Outcome> {
  const outcome = await world.commandRow(command)
  const more = await revise(outcome)
  if (more === undefined) return outcome
  return isRefusal(more)
    ? more
    : decide(world, { ...command, input: Object.assign({}, command.input, more) }, revise)
}
