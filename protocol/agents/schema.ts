/**
 * Agents as records: schemas, rules and events. An agent is a principal of kind `agent` with the
 * same id. Its permissions come from its roles, and its tools from its toolkits.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, Tags, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'

/**
 * Limits of agents. `agents`: number of agents of one project; `memory_bytes` in bytes;
 * `threshold_tokens` in tokens. The others are lengths in characters.
 */
export const agentLimits = {
  name: 63,
  external_ref: 200,
  description: 500,
  color: 24,
  model: 200,
  system_prompt: 131_072,
  agents: 1000,
  memory_bytes: 245_760,
  threshold_tokens: 10_000_000,
} as const

/**
 * A setting of the thinking effort. `inherit` defers to the next source (`effectiveDefinition`).
 * The maximum of the model caps the effort.
 */
export const ThinkingEffort = Type.Enum(['inherit', 'low', 'medium', 'high', 'xhigh', 'max'])
export type ThinkingEffort = Static<typeof ThinkingEffort>
/**
 * The part of an agent's memory that is shown at the start of a turn. If `max_bytes` is 0, the
 * default of the mode applies.
 */
export const MemoryContext = Closed({
  mode: Type.Enum(['index', 'full', 'off']),
  max_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: agentLimits.memory_bytes })),
})
export type MemoryContext = Static<typeof MemoryContext>
/**
 * The policy for replacing the older part of a session with a summary. The strategy `none` is
 * equivalent to `disabled`.
 */
export const CompactionPolicy = Closed({
  strategy: Type.Optional(Type.Enum(['auto', 'manual', 'disabled', 'none'])),
  threshold: Type.Optional(Type.Enum(['xs', 'sm', 'md', 'lg', 'xl'])),
  threshold_tokens: Type.Optional(
    Type.Integer({ minimum: 1, maximum: agentLimits.threshold_tokens }),
  ),
  summary_model: Type.Optional(Type.String({ minLength: 1, maxLength: agentLimits.model })),
})
export type CompactionPolicy = Static<typeof CompactionPolicy>
/**
 * Returns the policy `before` with the settings of a second policy applied. A new threshold in
 * either form replaces both forms of the previous threshold. If the second policy has both forms,
 * `threshold` wins.
 */
export function policyOf(
  before: CompactionPolicy | undefined,
  { threshold, threshold_tokens, ...others }: CompactionPolicy,
): CompactionPolicy {
  const { threshold: size, threshold_tokens: tokens, ...rest } = before ?? {}
  const sized =
    threshold !== undefined
      ? { threshold }
      : threshold_tokens !== undefined
        ? { threshold_tokens }
        : {
            ...(size !== undefined && { threshold: size }),
            ...(tokens !== undefined && { threshold_tokens: tokens }),
          }
  return { ...rest, ...others, ...sized }
}
/** Returns the policy with defaults for absent settings: `auto` at the threshold `sm`. */
export const resolvedPolicy = (policy: CompactionPolicy | undefined): CompactionPolicy =>
  policyOf({ strategy: 'auto', threshold: 'sm' }, policy ?? {})
/**
 * Where the text of an agent is generated: by the service (`managed`), or by a worker that
 * advertises exactly this provider and model (`worker`).
 */
export const ModelRoute = Closed({
  mode: Type.Enum(['managed', 'worker']),
  environment_id: Type.Optional(Id),
  provider: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  model: Type.Optional(Type.String({ minLength: 1, maxLength: agentLimits.model })),
})
export type ModelRoute = Static<typeof ModelRoute>
const ToolPresentation = Type.Enum(['flat', 'meta'])
const AgentStatus = Type.Enum(['active', 'inactive'])
/** The empty object, which removes the stored value. */
const Nothing = Type.Object({}, { additionalProperties: false, maxProperties: 0 })

