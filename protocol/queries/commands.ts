/**
 * The types of all commands, with their inputs and replies, by kind of actor and name. Commands are
 * the rows of the API that an actor handles, and the internal commands, which no client sends.
 */

import type { Api } from '../api.ts'
import type { ArtifactCommands, ArtifactKeyCommands, QuotaCommands } from '../artifacts/commands.ts'
import type { BlueprintCommands } from '../blueprints/events.ts'
import type { BindingCommands } from '../blueprints/stored.ts'
import type { ChannelCommands, ChannelNameCommands } from '../channels/schema.ts'
import type { CommandsOf, Input, Reply } from '../contract.ts'
import type { Command, Kind } from '../entry.ts'
import type {
  EnvironmentCommands,
  EnvironmentNameCommands,
  EnvironmentReplies,
} from '../environments/commands.ts'
import type { Published, SourceCommands } from '../events/sources.ts'
import type { InteractionCommands, QueueCommands, RunCommands } from '../internal.ts'
import type { LoopCommands } from '../loops/events.ts'
import type { HandleCommands } from '../loops/handles.ts'
import type { SlotCommands } from '../loops/slots.ts'
import type { MemoryCommands } from '../memory/schema.ts'
import type {
  PreferencesCommands,
  PreferencesReplies,
  SavedViewCommands,
} from '../preferences/schema.ts'
import type { OrganizationCommands, ProjectCommands } from '../projects/configuration.ts'
import type { BulkRequestCommands } from '../runs/bulk-request.ts'
import type { SessionCommands } from '../sessions/commands.ts'
import type { TableCommands, TableNameCommands, TableReplies } from '../tables/events.ts'
import type { DeliveryCommands } from '../webhooks/delivery.ts'
import type { WorkerCommands } from '../workers/commands.ts'

interface InternalCommands {
  organization: OrganizationCommands & QuotaCommands
  project: ProjectCommands & BindingCommands
  run: RunCommands
  bulk_request: BulkRequestCommands
  queue: QueueCommands
  worker: WorkerCommands
  interaction: InteractionCommands
  channel: ChannelCommands & BindingCommands
  channel_name: ChannelNameCommands
  events: SourceCommands
  loop: LoopCommands & BindingCommands
  trigger_handle: HandleCommands
  memory: MemoryCommands
  session: SessionCommands
  delivery: DeliveryCommands
  plan: SlotCommands
  artifact: ArtifactCommands
  artifact_key: ArtifactKeyCommands
  table: TableCommands & BindingCommands
  table_name: TableNameCommands
  environment: EnvironmentCommands & BindingCommands
  environment_name: EnvironmentNameCommands
  blueprint: BlueprintCommands
  preferences: PreferencesCommands
  saved_views: SavedViewCommands
}
/**
 * A row of the API as a command. Path parameters may be absent from the input, because the address
 * of a command identifies the actor. The actor declares the fields that the gateway adds. This type
 * does not check them.
 */
type RowCommand<N extends keyof Api> = {
  readonly input: Partial<Input<Api[N]>> & Readonly<Record<string, unknown>>
  readonly reply: N extends keyof ActorReplies
    ? ActorReplies[N]
    : Reply<Api[N]> & (N extends keyof AddedReplies ? AddedReplies[N] : unknown)
}
/**
 * The rows of a kind of actor as commands. A conditional type limits the names to those of rows,
 * because the type checker takes ten times as long to check an intersection with `keyof Api`.
 */
type RowCommands<K extends Kind> = {
  readonly [N in keyof CommandsOf<Api, K>]: N extends keyof Api ? RowCommand<N> : never
}
/** Replies of actors that differ from the row's reply. The gateway derives the row's reply. */
export interface ActorReplies extends TableReplies, EnvironmentReplies, PreferencesReplies {}
/** Fields of replies that the gateway reads and removes before it answers the client. */
interface AddedReplies {
  'event.publish': Pick<Published, 'unsure'>
  'event.publish_many': Pick<Published, 'unsure'>
}
/** A kind without internal commands need not be in `InternalCommands`. */
type InternalOf<K extends Kind> = K extends keyof InternalCommands ? InternalCommands[K] : unknown
type Commands = { readonly [K in Kind]: RowCommands<K> & InternalOf<K> }

type CommandOf<K extends Kind, N extends CommandName<K>> = Commands[K][N] & {
  input: unknown
  reply: unknown
}
/**
 * The names of the commands of a kind of actor; for a union of kinds, only the names that all of
 * them have.
 */
export type CommandName<K extends Kind = Kind> = keyof Commands[K] & string
export type CommandInput<K extends Kind, N extends CommandName<K>> = CommandOf<K, N>['input']
/**
 * The reply of a command. If it comes from another process as JSON, a reply of undefined is absent.
 */
export type CommandReply<K extends Kind, N extends CommandName<K>> = CommandOf<K, N>['reply']
/** A command whose name determines its input and reply. */
export interface NamedCommand<K extends Kind, N extends CommandName<K>>
  extends Omit<Command, 'kind' | 'name' | 'input'> {
  readonly kind: K
  readonly name: N
  readonly input: CommandInput<K, N>
}
