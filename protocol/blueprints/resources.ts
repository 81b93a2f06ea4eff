/**
 * Schemas of the resources in a blueprint. An input contains only the fields that an author
 * configures, not identifiers, times or secrets. `types.ts` maps these fields to fields of records.
 */
import { type Static, type TProperties, Type } from 'typebox'
import { CreateRole } from '../access/role-rows.ts'
import { Annotations, CreateAction } from '../actions/rows.ts'
import { CreateAgent } from '../agents/schema.ts'
import { CreateChannel } from '../channels/rows.ts'
import { Closed, JsonObject } from '../common.ts'
import { CreateEnvironment } from '../environments/schema.ts'
import { authoring, loopStatuses, metadata } from '../loops/schema.ts'
import { SkillBody, skillLimits } from '../skills/schema.ts'
import { CreateTable } from '../tables/schema.ts'
import { ToolkitBody } from '../toolkits/schema.ts'
import { CreateWebhook } from '../webhooks/rows.ts'
import { CreateWorkflow } from '../workflows/rows.ts'

const publishedTypes = ['table', 'action', 'skill', 'toolkit', 'agent', 'loop'] as const
const furtherTypes = ['role', 'webhook', 'environment', 'secret', 'workflow', 'channel'] as const
export const resourceTypes = [...publishedTypes, ...furtherTypes] as const
export type ResourceTypeName = (typeof resourceTypes)[number]
/** Whether the published contract contains a resource type. */
export const isPublished = (type: ResourceTypeName): boolean =>
  publishedTypes.some((one) => one === type)

const Key = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[^\\u0000-\\u001f\\u007f]*$',
  description: 'Local key, unique among the resources of this type in the blueprint',
})
const own = {
  key: Key,
  moved_from: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'Former key of the resource, for a resource whose key changes',
    }),
  ),
}
/** A reference to a resource, in exactly one of three forms. */
export const Reference = Closed({
  id: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  key: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
  blueprint_ref: Type.Optional(
    Closed({
      namespace: Type.Optional(Type.String({ maxLength: 128 })),
      key: Type.String({ minLength: 1, maxLength: 128 }),
    }),
  ),
})
export type Reference = Static<typeof Reference>
const References = Type.Array(Reference, { maxItems: 64 })

const action = CreateAction.properties
const ActionResource = Closed({
  ...own,
  name: action.name,
  type: Type.Optional(Type.Enum(['http', 'worker'])),
  endpoint: action.endpoint_url,
  invocation_format: action.invocation_format,
  title: action.title,
  description: action.description,
  input_schema: action.input_schema,
  output_schema: action.output_schema,
  annotations: Type.Optional(
    Closed({ ...Annotations.properties, long_running: Type.Optional(Type.Boolean()) }),
  ),
  tags: action.tags,
})
const toolkit = ToolkitBody.properties
const ToolkitResource = Closed({
  ...own,
  name: toolkit.name,
  description: toolkit.description,
  actions: toolkit.actions,
  tags: toolkit.tags,
  metadata: Type.Optional(JsonObject),
})
const skill = SkillBody.properties
const SkillResource = Closed({
  ...own,
  name: skill.name,
  title: Type.Optional(Type.String({ maxLength: 160 })),
  description: skill.description,
  instructions: Type.Optional(Type.String({ maxLength: skillLimits.instructions })),
  allowed_tools: skill.allowed_tools,
  tags: skill.tags,
})
const agent = CreateAgent.properties
const AgentResource = Closed({
  ...own,
  name: agent.name,
  description: agent.description,
  color: agent.color,
  model: agent.model,
  model_route: agent.model_route,
  tool_presentation: agent.tool_presentation,
  system_prompt: agent.system_prompt,
  timeout_seconds: agent.timeout_seconds,
  status: Type.Optional(Type.Enum(['active', 'inactive'])),
  compaction_policy: agent.compaction_policy,
  memory_context: agent.memory_context,
  thinking_effort: agent.thinking_effort,
  toolkits: Type.Optional(References),
  skills: Type.Optional(References),
  tags: agent.tags,
})
const { agent_id: _, ...loopMetadata } = metadata
const LoopResource = Closed({
  ...own,
  name: Type.String({ minLength: 1, maxLength: 160 }),
  agent: Type.Optional(Reference),
  status: Type.Optional(Type.Enum([...loopStatuses])),
  ...loopMetadata,
  ...authoring,
})
const table = CreateTable.properties
const TableResource = Closed({ ...own, ...table })

const role = CreateRole.properties
const RoleResource = Closed({ ...own, ...role })
const webhook = CreateWebhook.properties
const WebhookResource = Closed({ ...own, ...webhook })
const environment = CreateEnvironment.properties
const EnvironmentResource = Closed({
  ...own,
  name: Type.String({ ...environment.name }),
  provider: environment.provider,
  template_id: environment.template_id,
  lifetime: environment.lifetime,
  retention_policy: environment.retention_policy,
  repositories: environment.repositories,
  tags: environment.tags,
})
const SecretResource = Closed({
  ...own,
  name: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'Name of a secret that must exist; its value is never part of a blueprint',
  }),
})
const workflow = CreateWorkflow.properties
const WorkflowResource = Closed({ ...own, ...workflow, handle: workflow.handle })
const channel = CreateChannel.properties
const ChannelResource = Closed({
  ...own,
  name: Type.String({ ...channel.name }),
  display_name: Type.Optional(
    Type.String({
      ...channel.display_name,
      minLength: 0,
      description: 'An empty text removes the display name; the name is shown then',
    }),
  ),
  topic: channel.topic,
  private: channel.private,
})

const many = <P extends TProperties>(schema: ReturnType<typeof Closed<P>>) =>
  Type.Optional(Type.Array(schema, { maxItems: 2000 }))
/** The members of `resources`: one array per type. */
export const resourceArrays = {
  actions: many(ActionResource),
  toolkits: many(ToolkitResource),
  skills: many(SkillResource),
  agents: many(AgentResource),
  loops: many(LoopResource),
  tables: many(TableResource),
  roles: many(RoleResource),
  webhooks: many(WebhookResource),
  environments: many(EnvironmentResource),
  secrets: many(SecretResource),
  workflows: many(WorkflowResource),
  channels: many(ChannelResource),
}
export type ArrayName = keyof typeof resourceArrays
/** The resource schemas by type. */
export const resourceSchemas = {
  action: ActionResource,
  toolkit: ToolkitResource,
  skill: SkillResource,
  agent: AgentResource,
  loop: LoopResource,
  table: TableResource,
  role: RoleResource,
  webhook: WebhookResource,
  environment: EnvironmentResource,
  secret: SecretResource,
  workflow: WorkflowResource,
  channel: ChannelResource,
}
/** A resource input of any type: its key, its name and its settings. */
export interface ResourceInput {
  readonly key: string
  readonly name: string
  readonly moved_from?: string
  readonly [field: string]: unknown
}
