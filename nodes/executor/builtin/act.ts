/** Sends the commands of built-in actions. */
import type { Outcome } from '../../../gateway/ports.ts'
import { type ActionCall, principalOf } from '../../../protocol/actions/invocation.ts'
import type { Command, Kind } from '../../../protocol/entry.ts'
import type { CommandInput, CommandName, CommandReply } from '../../../protocol/queries/commands.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import type { Called, Service } from './builtin.ts'

/**
 * Returns the id and the origin of the command that a job sends. The origin contains the principal
 * on whose behalf the action is called. Repeated attempts of a job send the same command id, so the
 * command takes effect once.
 */
export const sentBy = (
  { world }: Service,
  { job, call, name }: Called,
): Pick<Command, 'command_id' | 'origin'> => ({
  command_id: `tool:${job.id}`,
  origin: {
    at: world.now(),
    principal: principalOf(call.actor, name),
    credential: {
      type: 'internal',
      id: job.session_id ?? job.id,
      ...(name !== undefined && { name }),
    },
  },
})
/** Sends a command as the principal of the call. */
export async function act<K extends Kind, N extends CommandName<K>>(
  service: Service,
  called: Called,
  to: AddressOf<K>,
  name: N,
  input: CommandInput<K, N>,
): Promise<Outcome<CommandReply<K, N>>> {
  return await service.world.command({ ...to, ...sentBy(service, called), name, input })
}

/**
 * Returns whether the parameters were rendered by a step, and may therefore contain strings in
 * place of other values.
 */
export const hasTexts = ({ origin }: Pick<ActionCall, 'origin'>): boolean =>
  origin === 'loop_action_step'
