/**
 * Issues credentials for repositories: decides whether an environment gets a credential for a
 * repository, and with which access. The port `World.repositoryToken` creates the tokens.
 *
 * Invariants:
 * B1. Credentials are issued only for repositories that the environment declares. The credential
 *     allows pushing only if the declaration has `push: true`, whatever operation the request
 *     specifies.
 * B2. A request to push without `push: true` is not refused, but receives a read-only credential,
 *     because git uses one credential helper for all of its operations.
 * B3. A token is neither stored nor logged. The log contains the principal, the environment, the
 *     repository and the access.
 */
import { timestamp } from '../../protocol/common.ts'
import type {
  Environment,
  EnvironmentRepository,
  GitCredential,
  GitCredentialRequest,
} from '../../protocol/environments/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { isRepositoryName } from '../../protocol/repositories/name.ts'
import { kindRules, type RepositoryHost } from '../../protocol/repositories/rows.ts'
import type { TokenRequest } from '../../protocol/repositories/token.ts'
import type { Call, Edge } from '../call.ts'
import { unsealHost } from '../commands/repositories/hosts.ts'
import type { World } from '../ports.ts'

/** The access of an environment to a repository. */
interface Grant {
  /** Name of the repository host. */
  readonly host: string
  /** Full name of the repository, spelled as in the declaration. */
  readonly full_name: string
  readonly access: TokenRequest['access']
}
/**
 * Returns the access that the declarations grant to a repository; undefined when the repository is
 * not declared. Names are compared without regard to case, as GitHub and GitLab do. When several
 * hosts have the repository, the first declaration determines the host.
 */
export function grantOf(
  declared: readonly EnvironmentRepository[],
  full_name: string,
): Grant | undefined {
  if (!isRepositoryName(full_name)) return undefined
  const all = declared
    .filter((one) => one.full_name.toLowerCase() === full_name.toLowerCase())
    .map(({ provider = 'github', ...one }) => ({ ...one, provider }))
  const [first] = all
  return (
    first && {
      host: first.provider,
      full_name: first.full_name,
      access: all.some(({ provider, push }) => push && provider === first.provider)
        ? 'write'
        : 'read',
    }
  )
}

function hostFields({
  kind,
  url,
  username,
}: RepositoryHost): Omit<GitCredential, 'token' | 'expires_at' | 'repo_full_name'> {
  const { host } = new URL(url)
  return {
    host,
    username: username ?? kindRules[kind].username,
    ...(url !== `https://${host}` && { url }),
  }
}

/**
 * Returns a credential for the repository in the body of a call. The call is refused with
 * `forbidden` when the environment does not declare the repository or the repository host denies
 * access. It is refused with `not_found` when the environment is destroyed, and with
 * `service_unavailable` when the repository host is not configured, does not answer, or has secrets
 * that cannot be read.
 */
export async function gitCredential(
  { world }: Pick<Edge, 'world'>,
  { body, caller }: Pick<Call, 'body' | 'caller'>,
  project: string,
  { id, status, repositories = [] }: Environment,
): Promise<GitCredential | Refusal> {
  if (status === 'destroyed') return refuse('not_found')
  const { repo_full_name } = body as GitCredentialRequest
  const grant = grantOf(repositories, repo_full_name)
  if (!grant)
    return refuse(
      'forbidden',
      { repo_full_name },
      'The repository is not declared for this environment; declare it in `repositories`.',
    )
  const credential = await credentialOf(world, project, grant)
  const refused = isRefusal(credential)
  world.log.info(
    {
      event: refused ? 'git_credential_refused' : 'git_credential_issued',
      project,
      environment_id: id,
      principal: caller.principal.id,
      repository: grant.full_name,
      host: grant.host,
      access: grant.access,
      ...(refused && { reason: credential.message }),
    },
    refused ? 'git credential refused' : 'git credential issued',
  )
  return credential
}

const unavailable = (message: string): Refusal =>
  refuse('service_unavailable', { retry_after: 5 }, message)

async function credentialOf(
  world: World,
  project: string,
  { host: name, full_name, access }: Grant,
): Promise<GitCredential | Refusal> {
  const to = { project, kind: 'project', id: project } as const
  const kept = await world.ask(to, 'repository_host', { name })
  if (isRefusal(kept)) return kept
  if (!kept || !world.repositoryToken)
    return unavailable(
      `The project has no repository host with the name "${name}"; an administrator can add it ` +
        `with PUT /v1/projects/{project}/repository-hosts/${encodeURIComponent(name)}.`,
    )
  const { host, material } = kept
  const secrets = unsealHost(world, project, material)
  if (!secrets)
    return unavailable(
      `The secrets of the repository host "${name}" cannot be read; store them again.`,
    )
  const issued = await world.repositoryToken({
    project,
    host,
    secrets,
    revision: world.hash(material.sealed),
    full_name,
    access,
  })
  if ('failed' in issued)
    return issued.failed === 'denied'
      ? refuse('forbidden', { repo_full_name: full_name }, issued.message)
      : unavailable(issued.message)
  return {
    ...hostFields(host),
    token: issued.token,
    expires_at: timestamp(issued.expires_at),
    repo_full_name: full_name,
  }
}
