/**
 * Stand-ins for GitHub and GitLab. They implement the parts of the APIs that the service calls,
 * over real HTTP on loopback. The stand-in for GitHub checks the signature and the times of the
 * app's JWT.
 */
import { type KeyObject, verify } from 'node:crypto'
import { createServer } from 'node:http'

interface ApiRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readonly<Record<string, unknown>>
}
interface ApiAnswer {
  readonly status: number
  readonly body?: unknown
}
export interface TestApi {
  readonly url: string
  readonly requests: readonly ApiRequest[]
  /** If set, all requests are answered with this status. */
  failing: number | undefined
  /** If set, requests are answered only after this promise resolves. */
  waiting: Promise<void> | undefined
  close(): Promise<void>
}

async function serve(answer: (request: ApiRequest) => ApiAnswer): Promise<TestApi> {
  const requests: ApiRequest[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += String(part)
    const { method = '', url = '', headers } = request
    const received: ApiRequest = {
      method,
      path: url,
      headers,
      body: text === '' ? {} : JSON.parse(text),
    }
    requests.push(received)
    await api.waiting
    const { status, body } =
      api.failing === undefined ? answer(received) : { status: api.failing, body: {} }
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body ?? {}))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  const api: TestApi = {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    requests,
    failing: undefined,
    waiting: undefined,
    close: async () => {
      server.closeAllConnections()
      await new Promise<void>((done) => server.close(() => done()))
    },
  }
  return api
}

const decoded = (part = ''): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, 'base64url').toString() || '{}')

/** Returns what is wrong with an app's JWT; undefined if GitHub would accept it. */
function jwtFault(token: string, app_id: string, key: KeyObject): string | undefined {
  const [head = '', payload = '', signature = ''] = token.split('.')
  const { alg } = decoded(head)
  const { iss, iat, exp } = decoded(payload)
  const now = Date.now() / 1000
  if (alg !== 'RS256') return 'algorithm'
  if (
    !verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${payload}`),
      key,
      Buffer.from(signature, 'base64url'),
    )
  )
    return 'signature'
  if (String(iss) !== app_id) return 'issuer'
  return Number(iat) > now || Number(exp) < now || Number(exp) - now > 600 ? 'times' : undefined
}

export interface TestApp {
  readonly app_id: string
  readonly key: KeyObject
  /** Installation id by owner. */
  readonly installations: Readonly<Record<string, number>>
  /** Full names of the installations' repositories. */
  readonly repositories: readonly string[]
  /** The permission on contents that is granted to the app. */
  contents: 'read' | 'write'
}

/** Starts a stand-in for a GitHub server. Tokens are `ghs_<access>_<repository>_<number>`. */
export function startGitHub(app: () => TestApp): Promise<TestApi> {
  let issued = 0
  return serve(({ method, path, headers, body }) => {
    const { app_id, key, installations, repositories, contents } = app()
    const token = /^Bearer (.+)$/.exec(String(headers['authorization']))?.[1] ?? ''
    const fault = jwtFault(token, app_id, key)
    if (fault !== undefined) return { status: 401, body: { message: fault } }
    const [, owner = '', name = ''] =
      /^\/api\/v3\/repos\/([^/]+)\/([^/]+)\/installation$/.exec(path) ?? []
    if (method === 'GET' && repositories.includes(`${owner}/${name}`))
      return { status: 200, body: { id: installations[owner] } }
    const [, id] = /^\/api\/v3\/app\/installations\/(\d+)\/access_tokens$/.exec(path) ?? []
    const account = Object.keys(installations).find((one) => String(installations[one]) === id)
    if (method !== 'POST' || account === undefined) return { status: 404 }
    const [wanted, ...others] = body['repositories'] as string[]
    const { contents: access, ...rest } = body['permissions'] as Record<string, string>
    const known = repositories.includes(`${account}/${wanted}`)
    if (others.length > 0 || !known || Object.keys(rest).length > 0) return { status: 422 }
    if (access !== 'read' && access !== contents) return { status: 422 }
    return {
      status: 201,
      body: {
        token: `ghs_${access}_${wanted}_${++issued}`,
        expires_at: new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z'),
        permissions: { contents: access },
        repositories: [{ id: 1, full_name: `${account}/${wanted}` }],
      },
    }
  })
}

/** Starts a stand-in for a GitLab server. Tokens are `glpat-<scopes>-<number>`. */
export function startGitLab(
  api_token: () => string,
  projects: readonly string[],
): Promise<TestApi> {
  let issued = 0
  return serve(({ method, path, headers, body }) => {
    if (headers['private-token'] !== api_token()) return { status: 401 }
    const [, project = ''] = /^\/api\/v4\/projects\/([^/]+)\/access_tokens$/.exec(path) ?? []
    if (method !== 'POST' || !projects.includes(decodeURIComponent(project))) return { status: 404 }
    const { expires_at, scopes, access_level, name } = body
    const valid =
      /^\d{4}-\d\d-\d\d$/.test(String(expires_at)) &&
      Date.parse(String(expires_at)) > Date.now() &&
      Array.isArray(scopes) &&
      typeof name === 'string' &&
      access_level === (scopes.length === 1 ? 20 : 30)
    return valid
      ? { status: 201, body: { token: `glpat-${scopes.join('-')}-${++issued}`, expires_at } }
      : { status: 400 }
  })
}
