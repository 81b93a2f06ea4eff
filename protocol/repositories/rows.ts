/**
 * Repository hosts of a project. A repository host is a service with git repositories, such as
 * GitHub, GitLab or an internal git server. Jobs in environments get credentials for these
 * repositories. The `provider` of a declared repository is the name of its host. The published
 * contract does not define these rows.
 *
 * Invariants:
 * R1. Keys and tokens are write-only. The journal contains them sealed. No answer contains them.
 * R2. A change to a host contains all keys and tokens of the host. A caller who cannot read them
 *     therefore cannot redirect them to another URL.
 */
import { type Static, Type } from 'typebox'
import { Closed, cutting, listOf, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Event } from '../entry.ts'
import type { FieldError } from '../errors.ts'
import { urlFault } from '../rules/url-fault.ts'

/**
 * Limits of repository hosts. `hosts`: number of hosts of one project. The others are lengths in
 * characters.
 */
export const repositoryHostLimits = {
  hosts: 50,
  name: 64,
  url: 1024,
  private_key: 16_384,
  token: 4096,
} as const

/**
 * The kinds of hosts, by the credentials that jobs get. `github_app`: installation tokens of a
 * GitHub App. `gitlab`: project access tokens, created with an API token. `token`: the stored
 * tokens themselves.
 */
const hostKinds = ['github_app', 'gitlab', 'token'] as const
export type HostKind = (typeof hostKinds)[number]
const Kind = Type.Enum([...hostKinds])

/** The secrets of a host. The kind of the host determines which of them are present. */
export interface HostSecrets {
  readonly private_key?: string
  readonly api_token?: string
  readonly read_token?: string
  readonly push_token?: string
}
const secretNames = ['private_key', 'api_token', 'read_token', 'push_token'] as const
type SecretName = (typeof secretNames)[number]

interface KindRules {
  /** The default URL of the host. */
  readonly url?: string
  /** The default user name of credentials. */
  readonly username: string
  readonly required: readonly (SecretName | 'app_id')[]
  readonly optional: readonly (SecretName | 'installation_id' | 'username')[]
}
/** The fields that each kind of host requires and allows, and its defaults. */
export const kindRules: Readonly<Record<HostKind, KindRules>> = {
  github_app: {
    url: 'https://github.com',
    username: 'x-access-token',
    required: ['app_id', 'private_key'],
    optional: ['installation_id'],
  },
  gitlab: {
    url: 'https://gitlab.com',
    username: 'oauth2',
    required: ['api_token'],
    optional: [],
  },
  token: {
    username: 'x-access-token',
    required: ['read_token'],
    optional: ['push_token', 'username'],
  },
}

const AppId = Type.String({
  pattern: '^[A-Za-z0-9._-]{1,64}$',
  description: 'App ID or client ID of the GitHub App',
})
const InstallationId = Type.String({
  pattern: '^[0-9]{1,19}$',
  description:
    'Id of the installation of the app; by default, the installation that has access to the ' +
    'repository',
})
const Username = Type.String({
  pattern: '^[^\\x00-\\x20:@/\\x7f]{1,128}$',
  description: 'User name of the credentials; x-access-token by default',
})

export const RepositoryHost = Type.Object({
  name: Type.String(),
  kind: Kind,
  url: Type.String({ description: 'Base URL of the repositories, without a trailing slash' }),
  app_id: Type.Optional(Type.String()),
  installation_id: Type.Optional(Type.String()),
  username: Type.Optional(Type.String()),
  secrets: Type.Array(Type.String(), { description: 'Names of the stored keys and tokens' }),
  version: Type.Integer({
    minimum: 1,
    description: 'Version of the record; increases with every change',
  }),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type RepositoryHost = Static<typeof RepositoryHost>

const secret = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }))
const { token, private_key } = repositoryHostLimits
export const PutRepositoryHost = Closed({
  kind: Kind,
  url: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: repositoryHostLimits.url,
      description:
        'Base URL of the repositories; by default https://github.com or https://gitlab.com, ' +
        'depending on the kind; required for the kind token',
    }),
  ),
  app_id: Type.Optional(AppId),
  installation_id: Type.Optional(InstallationId),
  username: Type.Optional(Username),
  private_key: secret(private_key, 'RSA key of the GitHub App in PEM; write-only'),
  api_token: secret(
    token,
    'GitLab token of a maintainer with the scope api, which creates project access tokens; ' +
      'write-only',
  ),
  read_token: secret(token, 'Token that can read the repositories; write-only'),
  push_token: secret(token, 'Token that can push; without it, nothing can be pushed; write-only'),
})
export type PutRepositoryHost = Static<typeof PutRepositoryHost>

