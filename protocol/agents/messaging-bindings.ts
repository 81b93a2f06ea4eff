/**
 * Messaging bindings. A binding defines in which conversations of a connected account an agent
 * answers. The service only stores this configuration. A separate program reads the bindings and
 * connects the accounts.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Changes } from '../workflows/rows.ts'
import { CompactionPolicy, compactionFaults, ModelRoute, routeFaults } from './schema.ts'

/** Maximum number of bindings of one agent, and of entries in each list of a binding. */
export const bindingLimits = { bindings: 50, entries: 500 } as const

const Provider = Type.Enum(['slack', 'telegram', 'linear'])
const DmPolicy = Type.Enum(['open', 'allowlist', 'disabled'])
const ReplyMode = Type.Enum(['auto'])
const Names = Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
  maxItems: bindingLimits.entries,
})
export const MessagingBinding = Type.Object({
  id: Type.String(),
  agent_id: Type.String(),
  provider: Provider,
  integration_id: Type.String(),
  enabled: Type.Boolean(),
  dms: Type.Boolean(),
  mentions: Type.Boolean(),
  all_messages: Type.Boolean(),
  channels: Names,
  dm_policy: DmPolicy,
  sender_allow: Names,
  reply_mode: ReplyMode,
  model_route: Type.Optional(ModelRoute),
  compaction_policy: Type.Optional(CompactionPolicy),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type MessagingBinding = Static<typeof MessagingBinding>
export const SetBinding = Closed({
  provider: Provider,
  integration_id: Id,
  enabled: Type.Optional(Type.Boolean()),
  replace_existing: Type.Optional(
    Type.Boolean({
      description:
        'Deactivate another active binding of the same account instead of refusing the request',
    }),
  ),
  dms: Type.Optional(Type.Boolean()),
  mentions: Type.Optional(Type.Boolean()),
  all_messages: Type.Optional(Type.Boolean()),
  channels: Type.Optional(Names),
  dm_policy: Type.Optional(DmPolicy),
  sender_allow: Type.Optional(Names),
  reply_mode: Type.Optional(ReplyMode),
  model_route: Type.Optional(ModelRoute),
  compaction_policy: Type.Optional(CompactionPolicy),
})
export type SetBinding = Static<typeof SetBinding>
/**
 * Returns the faults that schemas cannot detect in a binding. A worker route must specify its
 * model, because the model of the agent may change.
 */
export const checkBinding = ({ model_route, compaction_policy }: SetBinding) => [
  ...routeFaults(model_route, undefined),
  ...compactionFaults(compaction_policy),
]

export type BindingEvent =
  | (Event & {
      readonly type: 'binding.created'
      readonly id: string
      readonly binding: MessagingBinding
    })
  | (Event & {
      readonly type: 'binding.updated'
      readonly id: string
      readonly binding: MessagingBinding
      readonly changes: Changes
    })
  | (Event & { readonly type: 'binding.deleted'; readonly id: string })
