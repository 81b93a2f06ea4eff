/**
 * The resource types of blueprints: how resources are identified, which rows of the API create,
 * change and delete them, and how input fields map to record fields. Everything about one type is
 * here and in `resources.ts`.
 */
import type { RowName } from '../api.ts'
import type { FieldError } from '../errors.ts'
import { isId } from '../ids.ts'
import type { Trigger } from '../loops/schema.ts'
import { REDACTED } from '../loops/secrets.ts'
import { maskUrl } from '../masked-url.ts'
import { isJsonObject } from '../rules/json-object.ts'
import { evolutionFaults } from '../tables/definition.ts'
import type { TableSchema } from '../tables/schema.ts'
import { selectorOf } from '../toolkits/schema.ts'
import type { ArrayName, ResourceTypeName } from './resources.ts'

/** A field of a resource input. */
export interface FieldFacts {
  /**
   * Name of the field in the record and in the request bodies; by default, its name in the resource
   * input.
   */
  readonly as?: string
  /** A value that is equivalent to an absent field. */
  readonly empty?: unknown
  /** An empty text stands for the value of this other field. */
  readonly emptyMeans?: string
  /** The field cannot change once the resource has been created. */
  readonly immutable?: true
  /** Returns a fault for each part of a change that is not allowed, with its path in the record. */
  readonly fixed?: (from: unknown, to: unknown, is_empty: boolean) => readonly FieldError[]
  /** The record has no such field. The value is stored with the binding. */
  readonly kept?: true
  /** The field refers to one resource of this type, or to a list of them. */
  readonly refers?: { readonly type: ResourceTypeName; readonly list?: true }
  /**
   * A separate row changes the field. `body` is the member of the row's body that contains the
   * whole list.
   */
  readonly assigned?: { readonly row: RowName; readonly body: string }
  /** Returns the canonical form of a value. Equivalent values have the same form. */
  readonly form?: (value: unknown) => unknown
  /** Requests to the rows contain the canonical form of the value instead of the value itself. */
  readonly sendsForm?: true
  /** Returns the value without its secret parts, which answers never contain. */
  readonly mask?: (value: unknown) => unknown
  /**
   * Returns the value of the record without the parts that the service sets because the input omits
   * them.
   */
  readonly align?: (wanted: unknown, value: unknown) => unknown
}
/** The kinds of actors that own resources. */
export type ResourceOwner = 'project' | 'table' | 'loop' | 'channel' | 'environment'
export interface TypeFacts {
  readonly array: ArrayName
  /** Resources of a lower tier are applied first, and deleted last. */
  readonly tier: number
  /** The kind of actor that owns the resource. */
  readonly owner: ResourceOwner
  /**
   * How a resource without a binding is adopted. `unique`: names are unique in the project.
   * `single`: names may repeat, and a match is adopted only if it is the only one. `never`:
   * resources of this type are not adopted.
   */
  readonly adopt: 'unique' | 'single' | 'never'
  /** The field that identifies a resource for adoption. */
  readonly match: string
  /** Absent for types whose resources a blueprint only refers to. */
  readonly rows?: {
    readonly create: RowName
    readonly change: RowName
    readonly remove: RowName
  }
  /**
   * The gateway's preparation of requests to these rows (`gateway/prepare.ts`) only checks the URLs
   * of destinations. It reserves nothing, so previews run it too.
   */
  readonly checkedByPreparation?: true
  /** The `change` row replaces the whole record. */
  readonly replaces?: true
  /** The path parameter of the rows, and the member of the record that contains its value. */
  readonly slot: { readonly name: string; readonly from: 'id' | 'name' }
  readonly fields: Readonly<Record<string, FieldFacts>>
  /** Default values in the body of the `create` row, by member. */
  readonly defaults?: Readonly<Record<string, unknown>>
}

const fields = (...names: string[]): Record<string, FieldFacts> =>
  Object.fromEntries(names.map((name) => [name, {}]))
const byId = { name: 'id', from: 'id' } as const
const maskedUrl = (value: unknown): unknown => (typeof value === 'string' ? maskUrl(value) : value)

const mapped = (value: unknown, change: (member: unknown) => unknown): unknown =>
  isJsonObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, change(member)]))
    : value
