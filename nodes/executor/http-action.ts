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
import {
  type ActionCall,
  deliveryIdOf,
  type InvocationFacts,
} from '../../protocol/actions/invocation.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import type { UrlParts } from '../../protocol/masked-url.ts'
import { secretRef } from '../../protocol/naming.ts'
import { type ClaimedJob, sizes } from '../../protocol/workers/socket.ts'
import type { Post } from '../outbound/post.ts'
import { signed } from '../outbound/sign.ts'
import { outcomeOf } from './answer.ts'
import { callOf } from './call.ts'
import { type Handler, NOT_OURS, type Outcome } from './handler.ts'
import { openedUrl, withoutQueryValues } from './open-url.ts'

interface HttpActions {
  readonly world: Pick<World, 'ask' | 'unlock' | 'organization' | 'now' | 'settings'> & {
    readonly log: Log
  }
  readonly directory: Directory
  readonly post: Post
}
interface Target extends UrlParts {
  readonly id: string
  readonly name: string
  readonly scope: 'project' | 'organization'
  readonly format: InvocationFacts['invocation_format']
  readonly url: string
  readonly secret: {
    readonly sealed: string
    readonly version: number
    readonly ref: string
    readonly home: string
  }
}
/** Default timeout of an attempt in milliseconds, and maximum size of a response in bytes. */
const LIMITS = { timeout: 30_000, answer: sizes.result } as const

const failed = (error_type: string, error_message: string): Outcome => ({
  status: 'failed',
  error_type,
  error_message,
  final: true,
})

/** Creates the handler of jobs whose action is an HTTP endpoint. */
export function httpActions({ world, directory, post }: HttpActions): Handler {
  const { brand } = world.settings
  const word = brand.toLowerCase()
  const envelope = `application/vnd.${word}.action+json`

  /**
   * Looks up the action with the given name. Returns undefined when there is no such action or
   * when workers perform it. Returns a failed outcome when the action cannot be called, and a
   * refusal when the lookup is refused.
   */
  async function find(
    project: string,
    name: string,
  ): Promise<Target | undefined | Outcome | Refusal> {
    const mine = await world.ask({ project, kind: 'project', id: project }, 'action', { name })
    if (isRefusal(mine)) return mine
    if (mine) {
      const { action, secret } = mine
      if (action.endpoint_kind !== 'http' || !secret || action.endpoint_url === undefined)
        return undefined
      return {
        id: action.id,
        name,
        scope: 'project',
        format: action.invocation_format,
        url: action.endpoint_url,
        ...(mine.url_parts && { url_parts: mine.url_parts }),
        secret: { ...secret, ref: secretRef(brand, 'action', name), home: project },
      }
    }
    const home = world.organization()
    const shared = await world.ask({ project: home, kind: 'organization', id: home }, 'action', {
      name,
    })
    if (isRefusal(shared)) return shared
    if (!shared) return undefined
    const { action, secrets } = shared
    if (!action.enabled) return failed('action_disabled', `The action ${name} is disabled.`)
    const version = action.active_signing_version
    const secret = version === undefined ? undefined : secrets[version]
    if (version === undefined || !secret)
      return failed(
        'action_not_signable',
        `The action ${name} has no active secret; rotate it and activate the new version.`,
      )
    return {
      id: action.id,
      name,
      scope: 'organization',
      format: 'signed_context_v1',
      url: action.endpoint_url,
      ...(shared.url_parts && { url_parts: shared.url_parts }),
      secret: { ...secret, version, ref: action.secret_ref, home },
    }
  }

  function bodyOf(project: string, { id, name, format }: Target, call: ActionCall): string {
    const {
      actor,
      origin,
      run_id,
      loop_id,
      step_key,
      session_id,
      agent_turn_id,
      tool_call_id,
      channel_exchange_id,
      parameters,
    } = call
    if (format === 'legacy') return JSON.stringify({ run_id, step_key, parameters })
    const from = {
      kind: origin,
      run_id,
      channel_exchange_id,
      loop_id,
      step_key,
      agent_turn_id,
      session_id,
      tool_call_id,
    }
    return JSON.stringify({
      [word]: {
        schema_version: 1,
        scope: { org_id: world.organization(), project_id: project },
        action: { id, name },
        actor: {
          ...actor,
          ...(actor.principal_type === 'agent' && { agent_id: actor.principal_id }),
        },
        origin: from,
      },
      parameters,
    })
  }

  async function send(
    project: string,
    job: ClaimedJob,
    target: Target,
    call: ActionCall,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { scope, format, secret } = target
    const key = world.unlock(secret.sealed, secret.home)
    if (!key)
      return failed(
        'action_not_signable',
        'The secret of the action cannot be decrypted: another installation created it.',
      )
    const url = openedUrl(world, secret.home, target.url, target)
    if (url === undefined)
      return failed(
        'action_not_signable',
        'The query of the URL of the action cannot be decrypted; set the URL with its values again.',
      )
    const body = bodyOf(project, target, call)
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
        'Content-Type':
          format === 'legacy'
            ? 'application/json'
            : `application/vnd.${word}.action-invocation+json; version=1`,
        'User-Agent': `${word}-actions/1`,
        ...signed({
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
    const { principal_id, principal_type } = call.actor
    const invocation: InvocationFacts = {
      action_id: target.id,
      definition_scope: scope,
      invocation_format: format,
      ...(format === 'signed_context_v1' && { schema_version: 1 }),
      actor_principal_id: principal_id,
      actor_principal_type: principal_type,
      ...(principal_type === 'agent' && { agent_id: principal_id }),
      ...(call.channel_exchange_id !== undefined && {
        channel_exchange_id: call.channel_exchange_id,
      }),
      delivery_id,
      secret_version: secret.version,
      ...('status' in answer && { http_status: answer.status }),
    }
    return {
      ...outcomeOf(shown, { envelope, delay: call.delay ?? 0, now: world.now() }),
      invocation,
    }
  }

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
      const target = await find(project, job.action_name ?? '')
      // The action does not exist, a worker performs it, or its owner is unreachable. In all of
      // these cases, nothing was called, so no attempt is used.
      if (!target || isRefusal(target)) return NOT_OURS
      if ('status' in target) return target
      const call = await callOf(world, project, job)
      if (isRefusal(call)) return NOT_OURS
      return call ? send(project, job, target, call, signal) : { status: 'cancelled' }
    },
  }
}
