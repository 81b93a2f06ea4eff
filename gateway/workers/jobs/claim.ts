/**
 * Handles claims, with which workers request jobs. A claim is answered with the first jobs that are
 * assigned to its session and match the claim. It is answered without jobs when its poll time ends,
 * the worker drains, the gateway stops, or too many newer claims are open. A claim stays unanswered
 * only if its connection ends. `offers.ts` decides which jobs are assigned.
 *
 * Invariants:
 * C1. A claim is answered with one frame below the outbound limit (`sizes.outbound`). Jobs that do
 *     not fit wait for the next claim.
 * C2. The number of jobs in an answer is limited by the remaining slots of its claim, and by those
 *     of the latest claim.
 * C3. After an answer that leaves slots free or jobs undelivered, the worker receives
 *     `work.available`, because many workers do not claim again on their own. No such frame is sent
 *     if the worker accepts no jobs or has another open claim, or if the gateway is stopping.
 */
import type { ClaimedJob, Filters } from '../../../protocol/workers/socket.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import { limits, type WorkerEdge } from '../edge.ts'
import { claimedFrame } from '../frames.ts'
import { type Claim, expectClaim, type Ready, recordClaim, type Session } from '../session.ts'
import { claimFilters, isEligible, type PreparedFilters } from './eligible.ts'
import { withdrawReady } from './held-leases.ts'
import { scheduleHint, sendHint, stopReminders } from './hint.ts'
import { handleCapacityGain, updateSubscriptions } from './offers.ts'

/** Maximum size of an answer in bytes, without its jobs. */
const MAX_ENVELOPE_BYTES = 1024

interface Asked extends Filters {
  readonly message_id?: string | undefined
  readonly available_slots?: number | undefined
}

/**
 * Handles a `jobs.claim` frame. If a claim with its message id has already been answered, the
 * stored answer is sent again. If a claim with this message id is still open, the frame is ignored.
 */
export function handleClaim(edge: WorkerEdge, session: Session, frame: Asked): void {
  const { message_id } = frame
  const known = message_id === undefined ? undefined : edge.answers.get(session.id, message_id)
  if (known !== undefined) {
    session.connection.write(known)
    scheduleHint(edge, session)
    return
  }
  if (message_id !== undefined && session.claims.some((other) => other.message_id === message_id))
    return
  stopReminders(session)
  recordClaim(session, edge.world.monotonic())
  const slots = frame.available_slots
  if (slots !== undefined) session.limit = session.concurrency
  const wants =
    frame.queues || frame.action_names || frame.models
      ? edge.prepareFilters(claimFilters(session.wants.filters, frame))
      : session.wants
  const made = new OpenClaim(edge, session, message_id, wants, slots ?? session.concurrency)
  edge.timerWheel.add(edge.world.settings.timing.poll * 1000, made)
  session.claims.push(made)
  if (session.draining || edge.stopping) {
    answer(edge, session, made, [])
    return
  }
  const [oldest] = session.claims
  if (session.claims.length > limits.claims && oldest) answer(edge, session, oldest, [])
  flush(edge, session)
  handleCapacityGain(edge, session)
}

/**
 * An unanswered claim. It is a class without closures to save memory, because an idle worker
 * usually has one.
 */
class OpenClaim implements Claim {
  readonly message_id: string | undefined
  wants: PreparedFilters
  slots: number
  round: Claim['round']
  readonly #edge: WorkerEdge
  readonly #session: Session
  constructor(
    edge: WorkerEdge,
    session: Session,
    message_id: string | undefined,
    wants: PreparedFilters,
    slots: number,
  ) {
    this.#edge = edge
    this.#session = session
    this.message_id = message_id
    this.wants = wants
    this.slots = slots
  }
  due(): void {
    flush(this.#edge, this.#session)
    answer(this.#edge, this.#session, this, [])
  }
}

/**
 * Delivers a job that became ready. If other jobs are reserved for the session, waits up to
 * `limits.batch` for them, so that several jobs are sent in one answer.
 */
export function deliverReadyJob(edge: WorkerEdge, session: Session): void {
  if (session.promised === 0) flush(edge, session)
  else session.flushing ??= edge.world.later(limits.batch, () => flush(edge, session))
}

/** Answers every open claim without jobs, because the worker drains or the gateway stops. */
export function dismissClaims(edge: WorkerEdge, session: Session): void {
  for (const made of [...session.claims]) answer(edge, session, made, [])
}

/** Delivers ready jobs to the open claims that they match, oldest claim first. */
function flush(edge: WorkerEdge, session: Session): void {
  session.flushing?.()
  session.flushing = undefined
  for (const made of [...session.claims]) {
    const most = Math.min(made.slots, session.claims.at(-1)?.slots ?? 0)
    const picked: Ready[] = []
    let bytes = MAX_ENVELOPE_BYTES
    for (const item of session.ready) {
      if (picked.length >= most || bytes + item.bytes > sizes.outbound) break
      if (!fits(item.job, made)) continue
      picked.push(item)
      bytes += item.bytes + 1
    }
    if (picked.length > 0) answer(edge, session, made, picked)
  }
}

const fits = (job: ClaimedJob, made: Claim): boolean => isEligible(job, job.queue, made.wants)

/**
 * Answers a claim. If the write fails, nothing more is done here: the failed write has already
 * ended the connection and its session, and returned the ready jobs to their queues.
 */
function answer(edge: WorkerEdge, session: Session, made: Claim, jobs: readonly Ready[]): void {
  edge.timerWheel.remove(made)
  const at = session.claims.indexOf(made)
  if (at < 0) return
  session.claims.splice(at, 1)
  for (const other of session.claims) other.slots = Math.max(0, other.slots - jobs.length)
  const text = claimedFrame(
    made.message_id,
    jobs.map((item) => item.text),
  )
  if (!session.connection.write(text)) return
  for (const { job } of jobs) withdrawReady(edge, session, job.id)
  if (made.message_id !== undefined) edge.answers.put(session.id, made.message_id, text)
  if (session.claims.length === 0)
    expectClaim(session, made.wants, made.slots - jobs.length, edge.world.monotonic())
  updateSubscriptions(edge, session)
  if (jobs.length < made.slots || session.ready.length > 0) sendHint(edge, session)
}
