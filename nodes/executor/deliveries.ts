/**
 * Performs one attempt of a signed delivery. The URL and the signing key are looked up for each
 * attempt, and nothing is sent unsigned. An attempt is counted before it is made, so it is counted
 * even if the executor crashes during the attempt.
 */

import type { Directory } from '../../gateway/directory.ts'
import { sendNew } from '../../gateway/http/send.ts'
import type { Log, World } from '../../gateway/ports.ts'
import { mayReadEvent } from '../../gateway/sessions/reader.ts'
import { SIGNING_KEY } from '../../protocol/access/secret-rows.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { restrictionOf } from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { secretRef } from '../../protocol/naming.ts'
import type { AddressOf, OwnerQuery } from '../../protocol/queries/owners.ts'
import { cutText } from '../../protocol/rules/cut-text.ts'
import {
  type AttemptOutcome,
  type DeliveryOpening,
  pauseAfter,
} from '../../protocol/webhooks/delivery.ts'
import { MAX_RESPONSE_CHARACTERS } from '../../protocol/webhooks/rows.ts'
import type { Failed, Post, Received } from '../outbound/post.ts'
import { signedHeaders } from '../outbound/sign.ts'
import { isTemporaryFailure, pauseOf } from './answer.ts'
import type { Handler, Outcome } from './handler.ts'
import { restoreUrl, withoutQueryValues } from './open-url.ts'
import { systemOrigin } from './system-origin.ts'

interface Deliveries {
  readonly world: Pick<
    World,
    | 'ask'
    | 'command'
    | 'newCommandId'
    | 'view'
    | 'unlock'
    | 'now'
    | 'monotonic'
    | 'random'
    | 'settings'
    | 'node'
  > & { readonly log: Log }
  readonly directory: Directory
  readonly post: Post
}
interface Target {
  readonly url: string
  readonly schemes: readonly ('https:' | 'http:')[]
  readonly key: Uint8Array
  readonly secret_ref: string
  readonly secret_version: number
}
/** The reason why a delivery has no target. `passes` is true if a later attempt may find one. */
interface Without {
  readonly error: string
  readonly passes: boolean
}

/**
 * Maximum duration of an attempt in milliseconds, and maximum number of bytes that are read from a
 * response.
 */
const LIMITS = { timeout: 10_000, answer: 65_536 } as const
/** Size of a signing key in bytes. */
const KEY_BYTES = 32
const sealedElsewhere: Without = {
  error: 'The query of the URL cannot be decrypted; set the URL with its values again.',
  passes: true,
}
const unreadable = (what: string): Without => ({
  error: `The ${what} could not be read.`,
  passes: true,
})
/** The outcome of an attempt that is no longer needed. */
const UNWANTED: Outcome = { status: 'failed', error_type: 'unwanted', final: true }

