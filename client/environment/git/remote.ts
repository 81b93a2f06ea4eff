/** Converts and compares names and URLs of repositories, and requests their credentials. */
import { api } from '../../../protocol/api.ts'
import type { GitCredential } from '../../../protocol/environments/schema.ts'
import type { Transport } from '../../transport.ts'
import type { Secrets } from '../secrets.ts'

/**
 * Requests a credential for a repository.
 * @throws BatonError if the service refuses the request.
 */
export type AskCredential = (
  repo_full_name: string,
  operation: 'clone' | 'fetch' | 'push',
) => Promise<GitCredential>

/**
 * Creates the function that requests credentials. The returned tokens are redacted from later
 * output.
 */
export const credentialsOf =
  (transport: Transport, environment_id: string, secrets: Secrets): AskCredential =>
  async (repo_full_name, operation) => {
    const credential = (await transport.call(api['environment.git_credentials'], {
      environment_id,
      repo_full_name,
      operation,
    })) as GitCredential
    secrets.add(credential.token)
    return credential
  }

const SEGMENT = /^[A-Za-z0-9_.][A-Za-z0-9_.-]*$/
/** Returns whether a name has the form `owner/name`. The owner may be a path of groups. */
export function isRepositoryName(name: string): boolean {
  const segments = name.split('/')
  return (
    segments.length >= 2 &&
    segments.length <= 10 &&
    segments.every((one) => SEGMENT.test(one) && !/^\.+$/.test(one))
  )
}
/** Returns the URL of a repository, without credentials. */
export const remoteUrl = (
  { host, url = `https://${host}` }: Pick<GitCredential, 'host' | 'url'>,
  repo_full_name: string,
): string => `${url.replace(/\/+$/, '')}/${repo_full_name}.git`

/**
 * Normalizes the URL of a repository for comparison. Returns undefined if it is invalid. Repository
 * hosts ignore letter case, trailing slashes and the suffix `.git`.
 */
function normalized(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined
  const { protocol, host, pathname } = new URL(url)
  const path = pathname.replace(/\/+$/, '').replace(/\.git$/, '')
  return `${protocol}//${host}${path}`.toLowerCase()
}
/** Whether two URLs refer to the same repository. User names and passwords are ignored. */
export function isSameRepository(a: string, b: string): boolean {
  const one = normalized(a)
  return one !== undefined && one === normalized(b)
}
/**
 * Returns the possible repository names of a URL, longest first. There can be several, because a
 * host may serve its repositories below a common path, which is not part of their names.
 */
export function namesOf(url: string): readonly string[] {
  if (!URL.canParse(url)) return []
  const { pathname } = new URL(url)
  let path: string
  try {
    path = decodeURIComponent(pathname)
  } catch {
    return []
  }
  const segments = path
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .split('/')
    .filter((segment) => segment !== '')
  return segments
    .map((_, index) => segments.slice(index).join('/'))
    .filter(isRepositoryName)
    .slice(0, 4)
}
