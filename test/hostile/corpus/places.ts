/**
 * Every location of the endpoint table where a client supplies text or free JSON, found in the
 * schemas of bodies and queries. The name of a field determines how its text is parsed. A name that
 * is not classified in this file is an error.
 */
import type { RowName } from '../../../protocol/api.ts'
import { instant } from '../../scenarios/support/given.ts'
import { exampleOf } from '../support/generate.ts'
import { bodyFor, type Place, rows } from '../support/rows.ts'
import type { TextKind } from './texts.ts'

/** A location, and functions that put a value there. */
export interface TextPlace {
  readonly row: RowName
  readonly kind: TextKind
  /** The names of the fields that lead to the location. For a query parameter, only its name. */
  readonly path: readonly string[]
  readonly in: 'body' | 'query'
  /** Maximum length of the text; undefined for free JSON and for text without a maximum. */
  readonly longest: number | undefined
  /** Returns the fields of the body or query, with this value at the location. */
  readonly holding: (value: unknown, place: Place) => object
  /** Returns these fields of a body or query, with this value at the location. */
  readonly put: (value: unknown, fields: object, place: Place) => object
}

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly maxLength?: number
}

/**
 * Names of fields, by the kind of their values. A field whose name the client chooses has the kind
 * of its parent.
 */
const names: Readonly<Record<TextKind, string>> = {
  expression: 'condition expr if items match output payload_mapping',
  template: `description_template template prompt title targets instructions parameters context event config
    reviewer_user_ids default_config`,
  schema: 'input_schema output_schema schema',
  skill: 'content',
  markdown: 'body comment description message summary system_prompt topic reason',
  url: 'callback_url endpoint endpoint_url origins url ref full_name',
  file: 'file mime',
  schedule: 'cron interval timezone',
  duration: 'delay duration expires_in wall_clock_timeout',
  time: `archived_at created_after created_at created_before destroyed_since ended_after ended_before
    expires_at period_start recorded_after since until`,
  selector:
    'action_name actions allowed_tools event_type events permissions selector tool_names channels sender_allow',
  search: 'after contains cursor page_token q query search',
  json: `data default entries error filter input meta metadata params payload preferences properties result
    rows settings tags value`,
  word: `by namespace blueprint_key blueprint_version moved_from plan_id
    action_id actor_id agent agent_id agent_name api_key_id api_token app_id
    capabilities channel_id color command columns
    correlation_id counter
    default_text default_value default_values definition_id delivery_id display_name email entity_id entity_type
    environment_id evidence external_id external_ref failed_step fairness_key field from_step group_id handle
    http_handle id identity_column
    idempotency_key ids initiated_by installation_id
    integration_id invocation_id job_id keep_warm key kind label lease_token
    loop_id member_id
    member_ids method model model_provider name owned_by owner_id parent_run_id placeholder principal_id private_key
    project project_id provider push_token queue queues read_token relation
    repo_full_name reply_to resource_id resource_type role_id role_ids
    role_name run_id run_ids
    runtime_version scope_name scope_role_id secondary_key_column secret_ref
    sender_agent_id sender_id sender_session_id session_id
    session_key signal_name skill_ids skill_name source source_event_id source_id source_kind source_type status
    step_id step_key summary_model tag target
    target_group_id target_user_id target_user_ids template_id thread_id to token
    tool_call_id toolkit_ids type user_code user_id user_ids username worker_instance_id worker_session_token
    workflow_id workflow_type workspace_id workspace_path`,
}
const kindsByName: ReadonlyMap<string, TextKind> = new Map(
  Object.entries(names).flatMap(([kind, list]) =>
    list.split(/\s+/).map((name): [string, TextKind] => [name, kind as TextKind]),
  ),
)
/** The classified names. A test checks that all of them are used. */
export const classified: readonly string[] = [...kindsByName.keys()]
/** Returns the kind of a field's value, or undefined if the field's name is not classified. */
export const kindOf = (path: readonly string[]): TextKind | undefined =>
  kindsByName.get(path.findLast((name) => name !== '*') ?? '')

type JsonObject = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/**
 * Puts a value at the location.
 * @param base a body that the row accepts, whose other fields are preserved.
 */
type Holding = (value: unknown, base: unknown, place: Place) => unknown
interface Leaf {
  readonly path: readonly string[]
  readonly longest: number | undefined
  readonly holding: Holding
}

/**
 * Returns values for fields that the schema does not require, but a check of the row may require.
 */
