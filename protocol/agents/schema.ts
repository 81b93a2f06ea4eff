/**
 * Agents as records: who they are, which model speaks for them and within which bounds. An agent is a principal of kind
 * `agent` under the same id: what it may do comes from its roles, which tools it has comes from its toolkits.
 */
import { Type, type Static } from 'typebox'
import type { Changes } from '../workflows/rows.ts'
import { Closed, Id, Tags, Timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import type { Patch } from '../patch.ts'

/** Bounds of one agent and of a project's agents. Lengths are in characters. */
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

/** How much a model shall think; `inherit`: what the layer below says. A model that can do less does less. */
export const ThinkingEffort = Type.Enum(['inherit', 'low', 'medium', 'high', 'xhigh', 'max'])
export type ThinkingEffort = Static<typeof ThinkingEffort>
/** What of an agent's memory a turn begins with. `max_bytes` 0: the default of the mode. */
export const MemoryContext = Closed({
  mode: Type.Enum(['index', 'full', 'off']),
  max_bytes: Type.Optional(Type.Integer({ minimum: 0, maximum: agentLimits.memory_bytes })),
})
export type MemoryContext = Static<typeof MemoryContext>
/** When the older part of a session is summed up. `none` is another word for `disabled`. */
export const CompactionPolicy = Closed({
  strategy: Type.Optional(Type.Enum(['auto', 'manual', 'disabled', 'none'])),
  threshold: Type.Optional(Type.Enum(['xs', 'sm', 'md', 'lg', 'xl'])),
  threshold_tokens: Type.Optional(
    Type.Integer({ minimum: 1, maximum: agentLimits.threshold_tokens }),
  ),
  summary_model: Type.Optional(Type.String({ minLength: 1, maxLength: agentLimits.model })),
})
export type CompactionPolicy = Static<typeof CompactionPolicy>
/** A compaction policy with what is given over it: one threshold takes the place of the other. */
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
/** A compaction policy over the service's own: `auto` at a small share of what the model reads. */
export const resolvedPolicy = (policy: CompactionPolicy | undefined): CompactionPolicy =>
  policyOf({ strategy: 'auto', threshold: 'sm' }, policy ?? {})
/** Where text is generated: by the service (`managed`), or as a job of a worker that advertises exactly this provider and model. */
export const ModelRoute = Closed({
  mode: Type.Enum(['managed', 'worker']),
  environment_id: Type.Optional(Id),
  provider: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  model: Type.Optional(Type.String({ minLength: 1, maxLength: agentLimits.model })),
})
export type ModelRoute = Static<typeof ModelRoute>
const ToolPresentation = Type.Enum(['flat', 'meta'])
const AgentStatus = Type.Enum(['active', 'inactive'])
/** Nothing: removes what is set. */
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
/** Faults of a route beside the model that it may take its provider from, when that is written `provider/model`. */
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
/** Provider and model of a text `provider/model`; undefined when it names no provider. The model may contain further slashes. */
export function providerOf(
  text: string,
): { readonly provider: string; readonly model: string } | undefined {
  const at = text.indexOf('/')
  return at > 0 && at < text.length - 1
    ? { provider: text.slice(0, at), model: text.slice(at + 1) }
    : undefined
}
/** What schemas cannot say about a new agent. */
export const checkCreateAgent = (body: Static<typeof CreateAgent>): FieldError[] => [
  ...(body.if_exists === 'adopt' && body.external_ref === undefined
    ? [{ field: 'external_ref', message: 'adopt needs an external_ref' }]
    : []),
  ...compactionFaults(body.compaction_policy),
  ...routeFaults(body.model_route, body.model),
]
/** What schemas cannot say about a change of an agent. Its route is judged with the model that the agent then has. */
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
  /** Its external reference is never given again. */
  | (Event & {
      readonly type: 'agent.deleted'
      readonly id: string
      readonly name: string
      readonly external_ref?: string
    })

/** What everybody who serves a project knows of an agent without asking. */
export interface AgentEntry extends Pick<Agent, 'name' | 'external_ref' | 'status'> {}
