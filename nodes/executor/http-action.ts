/**
 * Performs HTTP actions of projects and of the organization. The action is looked up by name for
 * every attempt, together with its URL and its signing secret. The delivery id and the
 * Idempotency-Key are the same for all attempts of a job.
 */
import type { Directory } from '../../gateway/directory.ts'
import { andThen } from '../../gateway/maybe-promise.ts'
import type { Log, World } from '../../gateway/ports.ts'
import { knownAction } from '../../gateway/workers/served.ts'
import { REPEATABLE_LOSSES } from '../../protocol/access/directory.ts'
import { type ActionCall, deliveryIdOf } from '../../protocol/actions/invocation.ts'
import { isRefusal } from '../../protocol/errors.ts'
import { sizes } from '../../protocol/workers/socket.ts'
import type { Post } from '../outbound/post.ts'
import { signedHeaders } from '../outbound/sign.ts'
import { outcomeOf } from './answer.ts'
import { callOf } from './call.ts'
import { type Handler, NOT_OURS, type Outcome, type Work } from './handler.ts'
import { bodyOf, contentTypeOf, factsOf } from './http/invocation.ts'
import { findTarget, permanentFailure, type Target } from './http/target.ts'
import { restoreUrl, withoutQueryValues } from './open-url.ts'

interface HttpActions {
  readonly world: Pick<World, 'ask' | 'unlock' | 'organization' | 'now' | 'settings'> & {
    readonly log: Log
  }
  readonly directory: Directory
  readonly post: Post
}
/** Default timeout of an attempt in milliseconds, and maximum size of a response in bytes. */
const LIMITS = { timeout: 30_000, answer: sizes.result } as const

/** Creates the handler of jobs whose action is an HTTP endpoint. */
export function httpActions(parts: HttpActions): Handler {
  const { world, directory } = parts
  return {
    takes: (project, job) => {
      // A job that is pinned to an environment or restricted to workers is performed by a worker.
      if (job.environment_id !== undefined || job.workers_only) return undefined
      if (job.action_name === undefined) return undefined
      return andThen(knownAction(directory, project, job.action_name), (sketch) => {
        if (sketch === undefined || isRefusal(sketch) || sketch.kind !== 'http')
          return isRefusal(sketch) ? sketch : undefined
        return sketch.repeatable ? { losses: REPEATABLE_LOSSES } : {}
      })
    },
    async perform({ project, job, signal }) {
      const target = await findTarget(world, project, job.action_name ?? '')
      // The action does not exist, a worker performs it, or its owner is unreachable. In all of
      // these cases, nothing was called, so no attempt is used.
      if (!target || isRefusal(target)) return NOT_OURS
      if ('status' in target) return target
      const call = await callOf(world, project, job)
      if (isRefusal(call)) return NOT_OURS
      return call ? send(parts, { project, job, signal }, target, call) : { status: 'cancelled' }
    },
  }
}

/** Calls the endpoint of an action, and returns the outcome of the attempt. */
async function send(
  { world, post }: HttpActions,
  { project, job, signal }: Work,
  target: Target,
  call: ActionCall,
): Promise<Outcome> {
  const { scope, secret } = target
  const { brand } = world.settings
  const word = brand.toLowerCase()
  const key = world.unlock(secret.sealed, secret.home)
  if (!key)
    return permanentFailure(
      'action_not_signable',
      'The secret of the action cannot be decrypted: another installation created it.',
    )
  const url = restoreUrl(world, secret.home, target.url, target)
  if (url === undefined)
    return permanentFailure(
      'action_not_signable',
      'The query of the URL of the action cannot be decrypted; set the URL with its values again.',
    )
  const body = bodyOf(world, project, target, call)
  const delivery_id = deliveryIdOf(job.id)
  const answer = await post({
    url,
    owner: project,
    schemes: scope === 'organization' ? ['https:'] : ['http:', 'https:'],
    body,
    timeout: call.timeout ?? LIMITS.timeout,
    most: LIMITS.answer,
    signal,
    headers: {
      'Content-Type': contentTypeOf(target, word),
      'User-Agent': `${word}-actions/1`,
      ...signedHeaders({
        brand,
        key,
        delivery_id,
        at: world.now(),
        body,
        secret_ref: secret.ref,
        secret_version: secret.version,
      }),
    },
  })
  const isResult = 'status' in answer && answer.status >= 200 && answer.status < 300
  const shown = 'failed' in answer || isResult ? answer : withoutQueryValues(answer, url)
  const envelope = `application/vnd.${word}.action+json`
  return {
    ...outcomeOf(shown, { envelope, delay: call.delay ?? 0, now: world.now() }),
    invocation: factsOf(target, call, delivery_id, 'status' in answer ? answer.status : undefined),
  }
}
