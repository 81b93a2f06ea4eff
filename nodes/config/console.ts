/** The settings for signing in to the console: lifetimes of sessions, and the OpenID provider. */
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { readJson } from './json.ts'
import { any, duration, each, matching, type Parse, secret, url } from './parse.ts'
import { optional, setting, type ValuesOf } from './setting.ts'

const Name = Type.String({ minLength: 1, maxLength: 256 })
const Roles = Type.Union([Name, Type.Array(Name, { minItems: 1, maxItems: 16 })])
const Mapping = Type.Record(Name, Type.Record(Name, Roles))

/**
 * Parses the mapping from groups to the roles that their members have in each project. The text is
 * JSON, or the path of a file with JSON.
 */
const mapping: Parse<Static<typeof Mapping>> = (text) => {
  const wrong =
    'must be JSON such as {"platform": {"default": "Admin"}, "*": {"*": "Viewer"}}, ' +
    'or the path of a file with it'
  const read = readJson(text)
  return 'value' in read && Value.Check(Mapping, read.value) ? read.value : { wrong }
}

/** `http:` is accepted only for an issuer on this machine. */
const issuer = url(
  /^(https:\/\/[^\s?#]+|http:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?(\/[^\s?#]*)?)$/,
  'must be an https URL without a query, such as https://login.example.org/realms/main',
)

export const consoleTable = {
  BATON_CONSOLE_IDLE: setting(
    '12h',
    duration(1000, 60, 2_592_000),
    'Time without a request after which a console session ends',
  ),
  BATON_CONSOLE_LIFETIME: setting(
    '168h',
    duration(1000, 60, 31_536_000),
    'Time after which a console session ends and its person signs in again',
  ),
  BATON_OIDC_ISSUER: optional(
    issuer,
    'Issuer URL of the OpenID provider with which people sign in to the console; ' +
      'if absent, they sign in with keys and tokens only',
  ),
  BATON_OIDC_CLIENT_ID: optional(any, 'Client id of this installation at the OpenID provider'),
  BATON_OIDC_CLIENT_SECRET: optional(
    secret(matching(/^[\x21-\x7e]{1,512}$/, 'must be 1 to 512 characters without spaces')),
    'Client secret at the OpenID provider; if absent, the client is public and uses PKCE only',
  ),
  BATON_OIDC_SCOPES: setting(
    'openid profile email',
    matching(/^(?=.*\bopenid\b)[\x21-\x7e]+( [\x21-\x7e]+)*$/, 'must be scopes with openid'),
    'Scopes that are requested from the OpenID provider, separated by spaces',
  ),
  BATON_OIDC_GROUPS_CLAIM: setting(
    'groups',
    matching(/^[\x21-\x7e]{1,256}$/, 'must be the name of a claim'),
    'Claim with the groups of a person; dots separate members of nested claims',
  ),
  BATON_OIDC_ROLES: optional(
    mapping,
    'Roles in projects by group of the OpenID provider, as JSON or the path of a JSON file; ' +
      'see docs/operations/sign-in.md',
  ),
  BATON_OIDC_NAME: setting(
    'single sign-on',
    matching(/^[^\p{C}]{1,64}$/u, 'must be 1 to 64 printable characters'),
    'Name of the OpenID provider on the sign-in page',
  ),
  BATON_OIDC_DOMAINS: setting(
    '',
    each(
      matching(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/, 'must be domains such as example.org, in lower case'),
    ),
    'Domains of the verified e-mail addresses with which people may sign in, comma-separated; ' +
      'if empty, all',
  ),
} as const
type ConsoleValues = ValuesOf<typeof consoleTable>

/** The OpenID provider with which people sign in to the console. */
export interface OidcConfig {
  readonly issuer: string
  readonly client_id: string
  readonly client_secret?: string
  readonly scopes: string
  readonly groups_claim: string
  readonly name: string
  readonly domains: readonly string[]
  /**
   * Role names or ids, by group and then by the handle or id of a project. The group `*` stands for
   * every person, and the project `*` for every project.
   */
  readonly roles: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>
}
export interface ConsoleConfig {
  /** The settings that gateways use. `idle` and `lifetime` are in milliseconds. */
  readonly sessions: { readonly origin?: string; readonly idle: number; readonly lifetime: number }
  readonly oidc?: OidcConfig
}

/**
 * Combines the settings of the console. Returns a message when settings are missing.
 * @param public_url the configured URL of the gateways.
 */
export function consoleOf(
  v: ConsoleValues,
  public_url: string | undefined,
): ConsoleConfig | string {
  const { BATON_OIDC_ISSUER: from, BATON_OIDC_CLIENT_ID: id, BATON_OIDC_ROLES: roles } = v
  const sessions = {
    ...(public_url !== undefined && { origin: new URL(public_url).origin }),
    idle: v.BATON_CONSOLE_IDLE * 1000,
    lifetime: v.BATON_CONSOLE_LIFETIME * 1000,
  }
  if (from === undefined) return { sessions }
  if (id === undefined)
    return 'BATON_OIDC_ISSUER is set, but the client is missing: set BATON_OIDC_CLIENT_ID'
  if (roles === undefined)
    return 'BATON_OIDC_ISSUER is set, but no group has a role: set BATON_OIDC_ROLES'
  return {
    sessions,
    oidc: {
      issuer: from,
      client_id: id,
      ...(v.BATON_OIDC_CLIENT_SECRET !== undefined && {
        client_secret: v.BATON_OIDC_CLIENT_SECRET,
      }),
      scopes: v.BATON_OIDC_SCOPES,
      groups_claim: v.BATON_OIDC_GROUPS_CLAIM,
      name: v.BATON_OIDC_NAME,
      domains: v.BATON_OIDC_DOMAINS,
      roles: Object.fromEntries(
        Object.entries(roles).map(([group, projects]) => [
          group,
          Object.fromEntries(
            Object.entries(projects).map(([project, given]) => [project, [given].flat()]),
          ),
        ]),
      ),
    },
  }
}
