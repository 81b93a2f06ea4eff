/**
 * Handles the messages that shard owners send to a worker session: a leased job to deliver, a job
 * to cancel, a drain, an attached environment, or a newer connection. An assignment is answered
 * with `ok: true` only if this gateway takes responsibility for the job. The gateway then writes
 * the job to the socket, returns it to its queue, or reports it as failed or cancelled.
 */
import { timestamp } from '../../../protocol/common.ts'
import type { ModelMessage } from '../../../protocol/sessions/turns/request.ts'
import type { GatewayMessage } from '../../../protocol/workers/messages.ts'
import { type ClaimedJob, closeCodes, sizes } from '../../../protocol/workers/socket.ts'
import { andThen, type MaybePromise } from '../../maybe-promise.ts'
import { conversionsOf } from '../../sessions/conversions.ts'
import { refersToFiles, withFileBytes } from '../../sessions/inline.ts'
import { drainSession } from '../drain.ts'
import { limits, queueOf, sendCommand, type WorkerEdge } from '../edge.ts'
import { type Ready, type Session, takesJobs, unusedSlots } from '../session.ts'
import { deliverReadyJob } from './claim.ts'
import type { PreparedFilters } from './eligible.ts'
import { leaseUntil, releaseJob, removeEndedLease, withdrawReady } from './held-leases.ts'
import { scheduleHint } from './hint.ts'
import { handleCapacityGain, unreserve, updateSubscriptions } from './offers.ts'

type Message = Exclude<GatewayMessage, { type: 'forget' }>

/**
 * Handles a message for a session. `ok` is false when the session is not connected here, or cannot
 * accept the assigned job.
 */
export function receive(edge: WorkerEdge, message: Message): MaybePromise<{ ok: boolean }> {
  const session = edge.sessions.get(message.session)
  if (!session || session.closed || session.project !== message.project) return { ok: false }
  switch (message.type) {
    case 'assign':
      return andThen(withFiles(edge, session, message.job), (job) => ({
        ok: !session.closed && assign(edge, session, job),
      }))
    case 'cancel':
      cancel(edge, session, message)
      return { ok: true }
    case 'drain':
      if (!session.draining) session.connection.send({ type: 'worker.drain' })
      drainSession(edge, session)
      return { ok: true }
    case 'attach':
      attach(edge, session, message.environment_id)
      return { ok: true }
    case 'supersede':
      if (session.generation < message.generation)
        session.connection.close(closeCodes.superseded, 'superseded by a newer connection')
      return { ok: true }
  }
}

/**
 * Pins the session's filters to an environment, so that the session also receives the jobs of the
 * environment.
 */
function attach(edge: WorkerEdge, session: Session, environment_id: string): void {
  const pinned = (wants: PreparedFilters): PreparedFilters =>
    edge.prepareFilters({ ...wants.filters, environment_id })
  session.wants = pinned(session.wants)
  session.storedFilters = pinned(session.storedFilters)
  for (const claim of session.claims) claim.wants = pinned(claim.wants)
  if (session.next) session.next = { ...session.next, wants: pinned(session.next.wants) }
  handleCapacityGain(edge, session)
  edge.terminals.serve(session)
}

function assign(edge: WorkerEdge, session: Session, job: ClaimedJob): boolean {
  const held = session.held.get(job.id)
  const promised = unreserve(edge, session, job.id)
  const known = held?.token === job.lease_token
  if (
    known ||
    !takesJobs(session) ||
    edge.stopping ||
    (!promised && !held && unusedSlots(session) <= 0)
  ) {
    updateSubscriptions(edge, session)
    return known
  }
  const now = edge.world.monotonic()
  // The queue may repeat a job before this gateway has received its decision on the failed attempt.
  // The new lease has not been reported, so it occupies a slot.
  session.hold(job.id, {
    token: job.lease_token,
    until: leaseUntil(edge, job.lease_duration_seconds),
    heard: now,
    beaten: now,
    ...spoken(job),
  })
  const text = JSON.stringify(shown(job))
  const bytes = Buffer.byteLength(text)
  if (bytes > sizes.spec && Buffer.byteLength(JSON.stringify(job.spec)) > sizes.spec) {
    finish(edge, session, job, {
      status: 'failed',
      error_type: 'SpecTooLarge',
      error_message: `the job's spec is larger than ${sizes.spec} bytes`,
    })
    return true
  }
  const ready: Ready = {
    job,
    text,
    bytes,
    due: () => {
      withdrawReady(edge, session, job.id)
      releaseJob(edge, session, job)
    },
    round: undefined,
    place: undefined,
  }
  edge.timerWheel.add(limits.reservation, ready)
  session.ready.push(ready)
  if (session.claims.length === 0) scheduleHint(edge, session)
  deliverReadyJob(edge, session)
  updateSubscriptions(edge, session)
  return true
}

