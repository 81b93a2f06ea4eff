/**
 * The configuration of the definition resolver, and the return origins of OAuth. Each request
 * replaces a configuration as a whole. A repeat changes nothing.
 *
 * Invariant: the token is sealed, and never part of a reply.
 */
import { timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { isRefusal, type Refusal, refuseFields } from '../../../protocol/errors.ts'
import {
  maskUrl,
  resolveMasks,
  type SealedUrl,
  type SentUrl,
  sameParts,
  sealedUrlOf,
} from '../../../protocol/masked-url.ts'
import type { ResolverEvent, ResolverExtra, resolver } from '../../../protocol/resolver/rows.ts'
import {
  type DefinitionResolver,
  type OauthOrigins,
  originsOf,
  type ResolverConfiguration,
  resolverDefaults,
  settingsOf,
  shownResolver,
  sourceOf,
} from '../../../protocol/resolver/schema.ts'
import type { Changes } from '../../../protocol/workflows/rows.ts'
import type { Cause, Decision } from '../../actor.ts'
import { differences } from '../../configuration.ts'
import { partsAfter } from '../../sealed-url.ts'
import type { OrganizationOptions, OrganizationState } from './state.ts'

type Rows = typeof resolver
type Put = Input<Rows['resolver.put']> & ResolverExtra & SentUrl

function urlOf(
  url: string | undefined,
  { url_parts: sent }: SentUrl,
  before: ResolverConfiguration | undefined,
): SealedUrl | Refusal | undefined {
  if (url === undefined) return undefined
  const known = before?.settings.endpoint_url
  const kept = resolveMasks(
    url,
    sent,
    known === undefined ? undefined : sealedUrlOf(known, before ?? {}),
  )
  return 'fault' in kept
    ? refuseFields({ field: 'endpoint_url', message: kept.fault, actual: maskUrl(url) })
    : kept
}

/** Replaces the configuration of the resolver. */
export function putResolver(
  options: OrganizationOptions,
  state: OrganizationState,
  input: Put,
  { at }: Cause,
): Decision<ResolverEvent, DefinitionResolver> {
  const source = sourceOf(input.source, options.brand)
  if (!source)
    return refuseFields({
      field: 'source',
      message: 'must be one of the expected values',
      expected: [`${options.brand.toLowerCase()}_stored`, 'client_resolver'],
      actual: input.source,
    })
  const before = state.resolver
  const url = urlOf(input.endpoint_url, input, before)
  if (isRefusal(url)) return url
  const { endpoint_url: _, ...put } = input
  const settings = settingsOf({ ...put, ...(url && { endpoint_url: url.url }) }, source)
  const { sealed_token } = input
  const setsToken =
    sealed_token === null
      ? before?.token !== undefined
      : sealed_token !== undefined && sealed_token.digest !== before?.token?.digest
  const known = before?.settings.endpoint_url
  const setsParts =
    url !== undefined &&
    !sameParts(known === undefined ? undefined : sealedUrlOf(known, before ?? {}), url)
  const changes: Changes = {
    ...differences(before?.settings ?? resolverDefaults, settings),
    ...(setsParts && { endpoint_url: { to: url.url } }),
    ...(setsToken && { token: { to: sealed_token === null ? 'removed' : 'set' } }),
  }
  if (before && Object.keys(changes).length === 0)
    return { events: [], reply: shownResolver(state, options.brand) }
  const event: ResolverEvent = {
    type: 'resolver.configured',
    settings,
    changes,
    url_parts: url?.parts ?? null,
    ...(setsToken && { token: sealed_token ?? null }),
  }
  const next = { ...state, resolver: configured(before, event, at) }
  return { events: [event], reply: shownResolver(next, options.brand) }
}
type On<T extends ResolverEvent['type']> = Extract<ResolverEvent, { readonly type: T }>
function configured(
  before: ResolverConfiguration | undefined,
  { settings, token, url_parts }: On<'resolver.configured'>,
  at: number,
): ResolverConfiguration {
  const next = token === undefined ? before?.token : (token ?? undefined)
  return {
    settings,
    updated_at: timestamp(at),
    ...(next && { token: next }),
    ...partsAfter(before?.url_parts, url_parts),
  }
}

/** Replaces the return origins. */
export function putOrigins(
  { oauth_origins: before = [] }: OrganizationState,
  input: Input<Rows['oauth_origins.put']>,
): Decision<ResolverEvent, OauthOrigins> {
  const origins = originsOf(input.origins)
  const changes = differences({ origins: before }, { origins })
  return {
    events:
      Object.keys(changes).length === 0
        ? []
        : [{ type: 'oauth_origins.replaced', origins, changes }],
    reply: { origins: [...origins] },
  }
}

/** Reducers for the events of the resolver and of the return origins. */
export const evolveResolver = {
  'resolver.configured': (
    state: OrganizationState,
    event: On<'resolver.configured'>,
    at: number,
  ): OrganizationState => {
    state.resolver = configured(state.resolver, event, at)
    return state
  },
  'oauth_origins.replaced': (
    state: OrganizationState,
    { origins }: On<'oauth_origins.replaced'>,
  ): OrganizationState => {
    state.oauth_origins = origins
    return state
  },
}
