/**
 * The configuration of the organization's definition resolver, and the origins to which an OAuth
 * flow may return. The resolver is a service that the organization operates. Before a turn, Baton
 * requests the definition of the agent from the resolver; `callout.ts` defines this call.
 *
 * Invariants:
 * R1. The bearer token is write-only. The journal contains it sealed. No response contains it.
 * R2. The query values of the endpoint URL are sealed, and shown as `***` (`masked-url.ts`).
 */
import { type Static, Type } from 'typebox'
import { Closed, Timestamp, timestamp } from '../common.ts'
import type { FieldError } from '../errors.ts'
import { maskUrl, queryFault, type UrlParts } from '../masked-url.ts'
import { fragmentFault, urlFault } from '../rules/url-fault.ts'

/**
 * Limits of the configuration. Lengths are in characters. `origins`: maximum number of stored
 * origins.
 */
export const resolverLimits = {
  url: 2048,
  token: 4096,
  timeout_ms: 30_000,
  /** Maximum of `revalidate_after_s` and of `stale_max_age_s`, in seconds: ten years. */
  age_s: 315_360_000,
  origins: 20,
  /** Maximum number of origins in a request, including duplicates. */
  sent_origins: 200,
  origin: 300,
} as const

/**
 * The defaults of omitted settings. If `revalidate_after_s` is 0, every turn causes a call. If
 * `stale_max_age_s` is 0, the age of a stored definition is not limited.
 */
export const resolverDefaults = {
  source: 'stored',
  timeout_ms: 2000,
  protocol_version: 1,
  revalidate_after_s: 0,
  stale_max_age_s: 0,
  on_unavailable: 'last_known_good',
} as const satisfies Partial<ResolverSettings>

/** `stored`: definitions that Baton stores. `client_resolver`: definitions from the endpoint. */
type ResolverSource = 'stored' | 'client_resolver'
/** The behavior when the endpoint gives no valid response. */
type OnUnavailable = 'last_known_good' | 'fail'
const OnUnavailable = Type.Enum(['last_known_good', 'fail'])
const Source = Type.String({
  pattern: '^(client_resolver|([a-z][a-z0-9-]*_)?stored)$',
  description: 'Source of the definitions of agents: <brand>_stored or client_resolver',
})
const Age = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: resolverLimits.age_s, description }))

export const DefinitionResolver = Type.Object({
  source: Source,
  endpoint_url: Type.Optional(Type.String()),
  auth_configured: Type.Boolean(),
  timeout_ms: Type.Integer(),
  protocol_version: Type.Integer(),
  revalidate_after_s: Type.Integer(),
  stale_max_age_s: Type.Integer(),
  on_unavailable: OnUnavailable,
  updated_at: Timestamp,
})
export type DefinitionResolver = Static<typeof DefinitionResolver>

/** The token is sent in an HTTP header. An empty token removes the stored token. */
const Token = Type.String({
  maxLength: resolverLimits.token,
  pattern: '^[\\x21-\\x7e]*$',
  description:
    'Bearer token; write-only; if absent, the token is not changed; an empty token removes it',
})
export const PutDefinitionResolver = Closed({
  source: Source,
  endpoint_url: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: resolverLimits.url,
      description: 'URL of the resolver; begins with https://; required with client_resolver',
    }),
  ),
  auth: Type.Optional(
    Closed({
      mode: Type.Optional(Type.Enum(['bearer'])),
      token: Type.Optional(Token),
    }),
  ),
  timeout_ms: Type.Optional(
    Type.Integer({
      maximum: resolverLimits.timeout_ms,
      description: 'Time limit of one call in milliseconds; 2000 if absent or not positive',
    }),
  ),
  protocol_version: Type.Optional(Type.Integer({ minimum: 1, maximum: 1 })),
  revalidate_after_s: Age('Age up to which a definition is used without a call; 0: never'),
  stale_max_age_s: Age('Age up to which last_known_good uses a definition; 0: any age'),
  on_unavailable: Type.Optional(OnUnavailable),
})
export type PutDefinitionResolver = Static<typeof PutDefinitionResolver>

/** The stored configuration, with a masked URL. */
export interface ResolverSettings {
  readonly source: ResolverSource
  readonly endpoint_url?: string
  readonly timeout_ms: number
  readonly protocol_version: 1
  readonly revalidate_after_s: number
  readonly stale_max_age_s: number
  readonly on_unavailable: OnUnavailable
}
/** A sealed token. Equal digests mean equal tokens. */
export interface SealedToken {
  readonly sealed: string
  readonly digest: string
}
/** The configuration of the definition resolver with its sealed values. */
export interface ResolverConfiguration extends UrlParts {
  readonly settings: ResolverSettings
  readonly token?: SealedToken
  readonly updated_at: string
}

