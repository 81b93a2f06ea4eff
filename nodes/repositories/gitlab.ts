/**
 * Creates GitLab tokens for one repository. They are project access tokens, which are created with
 * the stored API token
 * (https://docs.gitlab.com/api/project_access_tokens/#create-a-project-access-token). Unlike the
 * stored token, such a token is valid for one project, has only the scopes of git, and expires
 * soon. GitLab counts its lifetime in days, in UTC.
 */
import type { IssuedToken, TokenFailure, TokenRequest } from '../../protocol/repositories/token.ts'
import { type CallApi, denied, isToken, unavailable, unexpected } from './api.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Minimum lifetime of a new token in milliseconds. */
const MIN_LIFETIME_MS = HOUR_MS
/** Role (reporter, developer) and scopes by access. */
const RIGHTS = {
  read: { access_level: 20, scopes: ['read_repository'] },
  write: { access_level: 30, scopes: ['read_repository', 'write_repository'] },
} as const

/** Returns the earliest midnight (Unix milliseconds) at which a new token may expire. */
export const gitlabExpiry = (now: number): number =>
  Math.ceil((now + MIN_LIFETIME_MS) / DAY_MS) * DAY_MS

/** Creates a token. Failures are returned, never thrown. */
export async function gitlabToken(
  call: CallApi,
  { host, secrets, full_name, access }: TokenRequest,
  now: number,
): Promise<IssuedToken | TokenFailure> {
  const url = `${host.url}/api/v4/projects/${encodeURIComponent(full_name)}/access_tokens`
  const expires_at = gitlabExpiry(now)
  const answer = await call({
    url,
    headers: { 'private-token': secrets.api_token ?? '' },
    body: {
      name: `environments: ${access}`,
      ...RIGHTS[access],
      expires_at: new Date(expires_at).toISOString().slice(0, 10),
    },
  })
  if ('failed' in answer) return answer
  const { status, body } = answer
  if (status === 403 || status === 404)
    return denied(
      `The API token of the repository host ${new URL(url).host} may not create access tokens for ` +
        `${full_name}; its user must be a maintainer there.`,
    )
  if (status !== 201) return unexpected(url, status)
  return isToken(body['token'])
    ? { token: body['token'], expires_at }
    : unavailable(`The repository host ${new URL(url).host} gave an answer without a token.`)
}