export const AgentName = Type.String({ minLength: 1, maxLength: agentLimits.name })
const ExternalRef = Type.String({ minLength: 1, maxLength: agentLimits.external_ref })
export const Agent = Type.Object({
  id: Type.String(),
  principal_id: Type.String(),
  name: Type.String(),
  external_ref: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  color: Type.Optional(Type.String()),
  model: Type.Optional(Type.String()),
  model_route: Type.Optional(ModelRoute),
  tool_presentation: Type.Optional(ToolPresentation),
  system_prompt: Type.Optional(Type.String()),
  timeout_seconds: Type.Optional(Type.Integer({ minimum: 0 })),
  compaction_policy: Type.Optional(CompactionPolicy),
  memory_context: Type.Optional(MemoryContext),
  thinking_effort: Type.Optional(ThinkingEffort),
  status: AgentStatus,
  email_address: Type.Optional(Type.String()),
  tags: Type.Optional(Tags),
  created_by: Type.Optional(Type.String()),
  updated_by: Type.Optional(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Agent = Static<typeof Agent>

const settings = {
  external_ref: Type.Optional(ExternalRef),
  description: Type.Optional(Type.String({ maxLength: agentLimits.description })),
  color: Type.Optional(
    Type.String({
      maxLength: agentLimits.color,
      description: 'Color name of the palette, such as teal; if empty, derived from the agent',
    }),
  ),
  model: Type.Optional(
    Type.String({
      maxLength: agentLimits.model,
      description:
        'Model id of the catalog, with or without its provider; empty: the default model',
    }),
  ),
  model_route: Type.Optional(ModelRoute),
  tool_presentation: Type.Optional(ToolPresentation),
  system_prompt: Type.Optional(Type.String({ maxLength: agentLimits.system_prompt })),
  timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 9_007_199_254_740_991,
      description: 'Maximum seconds of active execution in one turn; 0: the default',
    }),
  ),
  thinking_effort: Type.Optional(ThinkingEffort),
  tags: Type.Optional(Tags),
}
export const CreateAgent = Closed({
  name: AgentName,
  if_exists: Type.Optional(Type.Enum(['error', 'adopt'])),
  ...settings,
  compaction_policy: Type.Optional(CompactionPolicy),
  memory_context: Type.Optional(MemoryContext),
})
export const UpdateAgent = Closed({
  name: Type.Optional(AgentName),
  status: Type.Optional(AgentStatus),
  ...settings,
  compaction_policy: Type.Optional(Type.Union([CompactionPolicy, Nothing])),
  memory_context: Type.Optional(
    Type.Union([MemoryContext, Nothing], {
      description: 'Memory context; an empty object removes it',
    }),
  ),
})

/** Returns the faults of a compaction policy. `field` is the path of the policy in the request. */
export const compactionFaults = (
  policy: CompactionPolicy | undefined,
  field = 'compaction_policy',
): FieldError[] =>
  policy?.threshold !== undefined && policy.threshold_tokens !== undefined
    ? [{ field: `${field}.threshold_tokens`, message: 'cannot be given together with threshold' }]
    : []
/**
 * Returns the faults of a route. `model` is the model of the agent. If `model` has the form
 * `provider/model`, a worker route may omit provider and model. `field` is the path of the route in
 * the request.
 */
export function routeFaults(
  route: ModelRoute | undefined,
  model: string | undefined,
  field = 'model_route',
): FieldError[] {
  if (!route) return []
  if (route.mode === 'managed')
    return route.environment_id === undefined
      ? []
      : [{ field: `${field}.environment_id`, message: 'is allowed only in the mode worker' }]
  if ((route.provider === undefined) !== (route.model === undefined))
    return [
      {
        field: `${field}.${route.provider === undefined ? 'provider' : 'model'}`,
        message: 'provider and model must be given together',
      },
    ]
  return route.provider !== undefined || (model !== undefined && providerOf(model) !== undefined)
    ? []
    : [
        {
          field: `${field}.provider`,
          message: 'provider and model are both required, because workers are selected by them',
        },
      ]
}
/**
 * Splits a text of the form `provider/model` at the first slash. The model may contain further
 * slashes. Returns undefined when provider or model is missing.
 */
export function providerOf(
  text: string,
): { readonly provider: string; readonly model: string } | undefined {
  const at = text.indexOf('/')
  return at > 0 && at < text.length - 1
    ? { provider: text.slice(0, at), model: text.slice(at + 1) }
    : undefined
}
/** Returns the faults that schemas cannot detect in a new agent. */
export const checkCreateAgent = (body: Static<typeof CreateAgent>): FieldError[] => [
  ...(body.if_exists === 'adopt' && body.external_ref === undefined
    ? [{ field: 'external_ref', message: 'adopt requires an external_ref' }]
    : []),
  ...compactionFaults(body.compaction_policy),
  ...routeFaults(body.model_route, body.model),
]
/**
 * Returns the faults that schemas cannot detect in an agent update. The route is not checked here,
 * because it depends on the model of the agent after the change.
 */
export const checkUpdateAgent = (body: Static<typeof UpdateAgent>): FieldError[] =>
  compactionFaults(body.compaction_policy as CompactionPolicy | undefined)

export type AgentEvent =
  | (Event & { readonly type: 'agent.created'; readonly id: string; readonly agent: Agent })
  | (Event & {
      readonly type: 'agent.updated'
      readonly id: string
      readonly agent: Patch<Agent>
      readonly changes: Changes
    })
  /** The external reference of a deleted agent is never reused. */
  | (Event & {
      readonly type: 'agent.deleted'
      readonly id: string
      readonly name: string
      readonly external_ref?: string
    })

/** The fields of an agent that gateways cache with the directory of the project. */
export interface AgentEntry extends Pick<Agent, 'name' | 'external_ref' | 'status'> {}
