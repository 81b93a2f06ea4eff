/**
 * Rows, schemas and events of project actions, of the catalog of callable actions, and of the
 * records of calls.
 */
import { type Static, Type } from 'typebox'
import {
  Closed,
  cutting,
  Id,
  JsonObject,
  listOf,
  pageOf,
  paging,
  Tags,
  Timestamp,
} from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { FieldError, Refusal } from '../errors.ts'
import { type ChangedUrlParts, MASKED, maskUrl, queryFault, type UrlParts } from '../masked-url.ts'
import type { Patch } from '../patch.ts'
import { schemaFaults } from '../rules/json-schema/schema.ts'
import { fragmentFault, urlFault } from '../rules/url-fault.ts'
import type { Changes } from '../workflows/rows.ts'
import { Invocation } from './invocation.ts'

/** An action name: lower-case alphanumeric words, joined by dots, hyphens or underscores. */
const ActionName = Type.String({ pattern: '^[a-z0-9]+([._-][a-z0-9]+)*$', maxLength: 128 })
export const EndpointUrl = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: MASKED,
})
export const Annotations = Closed({
  idempotent: Type.Optional(Type.Boolean()),
  destructive: Type.Optional(Type.Boolean()),
  read_only: Type.Optional(Type.Boolean()),
})
const InvocationFormat = Type.Enum(['legacy', 'signed_context_v1'])
export const Title = Type.String({ maxLength: 160 })
export const Description = Type.String({ maxLength: 4096 })
const SigningSecret = Type.String({
  description: 'Signing secret, 32 bytes in base64; returned only in this response',
})

export const Action = Type.Object({
  id: Type.String(),
  name: Type.String(),
  endpoint_kind: Type.Enum(['http', 'worker']),
  invocation_format: InvocationFormat,
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  endpoint_url: Type.Optional(Type.String()),
  input_schema: Type.Optional(JsonObject),
  output_schema: Type.Optional(JsonObject),
  annotations: Type.Optional(JsonObject),
  tags: Type.Optional(Tags),
  signing_secret: Type.Optional(SigningSecret),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Action = Static<typeof Action>
export const CreateAction = Closed({
  name: ActionName,
  title: Type.Optional(Title),
  description: Type.Optional(Description),
  endpoint_kind: Type.Optional(Type.Enum(['http', 'worker'])),
  invocation_format: Type.Optional(InvocationFormat),
  endpoint_url: Type.Optional(EndpointUrl),
  input_schema: Type.Optional(JsonObject),
  output_schema: Type.Optional(JsonObject),
  annotations: Type.Optional(Annotations),
  tags: Type.Optional(Tags),
})
const UpdateAction = Closed({
  title: Type.Optional(Title),
  description: Type.Optional(Description),
  invocation_format: Type.Optional(InvocationFormat),
  endpoint_url: Type.Optional(EndpointUrl),
  input_schema: Type.Optional(JsonObject),
  output_schema: Type.Optional(JsonObject),
  annotations: Type.Optional(Type.Union([Annotations, Type.Null()])),
  tags: Type.Optional(Tags),
})
export const SecretRotated = Type.Object({
  secret_ref: Type.String(),
  secret_version: Type.Integer({ minimum: 1 }),
  signing_secret: SigningSecret,
})

/**
 * Returns the faults of an endpoint URL, or an empty list if the URL is undefined.
 * @param schemes accepted schemes with their colons, such as `https:`.
 */
export function checkEndpoint(url: string | undefined, schemes: readonly string[]): FieldError[] {
  if (url === undefined) return []
  const begin = schemes.map((scheme) => `${scheme}//`).join(' or ')
  const message =
    urlFault(url, schemes, `must be an absolute address that begins with ${begin}`) ??
    fragmentFault(url) ??
    queryFault(url)
  return message === undefined ? [] : [{ field: 'endpoint_url', message, actual: maskUrl(url) }]
}
/** Returns the faults of the input schema and the output schema of an action. */
export const checkSchemas = ({
  input_schema,
  output_schema,
}: {
  readonly input_schema?: unknown
  readonly output_schema?: unknown
}): FieldError[] => [
  ...(input_schema === undefined ? [] : schemaFaults(input_schema, 'input_schema')),
  ...(output_schema === undefined ? [] : schemaFaults(output_schema, 'output_schema')),
]
const http = ['http:', 'https:']
function checkCreate(body: Static<typeof CreateAction>): FieldError[] {
  const { endpoint_kind = 'http', endpoint_url, invocation_format } = body
  const faults = [...checkSchemas(body), ...checkEndpoint(endpoint_url, http)]
  if (endpoint_kind === 'http' && endpoint_url === undefined)
    faults.push({ field: 'endpoint_url', message: 'is required for the kind http' })
  if (endpoint_kind === 'worker' && endpoint_url !== undefined)
    faults.push({ field: 'endpoint_url', message: 'is not allowed with the kind worker' })
  if (endpoint_kind === 'worker' && invocation_format !== undefined)
    faults.push({ field: 'invocation_format', message: 'is not allowed with the kind worker' })
  return faults
}
const checkUpdate = (body: Static<typeof UpdateAction>): FieldError[] => [
  ...checkSchemas(body),
  ...checkEndpoint(body.endpoint_url, http),
]

const Invoke = Closed({
  input: Type.Optional(JsonObject),
  environment_id: Type.Optional(
    Type.String({
      pattern: '^env_[0-9A-HJKMNP-TV-Z]{26}$',
      description:
        'Id of the environment whose worker executes the action; required for actions named ' +
        'environment.*',
    }),
  ),
  timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 120,
      description: 'Seconds to wait for the result; 30 by default',
    }),
  ),
  dry_run: Type.Optional(
    Type.Boolean({
      description:
        'Validate the input without calling the action; only for actions annotated read_only',
    }),
  ),
})
export type Invoke = Static<typeof Invoke>
export const InvokeResult = Type.Object({
  status: Type.Enum(['active', 'completed', 'failed']),
  job_id: Type.Optional(Type.String()),
  run_id: Type.Optional(Type.String()),
  output: Type.Optional(JsonObject),
  error: Type.Optional(Type.String()),
})
export type InvokeResult = Static<typeof InvokeResult>