const maskedSettings = (value: unknown): unknown =>
  isJsonObject(value) && isJsonObject(value['http_triggers'])
    ? {
        ...value,
        http_triggers: mapped(value['http_triggers'], (trigger) =>
          isJsonObject(trigger) && trigger['signing_secret'] !== undefined
            ? { ...trigger, signing_secret: REDACTED }
            : trigger,
        ),
      }
    : value

const withoutHandle = (trigger: Trigger, drop: (handle: string) => boolean): Trigger => {
  if (trigger.kind !== 'http') return trigger
  const handle = trigger.config?.http_handle
  if (handle !== undefined && !drop(handle)) return trigger
  const { config: _, ...rest } = trigger
  return rest
}
const triggerForm = (value: unknown): unknown =>
  Array.isArray(value)
    ? (value as Trigger[]).map((trigger) =>
        withoutHandle(trigger, (handle) => isId(handle, 'trigger')),
      )
    : value
/** Returns the triggers of a record without the handles that the input does not set. */
const alignTriggers = (wanted: unknown, value: unknown): unknown =>
  Array.isArray(wanted) && Array.isArray(value)
    ? (value as Trigger[]).map((trigger, index) => {
        const other = wanted[index] as Trigger | undefined
        const chosen = other?.kind === 'http' && other.config?.http_handle !== undefined
        return withoutHandle(trigger, () => !chosen)
      })
    : value
const grantForm = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map((grant: Parameters<typeof selectorOf>[0]) => {
        const { selector_type, selector } = selectorOf(grant)
        return { selector_type, selector }
      })
    : value

