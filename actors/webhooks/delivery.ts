/**
 * The delivery actor: one message to one receiver, until it is accepted or has failed permanently.
 * The actor limits and schedules the attempts. Each attempt is a job of a queue in the same shard.
 * The queue handles leases and detects lost leases. Executors send the message.
 *
 * Invariants:
 * D1. The id and the body never change. No attempt follows `delivered` or `failed`.
 * D2. At most one job is in progress. The end of any other job changes nothing. `begin` counts the
 *     attempt before anything is sent.
 * D3. An attempt counts even if its sender was lost. An attempt that never began does not count.
 */

import type { Api } from '../../protocol/api.ts'
import { timestamp } from '../../protocol/common.ts'
import { serviceJob } from '../../protocol/jobs/service-job.ts'
import { type Patch, patch } from '../../protocol/patch.ts'
import {
  type AttemptOutcome,
  DELIVERIES,
  type DeliveryCommands,
  type DeliveryEvent,
  type DeliveryOpening,
  type DeliveryOutcome,
  MAX_ATTEMPTS,
  pauseAfter,
  type ResendInput,
  START_TIMEOUT_MS,
} from '../../protocol/webhooks/delivery.ts'
import type { Attempt, DeliveryRecord } from '../../protocol/webhooks/rows.ts'
import { type Actor, type Cause, type Decided, defineActor, type Tell } from '../actor.ts'

interface DeliveryState {
  readonly opening: DeliveryOpening
  readonly record: DeliveryRecord
  /** Unix milliseconds at which the delivery was opened. */
  readonly opened_at: number
  /** Id of the job of the current attempt. */
  readonly job_id?: string
  readonly next?: number
  readonly latency_ms?: number
}
type State = DeliveryState | null
type Input<N extends keyof DeliveryCommands> = DeliveryCommands[N]['input']
type Done<R = undefined> = Decided<DeliveryEvent, R>

const nothing: Done = { events: [], reply: undefined }
const over = ({ record }: DeliveryState): boolean =>
  record.status === 'delivered' || record.status === 'failed'
const most = ({ opening }: DeliveryState): number => (opening.once ? 1 : MAX_ATTEMPTS)
/**
 * Returns the fairness key of the job. Receivers take turns, so a slow receiver does not delay
 * others.
 */
const receiverOf = ({ to }: DeliveryOpening): string =>
  to.kind === 'webhook' ? to.webhook_id : to.callback_url.slice(0, 128)

function enqueue(opening: DeliveryOpening, job_id: string, { at, self, shard }: Cause): Tell {
  const input = serviceJob(
    DELIVERIES,
    at,
    { id: job_id, fairness_key: receiverOf(opening), max_attempts: 1, max_losses: 1 },
    { kind: 'delivery', delivery_id: self.id },
  )
  return { to: { kind: 'queue', id: `${shard}.${DELIVERIES}` }, name: 'queue.enqueue', input }
}

function open(state: State, opening: Input<'delivery.open'>, cause: Cause): Done {
  return state ? nothing : { ...opened(opening, cause), reply: undefined }
}
/**
 * Sends the content of an earlier delivery again. The gateway has checked that the caller may read
 * the earlier delivery, and that it has ended.
 */
const resend = (
  state: State,
  { opening, delivery_id }: ResendInput & { readonly delivery_id: string },
  cause: Cause,
): Decided<DeliveryEvent, DeliveryRecord> => ({
  ...(state ? nothing : opened(opening, cause, delivery_id)),
  reply: (now: DeliveryState) => now.record,
})
function opened(
  opening: DeliveryOpening,
  cause: Cause,
  resend_of?: string,
): Pick<Done, 'events' | 'tells'> {
  const { id } = cause.self
  const job_id = cause.mint('job')
  const { to, event_type, run_id } = opening
  const delivery: DeliveryRecord = {
    id,
    webhook_id: to.kind === 'webhook' ? to.webhook_id : '',
    event_type,
    status: 'pending',
    attempts: 0,
    created_at: timestamp(cause.at),
    ...(run_id !== undefined && { run_id }),
    ...(resend_of !== undefined && { resend_of }),
  }
  return {
    events: [{ type: 'delivery.opened', id, opening, job_id, at: cause.at, delivery }],
    tells: [enqueue(opening, job_id, cause)],
  }
}

function begin(
  state: State,
  { job_id }: Input<'delivery.begin'>,
  { at, self: { id } }: Cause,
): Done<{ attempt: number }> {
  const late = state?.opening.once && at > state.opened_at + START_TIMEOUT_MS
  if (
    !state ||
    over(state) ||
    state.job_id !== job_id ||
    late ||
    state.record.attempts >= most(state)
  )
    return { events: [], reply: { attempt: 0 } }
  const attempt = state.record.attempts + 1
  return {
    events: [{ type: 'delivery.begun', id, delivery: { status: 'processing', attempts: attempt } }],
    reply: { attempt },
  }
}

