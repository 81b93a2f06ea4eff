/**
 * Schemas of interactions: the record, the question, the policy, the responses, and the consumer of
 * the outcome. The rules that schemas cannot express are in `check.ts`.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, JsonObject, orAbsent, Tags, Timestamp } from '../common.ts'

const interactionKinds = [
  'request_information',
  'request_approval',
  'request_review',
  'assign_work',
] as const
export const InteractionKind = Type.Enum([...interactionKinds])
export type InteractionKind = Static<typeof InteractionKind>
export const interactionStatuses = [
  'pending',
  'in_review',
  'completed',
  'expired',
  'cancelled',
] as const
/** Statuses in which an interaction has ended. */
export const settledStatuses: ReadonlySet<string> = new Set(['completed', 'expired', 'cancelled'])

/**
 * Limits of an interaction. `size`: number of characters as JSON, which is limited because every
 * read returns the whole interaction. `question`: the same for the question of a step, so that
 * answers fit. `targets`: number of targets. `rounds`: number of review rounds.
 */
export const interactionLimits = {
  size: 1024 * 1024,
  question: 768 * 1024,
  targets: 100,
  rounds: 100,
} as const

const Text = Type.String({ maxLength: 16_384 })
export const Option = Closed({
  value: Type.String({ minLength: 1, maxLength: 1024 }),
  label: Type.String({ minLength: 1, maxLength: 1024 }),
  description: Type.Optional(Text),
})
/**
 * A question: the form of a valid response. `checkQuestion` checks the rules that a schema cannot
 * express.
 */
export const Question = Closed({
  mode: Type.Enum(['confirm', 'select', 'multi_select', 'input']),
  options: Type.Optional(
    Type.Array(Option, {
      maxItems: 100,
      description: 'Options: a stable value for programs and a label for people',
    }),
  ),
  default_value: Type.Optional(Type.String({ maxLength: 1024 })),
  default_values: Type.Optional(Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 100 })),
  default_text: Type.Optional(Text),
  default_confirmed: Type.Optional(Type.Boolean()),
  placeholder: Type.Optional(Text),
  multiline: Type.Optional(Type.Boolean()),
})
export type Question = Static<typeof Question>

/**
 * A target: the id of a principal, or `role:<name>` for every principal that has this role when it
 * responds.
 */
export const Target = Type.String({
  minLength: 1,
  maxLength: 128,
  description: 'Id of a principal, or role:<name>',
})
export const Targets = Type.Array(Target, { minItems: 1, maxItems: interactionLimits.targets })
const policyTypes = ['any_of', 'all_of', 'quorum'] as const
/**
 * The rule that determines which responses settle an interaction, and whether they are reviewed.
 */
export const Policy = Closed({
  type: Type.Enum([...policyTypes]),
  threshold: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100,
      description: 'Number of distinct targets that must answer; only with type quorum',
    }),
  ),
  review: Type.Optional(
    orAbsent(
      Closed({
        reviewer_user_ids: Type.Optional(
          Type.Array(Target, {
            maxItems: 100,
            description: 'Reviewers: ids of principals, or role:<name>; the creator if empty',
          }),
        ),
      }),
    ),
  ),
})
export type Policy = Static<typeof Policy>

export const Reference = Closed({
  kind: Type.String({
    pattern: '^(external_url|[a-z][a-z0-9]*_entity)$',
    description: 'Kind of the reference: external_url or <brand>_entity',
  }),
  url: Type.Optional(Type.String({ maxLength: 2048 })),
  entity_type: Type.Optional(Type.String({ maxLength: 128 })),
  entity_id: Type.Optional(Id),
  relation: Type.Optional(Type.String({ maxLength: 128 })),
  label: Type.Optional(Type.String({ maxLength: 256 })),
})
/** One address without a display name, so that it can be the recipient of an e-mail. */
const ADDRESS = '^[^\\s@<>()\\[\\],:;"\\\\]+@[^\\s@<>(),:;"\\\\]+$'
export const Delivery = Closed({
  channels: Type.Array(
    Closed({
      kind: Type.Enum(['inbox_only', 'email']),
      email: Type.Optional(
        Closed({
          to: Type.Array(Type.String({ pattern: ADDRESS, maxLength: 320 }), {
            minItems: 1,
            maxItems: 100,
            description: 'The e-mail addresses of the targets if absent',
          }),
        }),
      ),
    }),
    { minItems: 1, maxItems: 10 },
  ),
})

