/**
 * The commands that each kind of actor decides, by kind and name, with their inputs and replies: the
 * rows of the API that the actor handles, and the commands that no client sends.
 */

import type { Api } from '../api.ts'
import type { ChannelCommands, ChannelNameCommands } from '../channels/schema.ts'
import type { CommandsOf, Input, Reply } from '../contract.ts'
import type { Command, Kind } from '../entry.ts'
import type { Published, SourceCommands } from '../events/sources.ts'
import type {
  InteractionCommands,
  QueueCommands,
  RunCommands,
  WorkerCommands,
} from '../internal.ts'
import type { HandleCommands, LoopCommands } from '../loops/events.ts'
import type { PlaceCommands } from '../loops/places.ts'
import type { MemoryCommands } from '../memory/schema.ts'
import type { OrganizationCommands, ProjectCommands } from '../projects/configuration.ts'
import type { SessionCommands } from '../sessions/commands.ts'
import type { DeliveryCommands } from '../webhooks/delivery.ts'

/** The commands that no client sends. */
interface InternalCommands {
  organization: OrganizationCommands
  project: ProjectCommands
  run: RunCommands
  queue: QueueCommands
  worker: WorkerCommands
  interaction: InteractionCommands
  channel: ChannelCommands
  channel_name: ChannelNameCommands
  events: SourceCommands
  loop: LoopCommands
  trigger_handle: HandleCommands
  memory: MemoryCommands
  session: SessionCommands
  delivery: DeliveryCommands
  plan: PlaceCommands
}
/**
 * A row as a command. The sender of a command identifies the actor by its address, so path slots may
 * be absent from the input. Members that the gateway looks up are declared by the actor and
 * therefore not checked here.
 */
type RowCommands<K extends Kind> = {
  readonly [N in keyof CommandsOf<Api, K> & keyof Api]: {
    readonly input: Partial<Input<Api[N]>> & Readonly<Record<string, unknown>>
    readonly reply: Reply<Api[N]> & (N extends keyof AddedReplies ? AddedReplies[N] : unknown)
  }
}
/** Members of replies that the gateway reads and does not answer to the client. */
interface AddedReplies {
  'event.publish': Pick<Published, 'unsure'>
  'event.publish_many': Pick<Published, 'unsure'>
}
/** A kind without such commands is absent from `InternalCommands`. */
type InternalOf<K extends Kind> = K extends keyof InternalCommands ? InternalCommands[K] : unknown
type Commands = { readonly [K in Kind]: RowCommands<K> & InternalOf<K> }

type CommandOf<K extends Kind, N extends CommandName<K>> = Commands[K][N] & {
  input: unknown
  reply: unknown
}
/** Names of the commands that actors of a kind decide; for several kinds, those of all of them. */
export type CommandName<K extends Kind = Kind> = keyof Commands[K] & string
export type CommandInput<K extends Kind, N extends CommandName<K>> = CommandOf<K, N>['input']
/** The reply. In the JSON of another process, a reply of undefined is absent. */
export type CommandReply<K extends Kind, N extends CommandName<K>> = CommandOf<K, N>['reply']
/** A command whose name determines its input and reply. */
export interface NamedCommand<K extends Kind, N extends CommandName<K>>
  extends Omit<Command, 'kind' | 'name' | 'input'> {
  readonly kind: K
  readonly name: N
  readonly input: CommandInput<K, N>
}