const companions = ({ agent, workflow }: Place): JsonObject => ({
  event_type: 'order.paid',
  prompt: 'judge',
  entity_type: 'order',
  entity_id: 'order-1',
  kind: 'service_entity',
  full_name: 'a/b',
  provider: 'slack',
  model: 'm',
  agent_id: agent,
  workflow_id: workflow,
  checks: [{ name: 'a', kind: 'expr', expr: 'true' }],
})
/** Pairs of mutually exclusive fields. */
const rivals: Readonly<Record<string, string>> = { loop_id: 'workflow_id', user_id: 'agent_id' }
/**
 * Returns the other fields of the object at a location: those of the base, and those that the
 * schema or a check of the row requires.
 */
function besides(schema: Schema, key: string, base: JsonObject, place: Place): JsonObject {
  const members = Object.entries(schema.properties ?? {})
  const known = companions(place)
  const wanted = members.flatMap(([name, { type, enum: choices, ...part }]): [string, unknown][] =>
    Object.hasOwn(known, name) &&
    choices === undefined &&
    !('const' in part) &&
    rivals[key] !== name &&
    type === (Array.isArray(known[name]) ? 'array' : 'string')
      ? [[name, known[name]]]
      : [],
  )
  return { ...(exampleOf(schema) as JsonObject), ...Object.fromEntries(wanted), ...base }
}
/**
 * Returns the base, or an empty object if its constants differ from those of the schema. Each kind
 * of step, for example, has a constant `kind`.
 */
const ofKind = (schema: Schema, base: unknown): JsonObject =>
  isObject(base) &&
  Object.entries(schema.properties ?? {}).every(
    ([name, part]) => !('const' in part) || base[name] === part.const,
  )
    ? base
    : {}

/**
 * Returns the leaves of a schema that accept text or free JSON. Numbers, booleans, choices and
 * constants are excluded.
 */
function leavesOf(schema: Schema, path: readonly string[]): Leaf[] {
  if (schema.anyOf) return schema.anyOf.flatMap((branch) => leavesOf(branch, path))
  if (schema.enum || 'const' in schema) return []
  switch (schema.type) {
    case 'integer':
    case 'number':
    case 'boolean':
    case 'null':
      return []
    case 'array':
      return leavesOf(schema.items ?? {}, path).map(({ holding, ...leaf }) => ({
        ...leaf,
        holding: (value, base, place) => [
          holding(value, Array.isArray(base) ? base[0] : undefined, place),
        ],
      }))
    case 'object':
      return membersOf(schema).flatMap(([name, member]) =>
        leavesOf(member, [...path, name]).map(({ holding, ...leaf }) => {
          const isBlock = name === '*' && path.at(-1) === 'content'
          const key = isBlock ? 'text' : name === '*' ? 'any' : name
          return {
            ...leaf,
            holding: (value: unknown, base: unknown, place: Place) => {
              const own = ofKind(schema, base)
              return {
                ...besides(schema, key, own, place),
                ...(isBlock && { type: 'text' }),
                [key]: holding(value, own[key], place),
              }
            },
          }
        }),
      )
    default:
      return [{ path, longest: schema.maxLength, holding: (value) => value }]
  }
}
const membersOf = ({ properties, patternProperties }: Schema): [string, Schema][] => [
  ...Object.entries(properties ?? {}),
  ...Object.values(patternProperties ?? {}).map((member): [string, Schema] => ['*', member]),
  ...(properties || patternProperties ? [] : [['*', {}] as [string, Schema]]),
]

/** Returns a body that a row accepts, with steps if the row accepts steps. */
export const baseOf = (row: RowName, place: Place): object => ({
  ...(row === 'workflow.update' && { spec: instant() }),
  ...(row === 'loop.update' && instant()),
  ...bodyFor(row, place),
})

/**
 * Returns every location of the table. `unknown` lists the locations whose names are not
 * classified.
 */
export function textPlaces(): { readonly places: TextPlace[]; readonly unknown: string[] } {
  const places = new Map<string, TextPlace>()
  const unknown: string[] = []
  const note = (row: RowName, where: 'body' | 'query', leaf: Leaf) => {
    const kind = kindOf(leaf.path)
    const id = `${row} ${where} ${leaf.path.join('.')}`
    if (kind === undefined) unknown.push(id)
    else if (!places.has(id))
      places.set(id, {
        row,
        kind,
        path: leaf.path,
        in: where,
        longest: leaf.longest,
        holding: (value, place) =>
          leaf.holding(value, where === 'body' ? baseOf(row, place) : {}, place) as object,
        put: (value, fields, place) => leaf.holding(value, fields, place) as object,
      })
  }
  for (const [row, { shape }] of rows) {
    for (const leaf of leavesOf((shape.body ?? { type: 'null' }) as Schema, []))
      note(row, 'body', leaf)
    for (const leaf of leavesOf((shape.query ?? { type: 'null' }) as Schema, []))
      note(row, 'query', leaf)
  }
  return { places: [...places.values()], unknown }
}