/** The reason why a catalog entry cannot be used yet. */
export const UnreadyReason = Type.Enum([
  'not_configured',
  'inactive',
  'expired',
  'provider_unavailable',
  'permission_missing',
  'not_implemented',
])
export const CatalogEntry = Type.Object({
  name: Type.String(),
  source: Type.Enum(['platform', 'custom']),
  definition_scope: Type.Enum(['platform', 'project', 'organization']),
  readiness: Type.Enum(['ready', 'needs_setup']),
  endpoint_kind: Type.Enum(['builtin', 'http', 'worker']),
  risk: Type.Enum(['low', 'medium', 'high', 'critical']),
  annotations: Type.Object({
    idempotent: Type.Boolean(),
    destructive: Type.Boolean(),
    read_only: Type.Boolean(),
  }),
  title: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  integration: Type.Optional(Type.String()),
  readiness_reason: Type.Optional(UnreadyReason),
  input_schema: Type.Optional(JsonObject),
  output_schema: Type.Optional(JsonObject),
  endpoint_url: Type.Optional(Type.String()),
  invocation_format: Type.Optional(Type.String()),
  execution: Type.Optional(
    Type.Object({
      supported_locations: Type.Array(Type.Enum(['managed', 'worker', 'environment'])),
      default_location: Type.String(),
      required_worker_capabilities: Type.Optional(Type.Array(Type.String())),
      queue: Type.Optional(Type.String()),
    }),
  ),
})
export type CatalogEntry = Static<typeof CatalogEntry>

const P = '/projects/:project'
const tag = 'actions'
const mine = { kind: 'project' } as const
/** Maximum size in bytes of the body of a request that defines an action. */
const LIMIT = 131_072

