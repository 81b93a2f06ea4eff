/**
 * Issues tokens for repositories, and caches them in memory.
 *
 * Invariants:
 * T1. A token is reused only for the same project, repository, access and revision of the
 *     repository host. An old token is therefore never reused after the repository host was
 *     changed, or deleted and added again.
 * T2. A token is reused only if it remains valid for at least `MARGIN_MS`.
 * T3. Concurrent requests for the same token share one request to the repository host.
 * T4. The numbers of tokens and of requests in flight are bounded.
 */
import type { IssuedToken, TokenFailure, TokenRequest } from '../../protocol/repositories/token.ts'
import type { Post } from '../outbound/post.ts'
import { createApi, unavailable } from './api.ts'
import { githubToken } from './github.ts'
import { gitlabToken } from './gitlab.ts'

/**
 * Minimum remaining validity of a reused token in milliseconds, because a clone may take a long
 * time.
 */
const MARGIN_MS = 10 * 60_000
/**
 * Validity, in milliseconds, that is stated for a token that is stored with the repository host.
 * Callers request the token again after this time.
 */
const STORED_MS = 60 * 60_000
/** Maximum number of stored tokens, and of concurrent requests for tokens. */
const LIMITS = { tokens: 1000, requests: 64 } as const

export type TokenIssuer = (request: TokenRequest) => Promise<IssuedToken | TokenFailure>

interface IssuerParts {
  readonly post: Post
  /** Returns the current time in Unix milliseconds. */
  readonly now: () => number
  /** Value of the `User-Agent` header. */
  readonly agent: string
}

/** Creates the function that issues tokens. It returns failures, and never throws. */
export function createTokenIssuer({ post, now, agent }: IssuerParts): TokenIssuer {
  const call = createApi(post, agent)
  const tokens = new Map<string, IssuedToken>()
  const pending = new Map<string, Promise<IssuedToken | TokenFailure>>()

  const lasts = ({ expires_at }: IssuedToken): boolean => expires_at - now() >= MARGIN_MS
  function keep(key: string, issued: IssuedToken): void {
    tokens.set(key, issued)
    if (tokens.size <= LIMITS.tokens) return
    for (const [old, token] of tokens) if (!lasts(token)) tokens.delete(old)
    for (const old of tokens.keys()) {
      if (tokens.size <= LIMITS.tokens) return
      tokens.delete(old)
    }
  }
  async function request(key: string, wanted: TokenRequest): Promise<IssuedToken | TokenFailure> {
    try {
      const issued = await (wanted.host.kind === 'gitlab'
        ? gitlabToken(call, wanted, now())
        : githubToken(call, wanted))
      if (!('failed' in issued)) keep(key, issued)
      return issued
    } catch {
      // The error is not shown, because it may quote the key that signs a request.
      return unavailable(`The key of the repository host "${wanted.host.name}" cannot be used.`)
    } finally {
      pending.delete(key)
    }
  }

  return async (wanted) => {
    const { host, secrets, project, full_name, access, revision } = wanted
    if (host.kind === 'token') {
      const token = (access === 'write' ? secrets.push_token : undefined) ?? secrets.read_token
      return token === undefined
        ? unavailable(`The repository host "${host.name}" has no token; store one.`)
        : { token, expires_at: now() + STORED_MS }
    }
    const key = JSON.stringify([project, host.name, revision, full_name.toLowerCase(), access])
    const known = tokens.get(key)
    if (known && lasts(known)) return known
    const shared = pending.get(key)
    if (shared) return shared
    if (pending.size >= LIMITS.requests)
      return unavailable('Too many requests to repository hosts are in progress; retry later.')
    const begun = request(key, wanted)
    pending.set(key, begun)
    return begun
  }
}
