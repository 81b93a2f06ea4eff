/**
 * Agents as records: identity, model and limits. An agent is a principal of kind `agent` with the
 * same id: its permissions come from its roles, its tools from its toolkits.
 */
import { type Static, Type } from 'typebox'
import { Closed, Id, Tags, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import type { Patch } from '../patch.ts'
import type { Changes } from '../workflows/rows.ts'

/** Limits of one agent and of a project's agents. Lengths are in characters. */
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
 * The thinking effort of a model; `inherit`: the effort of the layer below. The model's own maximum
 * caps it.
 */
export const ThinkingEffort = Type.Enum(['inherit', 'low', 'medium', 'high', 'xhigh', 'max'])
export type ThinkingEffort = Static<typeof ThinkingEffort>
/**
 * The part of an agent's memory that a turn starts with. `max_bytes` 0: the default of the mode.
 */
export const MemoryContext = Closed({
  mode: Type.Enum(['index', 'full', 'off']),
  max_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: agentLimits.memory_bytes })),
})
export type MemoryContext = Static<typeof MemoryContext>
/** When the older part of a session is summarized. `none` means the same as `disabled`. */
export const CompactionPolicy = Closed({
  strategy: Type.Optional(Type.Enum(['auto', 'manual', 'disabled', 'none'])),
  threshold: Type.Optional(Type.Enum(['xs', 'sm', 'md', 'lg', 'xl'])),
  threshold_tokens: Type.Optional(
    Type.Integer({ minimum: 1, maximum: agentLimits.threshold_tokens }),
  ),
  summary_model: Type.Optional(Type.String({ minLength: 1, maxLength: agentLimits.model })),
})
export type CompactionPolicy = Static<typeof CompactionPolicy>
/** Merges a compaction policy over another: a threshold of either form replaces the other form. */
export function policyOf(
  before: CompactionPolicy | undefined,
  { threshold, threshold_tokens, ...given }: CompactionPolicy,
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
  return { ...rest, ...given, ...sized }
}
/**
 * The compaction policy with the service's defaults filled in: `auto` at a small share of the
 * model's context window.
 */
export const resolvedPolicy = (policy: CompactionPolicy | undefined): CompactionPolicy =>
  policyOf({ strategy: 'auto', threshold: 'sm' }, policy ?? {})
/**
 * Where text is generated: by the service (`managed`), or as a job of a worker that advertises
 * exactly this provider and model.
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
      description: 'Key of a palette, such as teal; empty: derived',
    }),
  ),
  model: Type.Optional(
    Type.String({
      maxLength: agentLimits.model,
      description: 'Id of the catalog, with or without its provider; empty: the default',
    }),
  ),
  model_route: Type.Optional(ModelRoute),
  tool_presentation: Type.Optional(ToolPresentation),
  system_prompt: Type.Optional(Type.String({ maxLength: agentLimits.system_prompt })),
  timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 9_007_199_254_740_991,
      description: 'Of active execution in one turn; 0: the default',
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
    Type.Union([MemoryContext, Nothing], { description: 'An empty object removes it' }),
  ),
})

/** Faults of a compaction policy. */
export const compactionFaults = (
  policy: CompactionPolicy | undefined,
  field = 'compaction_policy',
): FieldError[] =>
  policy?.threshold !== undefined && policy.threshold_tokens !== undefined
    ? [{ field: `${field}.threshold_tokens`, message: 'cannot be given together with threshold' }]
    : []
/**
 * Faults of a route. A route may take its provider from `model` when that has the form
 * `provider/model`.
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
      : [{ field: `${field}.environment_id`, message: 'is only for the mode worker' }]
  if ((route.provider === undefined) !== (route.model === undefined))
    return [
      {
        field: `${field}.${route.provider === undefined ? 'provider' : 'model'}`,
        message: 'provider and model are given together',
      },
    ]
  return route.provider !== undefined || (model !== undefined && providerOf(model) !== undefined)
    ? []
    : [
        {
          field: `${field}.provider`,
          message: 'a worker is found by provider and model; give both',
        },
      ]
}
/**
 * Provider and model of a text `provider/model`; undefined when it contains no provider. The model
 * may contain further slashes.
 */
export function providerOf(
  text: string,
): { readonly provider: string; readonly model: string } | undefined {
  const at = text.indexOf('/')
  return at > 0 && at < text.length - 1
    ? { provider: text.slice(0, at), model: text.slice(at + 1) }
    : undefined
}
/** Checks the rules for a new agent that schemas cannot express. */
export const checkCreateAgent = (body: Static<typeof CreateAgent>): FieldError[] => [
  ...(body.if_exists === 'adopt' && body.external_ref === undefined
    ? [{ field: 'external_ref', message: 'adopt needs an external_ref' }]
    : []),
  ...compactionFaults(body.compaction_policy),
  ...routeFaults(body.model_route, body.model),
]
/**
 * Checks the rules for a change of an agent that schemas cannot express. Its route is checked
 * together with the model that the agent then has.
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
  /** Its external reference is never reused. */
  | (Event & {
      readonly type: 'agent.deleted'
      readonly id: string
      readonly name: string
      readonly external_ref?: string
    })

/** The facts about an agent that every gateway of the project caches. */
export interface AgentEntry extends Pick<Agent, 'name' | 'external_ref' | 'status'> {}
