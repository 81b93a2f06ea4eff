/**
 * The effects of a queue's events. A job that starts to wait is offered. A pinned job's environment
 * is notified of the job's arrival and end. A claimed job is sent to the gateway or executor that
 * claimed it. A cancellation is sent to the gateway or executor that claimed the job or sent its
 * last heartbeat.
 */

import type { Address } from '../../protocol/entry.ts'
import {
  type JobHeader,
  type LeaseGrant,
  ownerOf,
  type QueueEvent,
} from '../../protocol/jobs/rows.ts'
import { extended } from '../../protocol/rules/extended.ts'
import type { GatewayMessage } from '../../protocol/workers/messages.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { WorkerTiming } from '../../protocol/workers/timing.ts'
import type { Actor, Effect, Push } from '../actor.ts'
import { find, type QueueState } from './state.ts'

type Ended = Extract<QueueEvent, { type: 'job.completed' | 'job.failed' | 'job.cancelled' }>
type Reactions = NonNullable<Actor<unknown, QueueEvent, Record<never, never>, 'queue'>['react']>

/** Returns the queue name in the id of a queue actor, `<shard>.<name>`. */
export const nameOf = ({ id }: { readonly id: string }): string => id.slice(id.indexOf('.') + 1)

/** Returns a leased job in the form that workers receive. */
const claimedJob = (
  header: JobHeader,
  { token, attempt }: LeaseGrant,
  queue: string,
  timing: WorkerTiming,
): ClaimedJob => ({
  id: header.id,
  kind: header.kind,
  origin: header.origin,
  executor_kind: header.executor_kind,
  queue,
  ...(header.action_name !== undefined && { action_name: header.action_name }),
  ...(header.environment_id !== undefined && { environment_id: header.environment_id }),
  ...(header.provider !== undefined && { provider: header.provider }),
  ...(header.model !== undefined && { model: header.model }),
  ...(header.run_id !== undefined && { run_id: header.run_id }),
  ...(header.step_id !== undefined && { step_id: header.step_id }),
  ...(header.agent_turn_id !== undefined && { agent_turn_id: header.agent_turn_id }),
  ...(header.session_id !== undefined && { session_id: header.session_id }),
  ...(header.tool_call_id !== undefined && { tool_call_id: header.tool_call_id }),
  ...(header.delivery_id !== undefined && { delivery_id: header.delivery_id }),
  // The rest of the content is filled in when the job is sent.
  spec:
    header.environment_fence === undefined
      ? {}
      : { environment: { fence: header.environment_fence } },
  lease_token: token,
  claim_attempt: attempt,
  lease_duration_seconds: timing.lease,
  heartbeat_cadence_seconds: timing.cadence,
})

const toGateway = (gateway: string, message: GatewayMessage) => ({
  push: { gateway, message: { ...message } },
})
const offer = (_event: unknown, self: Address): readonly Effect[] => [
  { offer: { queue: nameOf(self) } },
]

const toEnvironment = (id: string, name: string, input: unknown): Effect => ({
  tell: { to: { kind: 'environment', id }, name, input },
})
const ended = ({ id, environment_id }: Ended): readonly Effect[] =>
  environment_id === undefined
    ? []
    : [toEnvironment(environment_id, 'environment.done', { job_id: id })]

/** The events that can make a job available for matching. */
export const offeringEvents: ReadonlySet<string> = new Set<QueueEvent['type']>([
  'job.queued',
  'job.requeued',
  'job.rested',
  'job.admitted',
])

/**
 * Returns the reactions of a queue to its events.
 * @param timing lease duration and heartbeat cadence, in seconds.
 */
export const deliveries = (timing: WorkerTiming): Reactions => ({
  'job.queued': (event, self) => {
    const { environment, environment_id } = event.header
    return environment && environment_id !== undefined
      ? [
          toEnvironment(environment_id, 'environment.use', {
            ...environment,
            job_id: event.id,
            queue: self.id,
          }),
        ]
      : offer(event, self)
  },
  'job.admitted': offer,
  'job.completed': ended,
  'job.failed': ended,
  'job.cancelled': ended,
  'job.requeued': offer,
  'job.rested': offer,
  'job.claimed': ({ id, header, lease }, self) => {
    const { push } = toGateway(lease.gateway, {
      type: 'assign',
      project: self.project,
      session: lease.session,
      job: claimedJob(header, lease, nameOf(self), timing),
    })
    // A job of kind `delivery` is sent without its content, because the executor reads the content
    // itself when it sends the delivery.
    const owner = header.kind === 'delivery' ? undefined : ownerOf(header)
    return [
      {
        push: {
          gateway: push.gateway,
          message: push.message,
          ...(owner && { spec: extended(owner, { ask: 'job_spec', input: { job_id: id } }) }),
        },
      },
    ]
  },
  'job.cancel_requested': ({ id, gateway, session, reason, at }, self) => [
    toGateway(gateway, {
      type: 'cancel',
      project: self.project,
      session,
      job_id: id,
      ...(reason !== undefined && { reason }),
      at,
    }),
  ],
})

/**
 * Whether a message can be dropped instead of being sent again. Only an assignment can become
 * obsolete: its lease has been replaced or has ended, or its worker has sent a heartbeat.
 */
export function isObsolete(state: QueueState, { message }: Push): boolean {
  if (message.type !== 'assign') return false
  const { id, lease_token } = message['job'] as ClaimedJob
  const lease = find(state, id)?.lease
  return lease?.token !== lease_token || lease.heard === true
}