function settled(
  state: State,
  { job_id, outcome, result }: Input<'job.settled'>,
  { at, self: { id } }: Cause,
): Done {
  if (!state || over(state) || state.job_id !== job_id) return nothing
  const { attempts, status } = state.record
  const begun = status === 'processing'
  const said = (outcome === 'completed' ? result : undefined) as AttemptOutcome | undefined
  const { delivered, response_code, error, pause, latency_ms, answer }: AttemptOutcome = said ?? {
    delivered: false,
    error: begun ? 'The sender was lost during the attempt.' : 'The attempt was not made in time.',
    ...(!(state.opening.once && !begun) && { pause: pauseAfter(attempts, 0.5) }),
  }
  const took = latency_ms !== undefined && { latency_ms }
  const attempt: Attempt = {
    attempt: begun ? attempts : 0,
    ended_at: timestamp(at),
    delivered,
    ...(response_code !== undefined && { response_code }),
    ...(error !== undefined && { error }),
    ...took,
    ...(answer !== undefined && { answer }),
  }
  const attempt_log = [...(state.record.attempt_log ?? []), attempt].slice(-MAX_ATTEMPTS)
  if (delivered)
    return {
      events: [
        {
          type: 'delivery.delivered',
          id,
          ...took,
          delivery: {
            status: 'delivered',
            delivered_at: timestamp(at),
            attempt_log,
            ...(response_code !== undefined && { response_code }),
          },
        },
      ],
      reply: undefined,
    }
  const failure: Patch<DeliveryRecord> = {
    ...(error !== undefined && { last_error: error }),
    response_code: response_code ?? null,
    attempt_log,
  }
  if (pause === undefined || attempts >= most(state))
    return {
      events: [
        { type: 'delivery.failed', id, ...took, delivery: { ...failure, status: 'failed' } },
      ],
      reply: undefined,
    }
  return {
    events: [
      {
        type: 'delivery.deferred',
        id,
        at: at + pause,
        delivery: { ...failure, status: 'pending', next_attempt_at: timestamp(at + pause) },
      },
    ],
    reply: undefined,
  }
}

function wake(state: State, _: unknown, cause: Cause): Done {
  if (!state || over(state) || state.next === undefined || state.next > cause.at) return nothing
  const job_id = cause.mint('job')
  return {
    events: [
      { type: 'delivery.due', id: cause.self.id, job_id, delivery: { next_attempt_at: null } },
    ],
    tells: [enqueue(state.opening, job_id, cause)],
    reply: undefined,
  }
}

const changed = (state: State, { delivery }: DeliveryEvent): DeliveryState => {
  if (!state) throw new Error('a delivery changed before it was opened')
  return { ...state, record: patch(state.record, delivery) }
}
function ended(
  state: State,
  event: Extract<DeliveryEvent, { type: 'delivery.delivered' | 'delivery.failed' }>,
): State {
  const { job_id: _, ...rest } = changed(state, event)
  return { ...rest, ...(event.latency_ms !== undefined && { latency_ms: event.latency_ms }) }
}
const actor: Actor<
  State,
  DeliveryEvent,
  Api,
  'delivery',
  DeliveryCommands,
  { 'webhook.resend': ResendInput }
> = {
  kind: 'delivery',
  initial: () => null,
  decide: {
    'delivery.open': open,
    'webhook.resend': resend,
    'delivery.begin': begin,
    'job.settled': settled,
    wake,
  },
  evolve: {
    'delivery.opened': (_, { opening, job_id, at, delivery }) => ({
      opening,
      job_id,
      opened_at: at,
      record: delivery as DeliveryRecord,
    }),
    'delivery.due': (state, event) => {
      const { next: _, ...rest } = changed(state, event)
      return { ...rest, job_id: event.job_id }
    },
    'delivery.begun': changed,
    'delivery.deferred': (state, event) => {
      const { job_id: _, ...rest } = changed(state, event)
      return { ...rest, next: event.at }
    },
    'delivery.delivered': ended,
    'delivery.failed': ended,
  },
  ask: {
    /** The content and the destination of the delivery; null if there is no such delivery. */
    content: (state) => state?.opening ?? null,
    /** The outcome so far; null if there is no such delivery. */
    outcome: (state): DeliveryOutcome | null => {
      if (!state) return null
      const {
        record: { status, response_code, last_error },
        latency_ms,
      } = state
      return {
        status,
        ...(response_code !== undefined && { response_code }),
        ...(last_error !== undefined && { last_error }),
        ...(latency_ms !== undefined && { latency_ms }),
      }
    },
  },
  deadline: (state) => state?.next,
  ended: (state) => state !== null && over(state),
  final: (state) => state !== null && over(state),
}

/** The delivery actor. */
export const deliveryActor = defineActor(actor)
