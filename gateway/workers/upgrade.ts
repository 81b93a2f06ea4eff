/**
 * Decides from plain data whether a worker socket may be opened. The statuses 401, 403 and 404 make
 * worker processes exit, so they are sent only for definite refusals. Temporary conditions are
 * answered with 429 or 503 and a random `Retry-After`, so that workers do not all return at the
 * same time. The socket itself is opened in `mount.ts`.
 */
import type { OrganizationDirectory } from '../../protocol/access/directory.ts'
import { errorBody, errors, isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { workers } from '../../protocol/workers/rows.ts'
import type { Authentication, Caller } from '../auth/authenticate.ts'
import { authorizeRow, enterProject } from '../auth/authorize.ts'
import { countRefusedUpgrade, type Limits } from '../auth/rate.ts'
import type { Directory } from '../directory.ts'
import { retryAfterOf, upgradeCredential } from '../http/upgrade.ts'
import type { World } from '../ports.ts'
import type { Grant } from './edge.ts'

/** A copy of an upgrade request. */
interface Asked {
  /** The project's handle or id, decoded. */
  readonly project: string
  /** The header `Authorization`; empty when absent. */
  readonly authorization: string
  /** The header `Sec-WebSocket-Protocol`; empty when absent. */
  readonly protocols: string
  /** The client's IP address. */
  readonly remote: string
  /** Whether a proxy forwarded the request. The client is then never on this machine. */
  readonly forwarded?: boolean
  /** The id of the request. */
  readonly request_id: string
}
/**
 * The decision: the grant and the sub-protocol (empty for none) of a socket to open, or the status,
 * the body and the `Retry-After` (in seconds) of a refusal.
 */
export type Answer =
  | { readonly grant: Grant; readonly protocol: string }
  | {
      readonly status: 401 | 403 | 404 | 429 | 503
      readonly body: unknown
      readonly retry_after?: number
    }
type Upgrade = (asked: Asked) => Promise<Answer>

/** Maximum number of upgrades per project: on average per second, and in a burst. */
const RATE = { second: 200, once: 500 } as const
/** Maximum `Retry-After` in seconds. */
const MAX_RETRY_AFTER_S = 5

/**
 * Creates the function that decides upgrades for a gateway. Refused upgrades count against the rate
 * limit of their caller or, without a valid credential, of their IP address. Only upgrades with a
 * grant count against the limit of the project, so that other clients cannot use it up.
 * @param limits the rate limits; without them, refused upgrades are not limited.
 */
export function createUpgrade(
  world: World,
  directory: Directory,
  authentication: Authentication,
  limits?: Limits,
): Upgrade {
  const calm = throttle(() => world.monotonic())
  const answer = (refusal: Refusal): Answer => {
    const status = statusOf(refusal)
    const body = errorBody(status === 503 ? refuse('service_unavailable') : refusal)
    if (status !== 429 && status !== 503) return { status, body }
    const jitter = 1 + ((world.random(1)[0] ?? 0) % MAX_RETRY_AFTER_S)
    return { status, body, retry_after: (retryAfterOf(refusal) ?? 0) + jitter }
  }
  return async ({ project, authorization, protocols, remote, forwarded, request_id }) => {
    const { presented, protocol, isAnonymous } = upgradeCredential(authorization, protocols)
    const anonymous =
      isAnonymous && !forwarded && isLoopback(remote) ? world.settings.anonymous_worker : undefined
    let caller: Caller | undefined
    const refused = async (refusal: Refusal): Promise<Answer> =>
      answer(await countRefusedUpgrade(limits, remote, caller, refusal))
    if (!presented && anonymous === undefined) return refused(refuse('unauthorized'))
    if (!world.fresh()) return answer(refuse('service_unavailable'))
    const granted = async (): Promise<Grant | Refusal> => {
      if (anonymous !== undefined) return anonymousGrant(directory, anonymous, project)
      const found = await authentication.signIn(presented)
      if (isRefusal(found)) return found
      caller = found
      return grantOf(world, directory, authentication, found, project)
    }
    const grant = await granted().catch((error: unknown) => {
      world.log.error(
        { event: 'worker_admission_failed', err: error, request_id },
        'worker admission failed',
      )
      return refuse('service_unavailable')
    })
    if (isRefusal(grant)) return refused(grant)
    return calm(grant.project) ? { grant, protocol } : answer(refuse('service_unavailable'))
  }
}

const statusOf = ({ refused }: Refusal): 401 | 403 | 404 | 429 | 503 => {
  const { status } = errors[refused]
  return status === 401 || status === 403 || status === 404 || status === 429 ? status : 503
}

async function grantOf(
  world: World,
  directory: Directory,
  authentication: Authentication,
  caller: Caller,
  name: string,
): Promise<Grant | Refusal> {
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const project = enterProject(caller, known, name)
  if (isRefusal(project)) return project
  const may = (who: Caller): Refusal | undefined =>
    authorizeRow(world.settings.brand, workers['worker.socket'].shape, who, {})
  const refusal = may(caller)
  if (refusal) return refusal
  const { principal, credential, proof } = caller
  const asleep = (): boolean => {
    const home = directory.project(project.id)
    return (
      home instanceof Promise ||
      isRefusal(home) ||
      getOwn(home.agents, principal.id)?.status === 'inactive'
    )
  }
  return {
    ...(principal.type === 'agent' && { asleep }),
    ...(caller.environment && { environment: caller.environment }),
    project: project.id,
    handle: project.handle,
    principal,
    credential,
    key: `${proof.hash}.${proof.handle ?? ''} ${project.id}`,
    recheck: () =>
      still(directory, project.id, async (now) => {
        const again = await authentication.again(caller)
        if (isRefusal(again)) return again
        const entered = enterProject(again, now, project.id)
        return isRefusal(entered) ? entered : may(again)
      }),
  }
}

/**
 * Creates the grant of a worker on loopback without a credential. The worker acts for the
 * configured principal. Refuses with `not_found` when there is no such project, and with
 * `unauthorized` when the project has this principal but it is not active.
 */
async function anonymousGrant(
  directory: Directory,
  principal: string,
  name: string,
): Promise<Grant | Refusal> {
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const project = getOwn(known.projects, getOwn(known.handles, name) ?? name)
  if (!project || project.deleted)
    return refuse('not_found', undefined, 'There is no such project.')
  const active = async (): Promise<Refusal | undefined> => {
    const configuration = await directory.project(project.id)
    if (isRefusal(configuration)) return configuration
    return (getOwn(configuration.principals, principal)?.state ?? 'active') === 'active'
      ? undefined
      : refuse('unauthorized')
  }
  return (
    (await active()) ?? {
      project: project.id,
      handle: project.handle,
      principal: { type: 'service_account', id: principal },
      key: `anonymous ${project.id}`,
      recheck: () => still(directory, project.id, active),
    }
  )
}

/**
 * Checks a grant again. The project is checked before the credential, so a deleted project is
 * refused with `not_found`. Its keys are deleted too, so the refusal would otherwise be
 * `unauthorized`.
 */
async function still(
  directory: Directory,
  project: string,
  then: (known: OrganizationDirectory) => Promise<Refusal | undefined>,
): Promise<Refusal | undefined> {
  const known = await directory.organization()
  if (isRefusal(known)) return known
  const record = getOwn(known.projects, project)
  return !record || record.deleted ? refuse('not_found') : then(known)
}

const isLoopback = (remote: string): boolean =>
  /^(127\.|::1$|(0000:){7}0001$|(::|(0000:){5})ffff:(127\.|7f))/i.test(remote)

/**
 * Creates a function that counts an upgrade for a project, and returns whether the upgrade is
 * within the limit (`RATE`).
 */
function throttle(now: () => number): (project: string) => boolean {
  const buckets = new Map<string, { left: number; at: number }>()
  return (project) => {
    if (buckets.size > 10_000) buckets.clear()
    const at = now()
    const bucket = buckets.get(project) ?? { left: RATE.once, at }
    bucket.left = Math.min(RATE.once, bucket.left + ((at - bucket.at) / 1000) * RATE.second)
    bucket.at = at
    buckets.set(project, bucket)
    if (bucket.left < 1) return false
    bucket.left--
    return true
  }
}