/** Creates the handler of delivery attempts. */
export function deliveries({ world, directory, post }: Deliveries): Handler {
  const { brand } = world.settings
  const word = brand.toLowerCase()
  async function asked<N extends 'webhook' | 'secret'>(
    project: string,
    name: N,
    input: OwnerQuery<'project', N>['input'],
  ): Promise<OwnerQuery<'project', N>['reply'] | undefined | Refusal> {
    const answer = await world.ask({ project, kind: 'project', id: project }, name, input)
    return answer ?? undefined
  }

  /**
   * Returns why the webhook may not receive an event of a private session or a private artifact;
   * undefined when it may.
   * @param editor the principal that last changed the webhook.
   */
  async function withheld(
    project: string,
    opening: DeliveryOpening,
    editor: string | undefined,
  ): Promise<Without | undefined> {
    const restriction = restrictionOf(opening)
    if (!restriction) return undefined
    const allowed =
      editor !== undefined &&
      (await mayReadEvent({ world, directory }, project, restriction, editor))
    if (isRefusal(allowed)) return unreadable('private session')
    const what = restriction.private_owner === undefined ? 'session' : 'artifact'
    return allowed
      ? undefined
      : { error: `The last editor of the webhook may not read the ${what}.`, passes: false }
  }

  async function find(project: string, opening: DeliveryOpening): Promise<Target | Without> {
    const { to, once } = opening
    const known = await directory.organization()
    if (isRefusal(known)) return unreadable('organization')
    if (getOwn(known.projects, project)?.deleted)
      return { error: 'The project was deleted.', passes: false }
    if (to.kind === 'webhook') {
      const kept = await asked(project, 'webhook', { webhook_id: to.webhook_id })
      if (isRefusal(kept)) return unreadable('webhook')
      if (!kept) return { error: 'The webhook was deleted.', passes: false }
      const { webhook, secret } = kept
      if (!once && !webhook.enabled) return { error: 'The webhook is disabled.', passes: false }
      const address = to.url ?? webhook.url
      if (address === '') return { error: 'The webhook has no URL.', passes: false }
      const refused = await withheld(project, opening, webhook.updated_by)
      if (refused) return refused
      const url = restoreUrl(world, project, address, to.url === undefined ? kept : to)
      if (url === undefined) return sealedElsewhere
      const key = world.unlock(secret.sealed, project)
      return key
        ? {
            url,
            schemes: ['https:'],
            key,
            secret_ref: secretRef(brand, 'webhook', webhook.id),
            secret_version: secret.version,
          }
        : { error: 'The secret of the webhook cannot be decrypted.', passes: true }
    }
    const found = await asked(project, 'secret', { ref: to.secret_ref })
    if (isRefusal(found)) return unreadable('secret')
    const text = found && world.unlock(found.sealed, project)
    const entries =
      text && (JSON.parse(Buffer.from(text).toString('utf8')) as Readonly<Record<string, string>>)
    const key = Buffer.from((entries && getOwn(entries, SIGNING_KEY)) ?? '', 'base64')
    if (!found || key.length !== KEY_BYTES)
      return {
        error: `The secret ${to.secret_ref} is missing, or its ${SIGNING_KEY} is not 32 bytes long.`,
        passes: true,
      }
    const url = restoreUrl(world, project, to.callback_url, to)
    if (url === undefined) return sealedElsewhere
    return {
      url,
      schemes: ['https:', 'http:'],
      key,
      secret_ref: to.secret_ref,
      secret_version: found.version,
    }
  }

  async function send(
    project: string,
    delivery_id: string,
    opening: DeliveryOpening,
    target: Target | Without,
    attempt: number,
    signal: AbortSignal,
  ): Promise<AttemptOutcome> {
    const chance = (world.random(1)[0] ?? 0) / 255
    if ('error' in target)
      return {
        delivered: false,
        error: target.error,
        ...(target.passes && { pause: pauseAfter(attempt, chance) }),
      }
    const { url, schemes, ...secret } = target
    const body = JSON.stringify(opening.body)
    const begun = world.monotonic()
    const answer = await post({
      url,
      owner: project,
      schemes,
      plain: true,
      body,
      timeout: LIMITS.timeout,
      most: LIMITS.answer,
      cut: true,
      signal,
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': `${word}-webhooks/1`,
        ...(opening.to.kind === 'webhook' && { [`X-${brand}-Event-Type`]: opening.event_type }),
        ...signedHeaders({ brand, delivery_id, at: world.now(), body, ...secret }),
      },
    })
    const latency = world.monotonic() - begun
    return {
      ...resultOf(answer, attempt, chance, world.now()),
      latency_ms: Math.round(latency),
      ...excerptOf('failed' in answer ? answer : withoutQueryValues(answer, url)),
    }
  }

  /** Counts an attempt, and returns its number; undefined if no attempt may be made. */
  async function begin(to: AddressOf<'delivery'>, job_id: string): Promise<number | undefined> {
    const origin = systemOrigin(world, world.node)
    const begun = await sendNew(world, to, 'delivery.begin', { job_id }, origin)
    if (isRefusal(begun))
      throw new Error(`the delivery attempt could not be started: ${begun.refused}`)
    return begun.reply.attempt || undefined
  }

  return {
    takes: () => ({}),
    async perform({ project, job, signal }) {
      const { delivery_id } = job
      if (delivery_id === undefined) return UNWANTED
      const to = { project, kind: 'delivery', id: delivery_id } as const
      const opening = await world.ask(to, 'content', {})
      if (opening && isRefusal(opening))
        throw new Error(`the delivery could not be read: ${opening.refused}`)
      if (!opening) return UNWANTED
      const target = await find(project, opening)
      // Without a target that could exist later, nothing is sent, so no attempt is counted.
      const attempt = 'error' in target && !target.passes ? 0 : await begin(to, job.id)
      if (attempt === undefined) return UNWANTED
      const outcome = await send(project, delivery_id, opening, target, attempt, signal)
      const { delivered, response_code: status, pause } = outcome
      if (!delivered && pause === undefined)
        world.log.warn(
          { event: 'delivery_abandoned', delivery: delivery_id, attempt, status },
          'delivery abandoned',
        )
      else if (!delivered)
        world.log.info(
          { event: 'delivery_attempt_failed', delivery: delivery_id, attempt, status, pause },
          'delivery attempt failed',
        )
      return { status: 'completed', result: { ...outcome } }
    },
  }
}

/**
 * Returns the beginning of a response's text as the field `answer`. Omits the field if the response
 * has no text.
 */
function excerptOf(answer: Received | Failed): { readonly answer?: string } {
  if ('failed' in answer) return {}
  const beginning = answer.body.subarray(0, 4 * MAX_RESPONSE_CHARACTERS).toString('utf8')
  const text = cutText(beginning, MAX_RESPONSE_CHARACTERS)
  return text === '' ? {} : { answer: text }
}

/**
 * Interprets a response: 2xx is accepted, a temporary failure is retried, any other failure is
 * final.
 */
function resultOf(
  answer: Received | Failed,
  attempt: number,
  chance: number,
  now: number,
): AttemptOutcome {
  if ('failed' in answer) {
    const passes = answer.failed !== 'refused' && answer.failed !== 'too_large'
    return {
      delivered: false,
      error: `The URL could not be reached: ${answer.message}.`,
      ...(passes && { pause: pauseAfter(attempt, chance) }),
    }
  }
  const { status, retry_after } = answer
  if (status >= 200 && status < 300) return { delivered: true, response_code: status }
  const error = `The receiver returned ${status}${status >= 300 && status < 400 ? '; redirects are not followed' : ''}.`
  return {
    delivered: false,
    response_code: status,
    error,
    ...(isTemporaryFailure(status) && {
      pause: pauseAfter(attempt, chance, pauseOf(retry_after, now, Infinity)),
    }),
  }
}