/**
 * Inserts the files that a generation's conversation refers to, within the size limit of a spec.
 * Other jobs, and jobs whose files cannot be read, are returned unchanged.
 */
function withFiles(
  { world }: WorkerEdge,
  { project }: Session,
  job: ClaimedJob,
): MaybePromise<ClaimedJob> {
  if (job.kind !== 'llm_generation') return job
  const request = job.spec['request'] as { readonly messages?: readonly ModelMessage[] } | undefined
  const { messages } = request ?? {}
  if (!messages || !refersToFiles(messages)) return job
  const most = sizes.spec - Buffer.byteLength(JSON.stringify(job.spec)) - MARGIN_BYTES
  const conversion = conversionsOf(world, project, job.session_id, CONVERSION_TIMEOUT_MS)
  return withFileBytes(world.files, project, messages, {
    most,
    reads: () => true,
    conversion,
  }).then(
    (shown) => ({ ...job, spec: { ...job.spec, request: { ...request, messages: shown } } }),
    (error: unknown) => {
      world.log.warn(
        { event: 'conversation_files_read_failed', err: error, job: job.id },
        'conversation files read failed',
      )
      return job
    },
  )
}
/**
 * Maximum time in milliseconds for which a job waits for the conversion of files. It is shorter
 * than the time for which an owner waits for the answer to an assignment.
 */
const CONVERSION_TIMEOUT_MS = 1500
/** Number of bytes of a spec that are reserved for JSON escaping and syntax. */
const MARGIN_BYTES = 64 * 1024

/** Returns the agent session and the model of a generation; an empty object for other jobs. */
const spoken = ({ kind, session_id, model }: ClaimedJob) =>
  kind === 'llm_generation' && session_id !== undefined
    ? { session_id, ...(model !== undefined && { model }) }
    : {}

/**
 * Returns the fields of a job that are sent to a worker. Strict clients reject other fields. An
 * object with a fixed shape is encoded faster than one that gets its fields one by one.
 */
const shown = (job: ClaimedJob) =>
  ({
    id: job.id,
    kind: job.kind,
    origin: job.origin,
    executor_kind: job.executor_kind,
    queue: job.queue,
    action_name: job.action_name,
    environment_id: job.environment_id,
    provider: job.provider,
    model: job.model,
    run_id: job.run_id,
    step_id: job.step_id,
    agent_turn_id: job.agent_turn_id,
    session_id: job.session_id,
    tool_call_id: job.tool_call_id,
    spec: job.spec,
    lease_token: job.lease_token,
    claim_attempt: job.claim_attempt,
    lease_duration_seconds: job.lease_duration_seconds,
    heartbeat_cadence_seconds: job.heartbeat_cadence_seconds,
  }) satisfies { readonly [K in keyof ClaimedJob]?: ClaimedJob[K] | undefined }

/**
 * Cancels a job. An undelivered job is reported as cancelled. Otherwise the worker receives
 * `job.cancel`. The queue also includes the cancel request in its answers to later heartbeats of
 * the job.
 */
function cancel(
  edge: WorkerEdge,
  session: Session,
  { job_id, reason, at }: Extract<Message, { type: 'cancel' }>,
): void {
  const waiting = withdrawReady(edge, session, job_id)
  if (waiting) finish(edge, session, waiting, { status: 'cancelled' })
  else
    session.connection.send({
      type: 'job.cancel',
      job_id,
      ...(reason !== undefined && { reason }),
      requested_at: timestamp(at),
    })
}

/** Reports the outcome of a job that was never delivered to the worker. */
function finish(
  edge: WorkerEdge,
  session: Session,
  job: ClaimedJob,
  outcome: { status: 'failed' | 'cancelled'; error_type?: string; error_message?: string },
): void {
  removeEndedLease(edge, session, job.id, job.lease_token)
  const to = queueOf(edge, session.project, job.id, job.lease_token)
  if (to)
    void sendCommand(edge, session.connection.grant, to, 'queue.report', {
      job_id: job.id,
      lease_token: job.lease_token,
      ...outcome,
    })
}