/**
 * Printable ASCII without spaces: tokens are sent in HTTP headers and in lines of git's credential
 * protocol.
 */
const TOKEN = /^[\x21-\x7e]+$/

const baseUrlFault = (url: string): string | undefined =>
  urlFault(url, ['https:', 'http:'], 'must be an absolute address that begins with https://') ??
  (/[?#]/.test(url) ? 'must have neither a query nor a fragment' : undefined)
/** Returns the base URL in its stored form: normalized, without a trailing slash. */
const baseUrl = (url: string): string => new URL(url).href.replace(/\/+$/, '')

function check(body: PutRepositoryHost): FieldError[] {
  const { kind, url } = body
  const rules = kindRules[kind]
  const required: readonly string[] = [
    ...rules.required,
    ...(rules.url === undefined ? ['url'] : []),
  ]
  const allowed: readonly string[] = ['kind', 'url', ...rules.required, ...rules.optional]
  const fields = body as Readonly<Record<string, unknown>>
  const fault = url === undefined ? undefined : baseUrlFault(url)
  return [
    ...required
      .filter((field) => fields[field] === undefined)
      .map((field) => ({ field, message: `is required for hosts of the kind ${kind}` })),
    ...Object.keys(fields)
      .filter((field) => fields[field] !== undefined && !allowed.includes(field))
      .map((field) => ({ field, message: `is not allowed for hosts of the kind ${kind}` })),
    // The faults omit the invalid value (`actual`), because a URL or a token may be a secret.
    ...(fault === undefined ? [] : [{ field: 'url', message: fault }]),
    ...(['api_token', 'read_token', 'push_token'] as const)
      .filter((field) => body[field] !== undefined && !TOKEN.test(body[field]))
      .map((field) => ({ field, message: 'must consist of printable ASCII without spaces' })),
  ]
}

/**
 * Splits the body of a change into the secrets and the other fields. If the URL is missing, the
 * default URL of the kind is used.
 */
export function splitHost(body: PutRepositoryHost): {
  readonly host: HostFields
  readonly secrets: HostSecrets
} {
  const { kind, url, app_id, installation_id, username } = body
  const secrets = secretNames.flatMap((name) => {
    const value = body[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    host: {
      kind,
      url: baseUrl(url ?? kindRules[kind].url ?? ''),
      ...(app_id !== undefined && { app_id }),
      ...(installation_id !== undefined && { installation_id }),
      ...(username !== undefined && { username }),
      secrets: secrets.map(([name]) => name),
    },
    secrets: Object.fromEntries(secrets),
  }
}

const P = '/projects/:project/repository-hosts'
const tag = 'repository hosts'
const read = { tag, permission: 'project.view', answeredBy: 'gateway' } as const
const admin = { tag, permission: 'project.admin', to: { kind: 'project' } } as const

export const repositoryHosts = {
  'repository_host.list': query(`GET ${P}`, {
    ...read,
    summary: 'Repository hosts in the order of their names, without their keys and tokens',
    query: Closed(cutting),
    reply: listOf(RepositoryHost),
  }),
  'repository_host.get': query(`GET ${P}/:host_name`, {
    ...read,
    summary: 'One repository host',
    reply: RepositoryHost,
    errors: ['not_found'],
  }),
  'repository_host.put': command(`PUT ${P}/:host_name`, {
    ...admin,
    summary: 'Add or replace a repository host with its keys and tokens',
    body: PutRepositoryHost,
    check,
    reply: RepositoryHost,
    errors: ['conflict'],
  }),
  'repository_host.delete': command(`DELETE ${P}/:host_name`, {
    ...admin,
    summary: 'Delete a repository host; no new credentials are issued for its repositories',
    status: 204,
    errors: ['not_found'],
  }),
} as const

/** The fields that a change sets. */
export type HostFields = Omit<RepositoryHost, 'name' | 'version' | 'created_at' | 'updated_at'>
/** The secrets of a host as JSON, encrypted. Equal secrets of a project have equal digests. */
export interface HostMaterial {
  readonly sealed: string
  readonly digest: string
}
/** The data that the gateway adds to a change. The gateway also blanks the secrets in the body. */
export interface SealedHost {
  readonly host: HostFields
  readonly material: HostMaterial
}
/** A repository host with its sealed credential. */
export interface RepositoryHostWithMaterial {
  readonly host: RepositoryHost
  readonly material: HostMaterial
}
/** Events of a project about its repository hosts; `id` is the name of the host. */
export type RepositoryHostEvent =
  | (Event & {
      readonly type: 'repository_host.stored'
      readonly id: string
      readonly host: RepositoryHost
      readonly material: HostMaterial
    })
  | (Event & { readonly type: 'repository_host.deleted'; readonly id: string })
