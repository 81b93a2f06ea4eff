/**
 * Sends commands under new command ids. The actor therefore treats none of them as a repeat of an
 * earlier command.
 */
import type { Kind, Origin } from '../../protocol/entry.ts'
import type { CommandInput, CommandName, CommandReply } from '../../protocol/queries/commands.ts'
import type { AddressOf } from '../../protocol/queries/owners.ts'
import type { Outcome, World } from '../ports.ts'

/** Returns the address of the organization's actor. */
export function organizationAt(world: Pick<World, 'organization'>): AddressOf<'organization'> {
  const id = world.organization()
  return { project: id, kind: 'organization', id }
}

/** Sends a command under a new command id. */
export const sendNew = <K extends Kind, N extends CommandName<K>>(
  world: Pick<World, 'command' | 'newCommandId'>,
  { project, kind, id }: AddressOf<K>,
  name: N,
  input: CommandInput<K, N>,
  origin: Origin,
): Promise<Outcome<CommandReply<K, N>>> =>
  world.command({ project, kind, id, command_id: world.newCommandId(), name, input, origin })
