/** Sends commands of a host to the actors of environments, on behalf of the service itself. */
import type { Outcome, World } from '../../gateway/ports.ts'
import { backoffMs, sleep } from '../../gateway/timing.ts'
import type { EnvironmentCommands } from '../../protocol/environments/commands.ts'
import { errors, isRefusal } from '../../protocol/errors.ts'
import { systemOrigin } from '../executor/system-origin.ts'

type Name = Exclude<keyof EnvironmentCommands, 'wake'>
type Input<N extends Name> = EnvironmentCommands[N]['input']
type Reply<N extends Name> = EnvironmentCommands[N]['reply']
/** The address of an environment. */
export interface EnvironmentAddress {
  readonly project: string
  readonly environment_id: string
}

/** Initial and maximum backoff before a command is repeated, in milliseconds. */
const RETRY = { first: 500, last: 10_000 } as const

export interface Actors {
  /** Sends a command. Resolves with `service_unavailable` when no owner answers in time. */
  send<N extends Name>(
    of: EnvironmentAddress,
    name: N,
    input: Input<N>,
    command_id?: string,
  ): Promise<Outcome<Reply<N>>>
  /** Sends a command repeatedly under one id, until it is decided or `over` returns true. */
  insist<N extends Name>(
    of: EnvironmentAddress,
    name: N,
    input: Input<N>,
    over: () => boolean,
  ): Promise<void>
}

/** Creates the command sender of a host. */
export function createActors(
  world: Pick<World, 'node' | 'now' | 'later' | 'newCommandId' | 'command'>,
): Actors {
  const send: Actors['send'] = (
    { project, environment_id },
    name,
    input,
    command_id = world.newCommandId(),
  ) =>
    world.command({
      project,
      kind: 'environment',
      id: environment_id,
      command_id,
      name,
      input,
      origin: systemOrigin(world, world.node),
    })
  return {
    send,
    insist: async (of, name, input, over) => {
      const command_id = world.newCommandId()
      for (let failures = 0; !over(); failures++) {
        const decided = await send(of, name, input, command_id)
        if (!isRefusal(decided) || !('retryable' in errors[decided.refused])) return
        await sleep(world, backoffMs(failures, RETRY))
      }
    },
  }
}