/** Returns the faults that schemas cannot detect in a request. */
export function checkResolver({ source, endpoint_url }: PutDefinitionResolver): FieldError[] {
  if (endpoint_url === undefined)
    return source === 'client_resolver'
      ? [{ field: 'endpoint_url', message: 'is required for the source client_resolver' }]
      : []
  const message =
    urlFault(endpoint_url, ['https:'], 'must be an absolute address that begins with https://') ??
    fragmentFault(endpoint_url) ??
    queryFault(endpoint_url)
  return message === undefined
    ? []
    : [{ field: 'endpoint_url', message, actual: maskUrl(endpoint_url) }]
}

/**
 * Returns the settings that a request stores. Omitted settings get their default values.
 * @param source the source without its brand.
 */
export function settingsOf(
  put: PutDefinitionResolver,
  source: ResolverSettings['source'],
): ResolverSettings {
  const { endpoint_url, timeout_ms = 0, revalidate_after_s, stale_max_age_s, on_unavailable } = put
  const defaults = resolverDefaults
  return {
    source,
    ...(endpoint_url !== undefined && { endpoint_url }),
    timeout_ms: timeout_ms > 0 ? timeout_ms : defaults.timeout_ms,
    protocol_version: 1,
    revalidate_after_s: revalidate_after_s ?? defaults.revalidate_after_s,
    stale_max_age_s: stale_max_age_s ?? defaults.stale_max_age_s,
    on_unavailable: on_unavailable ?? defaults.on_unavailable,
  }
}
/**
 * Returns the source without the prefix for the brand. Returns undefined for any other text, such
 * as a source with the prefix of another brand.
 */
export const sourceOf = (text: string, brand: string): ResolverSource | undefined =>
  text === 'client_resolver'
    ? text
    : text === 'stored' || text === `${brand.toLowerCase()}_stored`
      ? 'stored'
      : undefined

/**
 * Returns the configuration as clients receive it. Before the first configuration, `updated_at` is
 * the creation time of the oldest project, which is created together with the organization.
 */
export const shownResolver = (
  {
    resolver: kept,
    projects,
  }: {
    readonly resolver?: ResolverConfiguration
    readonly projects: Readonly<Record<string, { readonly created_at: string }>>
  },
  brand: string,
): DefinitionResolver => {
  const settings: ResolverSettings = kept?.settings ?? resolverDefaults
  const { endpoint_url } = settings
  return {
    ...settings,
    source: settings.source === 'stored' ? `${brand.toLowerCase()}_stored` : settings.source,
    ...(endpoint_url !== undefined && { endpoint_url: maskUrl(endpoint_url) }),
    auth_configured: kept?.token !== undefined,
    updated_at: kept?.updated_at ?? Object.values(projects)[0]?.created_at ?? timestamp(0),
  }
}

export const OauthOrigins = Closed({ origins: Type.Array(Type.String()) })
export type OauthOrigins = Static<typeof OauthOrigins>
export const PutOauthOrigins = Closed({
  origins: Type.Array(Type.String({ minLength: 1, maxLength: resolverLimits.origin }), {
    maxItems: resolverLimits.sent_origins,
    description: 'Exact https origins: scheme, host, and a port if it is not 443; at most 20',
  }),
})

const ORIGIN = /^https:\/\/(?:\[[0-9a-f:.]+\]|[^\s/?#@\\*:[\]]+)(?::\d{1,5})?$/i
/**
 * Returns the origin in its stored form: lower-case host, without the default port. Returns
 * undefined when the text is not an exact https origin.
 */
function normalOrigin(text: string): string | undefined {
  return ORIGIN.test(text) && URL.canParse(text) ? new URL(text).origin : undefined
}
/** Returns the origins in their stored form, without duplicates, in order of first occurrence. */
export const originsOf = (texts: readonly string[]): readonly string[] => [
  ...new Set(texts.flatMap((text) => normalOrigin(text) ?? [])),
]
/** Returns the faults of a list of origins. */
export function checkOrigins({ origins }: OauthOrigins): FieldError[] {
  const faults = origins.flatMap((text, index): FieldError[] =>
    normalOrigin(text) === undefined
      ? [
          {
            field: `origins[${index}]`,
            message: 'must be an https origin: scheme, host and, optionally, a port, nothing else',
            actual: text,
          },
        ]
      : [],
  )
  const count = originsOf(origins).length
  return count > resolverLimits.origins
    ? [
        ...faults,
        { field: 'origins', message: `must be at most ${resolverLimits.origins}`, actual: count },
      ]
    : faults
}
