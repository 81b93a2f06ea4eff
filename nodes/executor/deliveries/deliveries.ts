/**
 * Performs one attempt of a signed delivery. An attempt is counted before it is made, so it is
 * counted even if the executor crashes during the attempt.
 */

import { sendNew } from '../../../gateway/http/send.ts'
import type { Log, World } from '../../../gateway/ports.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import {
  type AttemptOutcome,
  type DeliveryOpening,
  pauseAfter,
} from '../../../protocol/webhooks/delivery.ts'
import type { Post } from '../../outbound/post.ts'
import { signedHeaders } from '../../outbound/sign.ts'
import type { Handler, Outcome } from '../handler.ts'
import { withoutQueryValues } from '../open-url.ts'
import { systemOrigin } from '../system-origin.ts'
import { excerptOf, outcomeOf } from './outcome.ts'
import { findTarget, type NoTarget, type Target, type TargetParts } from './target.ts'

interface Deliveries extends TargetParts {
  readonly world: TargetParts['world'] &
    Pick<World, 'command' | 'newCommandId' | 'monotonic' | 'random' | 'node'> & {
      readonly log: Log
    }
  readonly post: Post
}
/** One attempt of a delivery. */
interface Attempt {
  readonly project: string
  readonly delivery_id: string
  readonly opening: DeliveryOpening
  /** Number of the attempt, beginning with 1; 0 if nothing is sent. */
  readonly attempt: number
  readonly signal: AbortSignal
}

/**
 * Maximum duration of an attempt in milliseconds, and maximum number of bytes that are read from a
 * response.
 */
const LIMITS = { timeout: 10_000, answer: 65_536 } as const
/** The outcome of an attempt that is no longer needed. */
const UNWANTED: Outcome = { status: 'failed', error_type: 'unwanted', final: true }

/** Creates the handler of delivery attempts. */
export function deliveries(parts: Deliveries): Handler {
  const { world } = parts
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
      const target = await findTarget(parts, project, opening)
      // Without a target that could exist later, nothing is sent, so no attempt is counted.
      const isCounted = !('error' in target) || target.passes
      const attempt = isCounted ? await begin(world, to, job.id) : 0
      if (attempt === undefined) return UNWANTED
      const outcome = await send(parts, target, { project, delivery_id, opening, attempt, signal })
      logFailure(world.log, delivery_id, attempt, outcome)
      return { status: 'completed', result: { ...outcome } }
    },
  }
}

/** Counts an attempt, and returns its number; undefined if no attempt may be made. */
async function begin(
  world: Deliveries['world'],
  to: AddressOf<'delivery'>,
  job_id: string,
): Promise<number | undefined> {
  const origin = systemOrigin(world, world.node)
  const begun = await sendNew(world, to, 'delivery.begin', { job_id }, origin)
  if (isRefusal(begun))
    throw new Error(`the delivery attempt could not be started: ${begun.refused}`)
  return begun.reply.attempt || undefined
}

/** Sends the request of an attempt, and returns its outcome. */
async function send(
  { world, post }: Deliveries,
  target: Target | NoTarget,
  { project, delivery_id, opening, attempt, signal }: Attempt,
): Promise<AttemptOutcome> {
  const { brand } = world.settings
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
      'User-Agent': `${brand.toLowerCase()}-webhooks/1`,
      ...(opening.to.kind === 'webhook' && { [`X-${brand}-Event-Type`]: opening.event_type }),
      ...signedHeaders({ brand, delivery_id, at: world.now(), body, ...secret }),
    },
  })
  const latency = world.monotonic() - begun
  return {
    ...outcomeOf(answer, { attempt, chance, now: world.now() }),
    latency_ms: Math.round(latency),
    ...excerptOf('failed' in answer ? answer : withoutQueryValues(answer, url)),
  }
}

/** Logs the failure of an attempt. */
function logFailure(
  log: Log,
  delivery: string,
  attempt: number,
  { delivered, response_code: status, pause }: AttemptOutcome,
): void {
  if (!delivered && pause === undefined)
    log.warn({ event: 'delivery_abandoned', delivery, attempt, status }, 'delivery abandoned')
  else if (!delivered)
    log.info(
      { event: 'delivery_attempt_failed', delivery, attempt, status, pause },
      'delivery attempt failed',
    )
}
