/** Which browsers' pages may call, and what they may read of an answer. */
import type { GatewaySettings } from '../ports.ts'

/** Headers of every answer to a page of this origin; none when it may not call. */
export function corsHeaders(
  { cors }: GatewaySettings,
  origin: string | undefined,
): Readonly<Record<string, string>> {
  if (origin === undefined || cors.length === 0) return {}
  const any = cors.includes('*')
  if (!any && !cors.includes(origin)) return { Vary: 'Origin' }
  return {
    'Access-Control-Allow-Origin': any ? '*' : origin,
    'Access-Control-Expose-Headers':
      'X-Request-ID, Retry-After, Mcp-Session-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-RateLimit-Scope, X-RateLimit-Policy',
    ...(!any && { Vary: 'Origin' }),
  }
}

/** Headers of the answer to a preflight for a path with these methods. */
export function preflightHeaders(
  settings: GatewaySettings,
  origin: string | undefined,
  requested: string | undefined,
  methods: readonly string[],
): Readonly<Record<string, string>> {
  const headers = corsHeaders(settings, origin)
  if (!('Access-Control-Allow-Origin' in headers)) return headers
  return {
    ...headers,
    'Access-Control-Allow-Methods': methods.join(', '),
    'Access-Control-Allow-Headers':
      requested ?? 'Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-ID',
    'Access-Control-Max-Age': '7200',
  }
}
