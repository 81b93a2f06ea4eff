/**
 * Requests tokens of a GitHub App for one repository. The app authenticates with a signed JWT and
 * requests an installation token that is limited to the repository and to its contents
 * (https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app). Such
 * a token is valid for one hour.
 *
 * `@octokit/auth-app` signs the JWT. Its installation tokens are not used, because it shares the
 * pending requests of a process under a key that includes neither the app nor the host. One project
 * could therefore get the token of another.
 */
import { parseTimestamp } from '../../protocol/common.ts'
import type { IssuedToken, TokenFailure, TokenRequest } from '../../protocol/repositories/token.ts'
import { type CallApi, denied, isToken, unavailable, unexpected } from './api.ts'

/** Returns the URL of the API of github.com, a subdomain of ghe.com, or a self-hosted server. */
export function githubApi(url: string): string {
  const { hostname } = new URL(url)
  return hostname === 'github.com' || hostname.endsWith('.ghe.com')
    ? `https://api.${hostname}`
    : `${url}/api/v3`
}

async function appHeaders({ host, secrets }: TokenRequest): Promise<Record<string, string>> {
  const { createAppAuth } = await import('@octokit/auth-app')
  const sign = createAppAuth({ appId: host.app_id ?? '', privateKey: secrets.private_key ?? '' })
  const { token } = await sign({ type: 'app' })
  return {
    accept: 'application/vnd.github+json',
    authorization: `Bearer ${token}`,
    'x-github-api-version': '2022-11-28',
  }
}

const noAccess = (full_name: string): TokenFailure =>
  denied(`The GitHub App has no access to ${full_name}; install it for this repository.`)

/** Requests a token. Failures are returned, never thrown. */
export async function githubToken(
  call: CallApi,
  request: TokenRequest,
): Promise<IssuedToken | TokenFailure> {
  const { host, full_name, access } = request
  const [owner = '', name = '', ...rest] = full_name.split('/')
  if (rest.length > 0) return denied(`${full_name} is no name of a repository of GitHub.`)
  const headers = await appHeaders(request)
  const api = githubApi(host.url)
  const installation = host.installation_id ?? (await installationOf(call, request, headers))
  if (typeof installation === 'object') return installation
  const url = `${api}/app/installations/${encodeURIComponent(installation)}/access_tokens`
  const answer = await call({
    url,
    headers,
    body: { repositories: [name], permissions: { contents: access } },
  })
  if ('failed' in answer) return answer
  const { status, body } = answer
  if (status === 404) return noAccess(full_name)
  if (status === 422)
    return denied(
      `GitHub gives no token with the permission "contents: ${access}" for ${full_name}; check the ` +
        'permissions and the repositories of the app.',
    )
  if (status !== 201) return unexpected(url, status)
  // The request names the repository without its owner, so the owner is checked in the response.
  if (!hasOnly(body['repositories'], `${owner}/${name}`)) return noAccess(full_name)
  const expires_at = parseTimestamp(String(body['expires_at']))
  return isToken(body['token']) && expires_at !== undefined
    ? { token: body['token'], expires_at }
    : unavailable(`The repository host ${new URL(url).host} gave an answer without a token.`)
}

async function installationOf(
  call: CallApi,
  { host, full_name }: TokenRequest,
  headers: Record<string, string>,
): Promise<string | TokenFailure> {
  const path = full_name.split('/').map(encodeURIComponent).join('/')
  const url = `${githubApi(host.url)}/repos/${path}/installation`
  const answer = await call({ url, headers })
  if ('failed' in answer) return answer
  if (answer.status === 404) return noAccess(full_name)
  const { id } = answer.body
  return answer.status === 200 && Number.isSafeInteger(id)
    ? String(id)
    : unexpected(url, answer.status)
}

const hasOnly = (repositories: unknown, full_name: string): boolean =>
  Array.isArray(repositories) &&
  repositories.length === 1 &&
  String((repositories[0] as { full_name?: unknown } | null)?.full_name).toLowerCase() ===
    full_name.toLowerCase()
