/**
 * Signs people in with the OpenID provider of the installation: authorization code flow with PKCE,
 * state and nonce. `openid-client` implements the protocol and validates the responses.
 *
 * Invariants:
 * P1. An ID token is accepted only if its signature is valid and it was issued by this issuer, for
 *     this client and for this sign-in (nonce).
 * P2. A log line contains the kind of a failure, never a code, a token or a claim.
 */
import * as client from 'openid-client'
import type {
  SignedInPerson,
  SignInFailure,
  SignInProvider,
  SignInSecrets,
} from '../../../gateway/auth/console/provider.ts'
import type { Log } from '../../../gateway/ports.ts'
import type { OidcConfig } from '../../config/console.ts'
import type { Guard } from '../guard.ts'
import { type Claims, isComplete, personOf } from './claims.ts'
import { createProviderFetch, ProviderUnavailable } from './fetch.ts'

/** Milliseconds for which the provider's metadata is reused. */
const REUSE_MS = 600_000
/** Tolerated clock skew in seconds. */
const CLOCK_TOLERANCE_S = 30

interface Parts {
  readonly now: () => number
  readonly log: Log
}

/** Creates the port to the provider. The provider is contacted at the first sign-in. */
export function createSignInProvider(
  guard: Guard,
  config: OidcConfig,
  { now, log }: Parts,
): SignInProvider {
  const { issuer, client_id, client_secret, scopes, name, domains, roles } = config
  const fetch = createProviderFetch(guard, issuer)
  const isPlain = issuer.startsWith('http:')
  const metadata = {
    [client.clockTolerance]: CLOCK_TOLERANCE_S,
    ...(client_secret !== undefined && { client_secret }),
  }
  let known: { readonly until: number; readonly server: Promise<client.ServerMetadata> } | undefined

  async function discover(): Promise<client.ServerMetadata> {
    const found = await client.discovery(new URL(issuer), client_id, metadata, client.None(), {
      [client.customFetch]: fetch,
      ...(isPlain && { execute: [client.allowInsecureRequests] }),
    })
    return found.serverMetadata()
  }
  function serverNow(): Promise<client.ServerMetadata> {
    if (known && now() < known.until) return known.server
    const next = { until: now() + REUSE_MS, server: discover() }
    known = next
    next.server.catch(() => {
      if (known === next) known = undefined
    })
    return next.server
  }
  /**
   * Creates the client of one sign-in. A client caches the keys of the provider for minutes, and
   * during this time it would neither accept a new key nor reject a revoked one.
   */
  async function createClient(): Promise<client.Configuration> {
    const server = await serverNow()
    const configured = new client.Configuration(
      server,
      client_id,
      metadata,
      authenticationOf(server, client_secret),
    )
    configured[client.customFetch] = fetch
    if (isPlain) client.allowInsecureRequests(configured)
    client.enableNonRepudiationChecks(configured)
    return configured
  }
  function failed(error: unknown, step: 'begin' | 'finish'): SignInFailure {
    const failure = failureOf(error, step)
    log.warn(
      { event: 'sign_in_failed', step, failure, reason: reasonOf(error) },
      'sign-in with the OpenID provider failed',
    )
    return failure
  }

  return {
    name,
    domains,
    groups: roles,
    async begin(redirect_uri, { state, nonce, verifier }) {
      try {
        return client.buildAuthorizationUrl(await createClient(), {
          redirect_uri,
          scope: scopes,
          state,
          nonce,
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        })
      } catch (error) {
        return failed(error, 'begin')
      }
    },
    async finish(callback, secrets) {
      try {
        return await finished(await createClient(), callback, secrets, config)
      } catch (error) {
        return failed(error, 'finish')
      }
    },
  }
}

/**
 * Returns the method by which the client authenticates at the token endpoint. A secret is sent in
 * the body if the provider lists `client_secret_post`, and otherwise by Basic authentication.
 */
function authenticationOf(
  { token_endpoint_auth_methods_supported: supported }: client.ServerMetadata,
  secret: string | undefined,
): client.ClientAuth {
  if (secret === undefined) return client.None()
  // A provider that lists no methods supports `client_secret_basic` (OpenID Connect Discovery 1.0).
  return supported?.includes('client_secret_post')
    ? client.ClientSecretPost(secret)
    : client.ClientSecretBasic(secret)
}

async function finished(
  config: client.Configuration,
  callback: URL,
  { state, nonce, verifier }: SignInSecrets,
  { groups_claim, roles }: Pick<OidcConfig, 'groups_claim' | 'roles'>,
): Promise<SignedInPerson | SignInFailure> {
  const tokens = await client.authorizationCodeGrant(config, callback, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  })
  const token: Claims | undefined = tokens.claims()
  const subject = token?.['sub']
  if (!token || typeof subject !== 'string' || subject === '') return 'invalid'
  const server = config.serverMetadata()
  const more: Claims =
    server.userinfo_endpoint === undefined || isComplete(token, groups_claim)
      ? {}
      : await client.fetchUserInfo(config, tokens.access_token, subject)
  return personOf(server.issuer, subject, { ...more, ...token }, groups_claim, (group) =>
    Object.hasOwn(roles, group),
  )
}

/** Yields an error, its cause, the cause of the cause, and so on. */
function* causesOf(error: unknown): Generator<Error> {
  for (let one = error; one instanceof Error; one = one.cause) yield one
}
function failureOf(error: unknown, step: 'begin' | 'finish'): SignInFailure {
  for (const one of causesOf(error)) {
    if (one instanceof ProviderUnavailable) return 'unavailable'
    if (one instanceof client.AuthorizationResponseError)
      return one.error === 'temporarily_unavailable' || one.error === 'server_error'
        ? 'unavailable'
        : 'denied'
  }
  // `begin` only discovers the provider and builds a URL. If it fails, the provider is at fault.
  return step === 'begin' ? 'unavailable' : 'invalid'
}
/**
 * Describes an error and its causes for the log. Most messages are omitted, because they can
 * contain parts of a response.
 */
const reasonOf = (error: unknown): string =>
  [...causesOf(error)]
    .map((one) => {
      const { code, error: named } = one as { readonly code?: unknown; readonly error?: unknown }
      if (one instanceof ProviderUnavailable) return `${one.name}: ${one.message}`
      const kind = typeof code === 'string' ? code : one.name
      return typeof named === 'string' && /^[a-z_]{1,64}$/.test(named) ? `${kind} ${named}` : kind
    })
    .join(' < ')