export const actions = {
  'action.list': query(`GET ${P}/actions`, {
    summary: 'Actions of the project, newest first',
    tag,
    permission: 'project.view',
    query: Closed(paging),
    reply: pageOf(Action),
  }),
  'action.create': command(`POST ${P}/actions`, {
    summary: 'Define an action that an HTTP endpoint or a worker executes',
    tag,
    permission: 'project.edit',
    to: mine,
    body: CreateAction,
    check: checkCreate,
    reply: Action,
    status: 201,
    limit: LIMIT,
    errors: ['already_exists', 'conflict'],
  }),
  'action.get': query(`GET ${P}/actions/:action_name`, {
    summary: 'One action',
    tag,
    permission: 'project.view',
    reply: Action,
    errors: ['not_found'],
  }),
  'action.update': command(`PATCH ${P}/actions/:action_name`, {
    summary: 'Change an action; its name and kind cannot change',
    tag,
    permission: 'project.edit',
    to: mine,
    body: UpdateAction,
    check: checkUpdate,
    reply: Action,
    limit: LIMIT,
    errors: ['not_found'],
  }),
  // Deleting and creating an HTTP action changes its address, so the deletion of an HTTP action also
  // needs `project.admin`. The same applies to an action with the name of an organization's action.
  'action.delete': command(`DELETE ${P}/actions/:action_name`, {
    summary: 'Delete an action',
    tag,
    permission: 'project.edit',
    to: mine,
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
  'action.rotate_secret': command(`POST ${P}/actions/:action_name/secret/rotate`, {
    summary: 'Replace the secret that signs the calls of an action; it applies from the next call',
    tag,
    permission: 'project.admin',
    to: mine,
    body: Closed({}),
    bodyOptional: true,
    reply: SecretRotated,
    errors: ['not_found'],
  }),
  'action.invoke': command(`POST ${P}/actions/:action_name/invoke`, {
    summary: 'Call an action of the catalog and wait for its result',
    tag,
    permission: 'actions.execute.*',
    to: { kind: 'run', mint: 'run' },
    body: Invoke,
    bodyOptional: true,
    reply: InvokeResult,
    status: 202,
    alsoStatus: [200],
    limit: 786_432,
    errors: ['not_found', 'conflict'],
  }),
  'invocation.list': query(`GET ${P}/action-invocations`, {
    summary: 'Calls of actions that have ended, newest first',
    viewer: true,
    tag,
    permission: 'project.view',
    reply: pageOf(Invocation),
    query: Closed({
      run_id: Type.Optional(Id),
      job_id: Type.Optional(Id),
      environment_id: Type.Optional(Id),
      action_name: Type.Optional(Id),
      action_id: Type.Optional(Id),
      definition_scope: Type.Optional(Type.Enum(['platform', 'project', 'organization'])),
      secret_version: Type.Optional(Type.Integer({ minimum: 1 })),
      delivery_id: Type.Optional(Id),
      correlation_id: Type.Optional(Id),
      status: Type.Optional(Id),
      ...paging,
    }),
  }),
  'catalog.actions': query(`GET ${P}/catalog/actions`, {
    summary: 'Actions and workflows that can be called in the project, and whether they are ready',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    query: Closed(cutting),
    reply: listOf(CatalogEntry),
  }),
  'catalog.action': query(`GET ${P}/catalog/actions/:action_name`, {
    summary: 'One entry of the catalog',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    reply: CatalogEntry,
    errors: ['not_found'],
  }),
} as const

/** A secret as its actor stores it: encrypted with the installation's key, never in plain text. */
export interface SealedSecret {
  readonly sealed: string
}
/**
 * The data that the gateway adds to commands that create a secret. `returned`: the reply must
 * contain the sealed secret, which the gateway unseals for the client. `returned` is absent when a
 * gateway of an older release sent the command.
 */
export interface NewSecret extends SealedSecret {
  readonly returned?: true
}
/**
 * The data that the gateway adds to the deletion of an action. `refused_http`: the refusal of the
 * deletion of an HTTP action, for a caller without `project.admin`.
 */
export interface RemovalExtra {
  readonly refused_http?: Refusal
}
/** A project action with the secret that signs its calls. Actions of workers have no secret. */
export interface ActionWithSecret extends UrlParts {
  readonly action: Action
  readonly secret?: SealedSecret & { readonly version: number }
}
/** Events of a project about its actions. */
export type ActionEvent =
  | (Event &
      UrlParts & {
        readonly type: 'action.created'
        readonly id: string
        readonly action: Action
        readonly secret?: SealedSecret
      })
  | (Event &
      ChangedUrlParts & {
        readonly type: 'action.updated'
        readonly id: string
        readonly name: string
        readonly action: Patch<Action>
        readonly changes: Changes
      })
  | (Event & { readonly type: 'action.deleted'; readonly id: string; readonly name: string })
  | (Event & {
      readonly type: 'action.secret_rotated'
      readonly id: string
      readonly name: string
      readonly version: number
      readonly secret: SealedSecret
    })