/** The facts about each resource type. */
export const resourceFacts: Readonly<Record<ResourceTypeName, TypeFacts>> = {
  table: {
    array: 'tables',
    tier: 1,
    owner: 'table',
    adopt: 'unique',
    match: 'name',
    rows: { create: 'table.create', change: 'table.update', remove: 'table.delete' },
    slot: byId,
    fields: {
      schema: {
        fixed: (from, to, is_empty) =>
          evolutionFaults(from as TableSchema, to as TableSchema, is_empty),
      },
      ...fields('name', 'description', 'instructions'),
    },
  },
  action: {
    array: 'actions',
    tier: 1,
    owner: 'project',
    adopt: 'unique',
    match: 'name',
    rows: { create: 'action.create', change: 'action.update', remove: 'action.delete' },
    checkedByPreparation: true,
    slot: { name: 'action_name', from: 'name' },
    fields: {
      name: { immutable: true },
      type: { as: 'endpoint_kind', empty: 'http', immutable: true },
      endpoint: { as: 'endpoint_url', mask: maskedUrl },
      invocation_format: { empty: 'legacy' },
      ...fields('title', 'description', 'input_schema', 'output_schema', 'annotations', 'tags'),
    },
  },
  skill: {
    array: 'skills',
    tier: 1,
    owner: 'project',
    adopt: 'single',
    match: 'name',
    rows: { create: 'skill.create', change: 'skill.replace', remove: 'skill.delete' },
    replaces: true,
    slot: byId,
    fields: {
      title: { kept: true },
      ...fields('name', 'description', 'instructions', 'allowed_tools', 'tags'),
    },
    defaults: { instructions: '' },
  },
  role: {
    array: 'roles',
    tier: 1,
    owner: 'project',
    adopt: 'unique',
    match: 'name',
    rows: { create: 'role.create', change: 'role.update', remove: 'role.delete' },
    slot: byId,
    fields: {
      name: { immutable: true },
      permissions: {
        form: (value) => (Array.isArray(value) ? [...value].sort() : value),
      },
      ...fields('description', 'tags'),
    },
  },
  webhook: {
    array: 'webhooks',
    tier: 1,
    owner: 'project',
    adopt: 'unique',
    match: 'name',
    rows: { create: 'webhook.create', change: 'webhook.update', remove: 'webhook.delete' },
    checkedByPreparation: true,
    slot: { name: 'webhook_id', from: 'id' },
    fields: {
      url: { mask: maskedUrl },
      enabled: { empty: true },
      ...fields('name', 'events', 'tags'),
    },
  },
  environment: {
    array: 'environments',
    tier: 1,
    owner: 'environment',
    adopt: 'unique',
    match: 'name',
    rows: {
      create: 'environment.create',
      change: 'environment.update',
      remove: 'environment.delete',
    },
    slot: { name: 'environment_id', from: 'id' },
    fields: {
      name: { immutable: true },
      provider: { immutable: true },
      template_id: { immutable: true },
      lifetime: { immutable: true },
      retention_policy: { immutable: true },
      repositories: { immutable: true },
      tags: {},
    },
  },
  secret: {
    array: 'secrets',
    tier: 1,
    owner: 'project',
    adopt: 'unique',
    match: 'name',
    slot: byId,
    fields: fields('name'),
  },
  toolkit: {
    array: 'toolkits',
    tier: 2,
    owner: 'project',
    adopt: 'never',
    match: 'name',
    rows: { create: 'toolkit.create', change: 'toolkit.replace', remove: 'toolkit.delete' },
    replaces: true,
    slot: byId,
    fields: {
      actions: { form: grantForm, sendsForm: true },
      metadata: { kept: true },
      ...fields('name', 'description', 'tags'),
    },
  },
  agent: {
    array: 'agents',
    tier: 3,
    owner: 'project',
    adopt: 'unique',
    match: 'name',
    rows: { create: 'agent.create', change: 'agent.update', remove: 'agent.delete' },
    slot: byId,
    fields: {
      tool_presentation: { empty: 'meta' },
      status: { empty: 'active' },
      timeout_seconds: { empty: 0 },
      thinking_effort: { empty: 'inherit' },
      toolkits: {
        refers: { type: 'toolkit', list: true },
        assigned: { row: 'agent.assign_toolkits', body: 'toolkit_ids' },
      },
      skills: {
        refers: { type: 'skill', list: true },
        assigned: { row: 'agent.assign_skills', body: 'skill_ids' },
      },
      ...fields(
        'name',
        'description',
        'color',
        'model',
        'model_route',
        'system_prompt',
        'compaction_policy',
        'memory_context',
        'tags',
      ),
    },
  },
  workflow: {
    array: 'workflows',
    tier: 4,
    owner: 'project',
    adopt: 'unique',
    match: 'handle',
    rows: { create: 'workflow.create', change: 'workflow.update', remove: 'workflow.delete' },
    slot: byId,
    fields: {
      handle: { immutable: true },
      published_as_tool: { empty: false },
      ...fields('name', 'description', 'spec', 'tags'),
    },
  },
  loop: {
    array: 'loops',
    tier: 5,
    owner: 'loop',
    adopt: 'single',
    match: 'name',
    rows: { create: 'loop.create', change: 'loop.update', remove: 'loop.delete' },
    slot: byId,
    fields: {
      agent: { as: 'agent_id', refers: { type: 'agent' } },
      status: { empty: 'draft' },
      settings: { mask: maskedSettings },
      triggers: { form: triggerForm, align: alignTriggers },
      schema_version: { empty: '1' },
      concurrency: { empty: 'allow' },
      ...fields(
        'name',
        'description',
        'event',
        'config',
        'repositories',
        'steps',
        'output',
        'cleanup',
        'limits',
        'defaults',
        'run_name',
        'default_config',
        'tags',
      ),
    },
    defaults: { status: 'draft' },
  },
  channel: {
    array: 'channels',
    tier: 6,
    owner: 'channel',
    adopt: 'unique',
    match: 'name',
    rows: { create: 'channel.create', change: 'channel.update', remove: 'channel.delete' },
    slot: byId,
    fields: {
      name: { immutable: true },
      private: { empty: false },
      display_name: { emptyMeans: 'name' },
      ...fields('topic'),
    },
  },
}
/** Returns the name of a field in the record and in the bodies of its rows. */
export const memberOf = (facts: TypeFacts, field: string): string =>
  facts.fields[field]?.as ?? field
/** Returns the names of those members of request bodies that contain ids of other resources. */
export const referringMembers = (facts: TypeFacts): ReadonlySet<string> =>
  new Set(
    Object.entries(facts.fields).flatMap(([field, { refers, assigned }]) =>
      refers ? [assigned?.body ?? memberOf(facts, field)] : [],
    ),
  )
/** The resource types in the order in which they are applied. */
export const typesInOrder = (Object.keys(resourceFacts) as ResourceTypeName[]).sort(
  (a, b) => resourceFacts[a].tier - resourceFacts[b].tier,
)
