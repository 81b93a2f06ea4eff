/** Names and addresses of repositories, and the credentials that the service answers for them. */
import { api } from '../../../protocol/api.ts'
import type { GitCredential } from '../../../protocol/environments/schema.ts'
import type { Transport } from '../../transport.ts'
import type { Secrets } from '../secrets.ts'

/** Requests a credential for a repository. @throws BatonError if the service refuses it. */
export type AskCredential = (
  repo_full_name: string,
  operation: 'clone' | 'fetch' | 'push',
) => Promise<GitCredential>

/** Creates the function that requests credentials. Their tokens are removed from later output. */
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
/** Whether the text is `owner/name`; the owner may be a path of groups. */
export function isRepositoryName(name: string): boolean {
  const segments = name.split('/')
  return (
    segments.length >= 2 &&
    segments.length <= 10 &&
    segments.every((one) => SEGMENT.test(one) && !/^\.+$/.test(one))
  )
}
/** The URL of a repository, without credentials. */
export const remoteUrl = (
  { host, url = `https://${host}` }: Pick<GitCredential, 'host' | 'url'>,
  repo_full_name: string,
): string => `${url.replace(/\/+$/, '')}/${repo_full_name}.git`

/** The address of a repository, compared as hosts of repositories do. */
function normalized(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined
  const { protocol, host, pathname } = new URL(url)
  const path = pathname.replace(/\/+$/, '').replace(/\.git$/, '')
  return `${protocol}//${host}${path}`.toLowerCase()
}
/** Whether two URLs name the same repository. Users and passwords in them are ignored. */
export function isSameRepository(a: string, b: string): boolean {
  const one = normalized(a)
  return one !== undefined && one === normalized(b)
}
/**
 * The names that the repository of a URL may have, the longest first. Hosts may serve repositories
 * below a path of their own.
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
