/**
 * CORS headers: the browser origins that may call the API, and the response headers that their
 * pages may read. The origins are configured. The origins of MCP requests are checked in
 * `../mcp/mcp.ts`.
 */
import type { GatewaySettings } from '../ports.ts'

/**
 * Returns the CORS headers of the response to a request from the given origin. Returns no headers
 * if no origins are configured or the request has no origin, and only `Vary` for an origin that is
 * not allowed.
 */
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
      'ETag, X-Request-ID, Retry-After, Mcp-Session-Id, ' +
      'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-RateLimit-Scope, X-RateLimit-Policy',
    ...(!any && { Vary: 'Origin' }),
  }
}

/**
 * Returns the headers of the response to a preflight request.
 * @param requested the value of `Access-Control-Request-Headers`. All headers in it are allowed.
 * @param methods the methods of the path.
 */
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
      requested ??
      'Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-Request-ID',
    'Access-Control-Max-Age': '7200',
  }
}