export const RunConsumer = Closed({
  run_id: Id,
  signal_name: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' }),
})
export const ToolConsumer = Closed({
  invocation_id: Id,
  tool_call_id: Id,
  session_id: Type.Optional(Id),
})
export const HttpConsumer = Closed({
  callback_url: Type.String({ minLength: 1, maxLength: 2048 }),
  secret_ref: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}(:[1-9][0-9]{0,8})?$' }),
})
const consumerKinds = ['run', 'agent_tool', 'http_subscriber', 'none'] as const
export const ConsumerKind = Type.Enum([...consumerKinds])
/**
 * The consumer of the outcome. Besides `kind`, only the field whose name is the value of `kind` may
 * be present.
 */
export const Consumer = Closed({
  kind: ConsumerKind,
  run: Type.Optional(orAbsent(RunConsumer)),
  agent_tool: Type.Optional(orAbsent(ToolConsumer)),
  http_subscriber: Type.Optional(orAbsent(HttpConsumer)),
})
export type Consumer = Static<typeof Consumer>

export const Response = Type.Object({
  id: Type.String(),
  interaction_id: Type.String(),
  response_kind: Type.Literal('response'),
  state: Type.Literal('submitted'),
  responder_user_id: Type.String(),
  value: Type.Unknown(),
  comment: Type.Optional(Type.String()),
  attempt: Type.Optional(
    Type.Integer({ description: 'Number of the review round; absent in the first round' }),
  ),
  responded_at: Timestamp,
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Response = Static<typeof Response>
export const LifecycleEvent = Type.Object({
  at: Timestamp,
  status: Type.Enum([...interactionStatuses]),
  action: Type.Enum([
    'created',
    'submitted_for_review',
    'accepted',
    'changes_requested',
    'resolved',
    'cancelled',
    'expired',
  ]),
  actor_id: Type.Optional(
    Type.String({ description: 'Id of the principal; absent for changes by the service itself' }),
  ),
  comment: Type.Optional(Type.String()),
  round: Type.Optional(Type.Integer()),
})
export type LifecycleEvent = Static<typeof LifecycleEvent>
export const Person = Type.Object({ user_id: Type.String() })

export const Interaction = Type.Object({
  id: Type.String(),
  kind: InteractionKind,
  status: Type.Enum([...interactionStatuses]),
  title: Type.String(),
  description: Type.Optional(Type.String()),
  target_user_ids: Type.Array(Type.String()),
  subject: Type.Optional(Reference),
  references: Type.Optional(Type.Array(Reference)),
  context: Type.Optional(JsonObject),
  properties: Type.Optional(JsonObject),
  tags: Type.Optional(Tags),
  spec: Type.Optional(Question),
  require_all: Type.Optional(Type.Boolean()),
  resolution_policy: Policy,
  consumer: Consumer,
  delivery: Type.Optional(Delivery),
  run_id: Type.Optional(Type.String()),
  signal_name: Type.Optional(Type.String()),
  expires_at: Type.Optional(Timestamp),
  created_by: Type.Optional(Type.String()),
  responder: Type.Optional(Person),
  reviewer: Type.Optional(Person),
  responses: Type.Array(Response),
  resolving_response_id: Type.Optional(Type.String()),
  outcome: Type.Optional(Type.Unknown()),
  resolved_by: Type.Optional(Type.String()),
  cancel_reason: Type.Optional(Type.String()),
  review_round: Type.Optional(Type.Integer()),
  submitted_at: Type.Optional(Timestamp),
  review_feedback: Type.Optional(Type.String()),
  lifecycle: Type.Array(LifecycleEvent),
  completed_at: Type.Optional(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Interaction = Static<typeof Interaction>
