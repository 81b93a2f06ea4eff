/** Sends the commands by which built-in tools act for an agent. */
import type { Outcome } from '../../../gateway/ports.ts'
import type { Kind } from '../../../protocol/entry.ts'
import type { CommandInput, CommandName, CommandReply } from '../../../protocol/queries/commands.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import type { Called, Service } from './builtin.ts'

/**
 * Sends a command as the agent. Repeated attempts of a job send the same command id, so the command
 * takes effect once.
 */
export async function act<K extends Kind, N extends CommandName<K>>(
  { world }: Service,
  { job, call, agent }: Called,
  to: AddressOf<K>,
  name: N,
  input: CommandInput<K, N>,
): Promise<Outcome<CommandReply<K, N>>> {
  return await world.command({
    ...to,
    command_id: `tool:${job.id}`,
    name,
    input,
    origin: {
      at: world.now(),
      principal: { type: 'agent', id: call.actor.principal_id, name: agent },
      credential: { type: 'internal', id: job.session_id ?? job.id, name: agent },
    },
  })
}
