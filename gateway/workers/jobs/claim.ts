/**
 * Claims: a worker asks for jobs and waits. A claim is answered with the first jobs assigned to its session, and with
 * none at the end of the poll time; it is never left without an answer while the connection lives.
 *
 * Invariants:
 * C1. One answer per claim, in one frame below the outbound limit; what does not fit waits for the next claim.
 * C2. An answer never has more jobs than the latest claim said it can run.
 * C3. After an answer that left slots free the worker is told to claim again, because many do not by themselves.
 */
import type { ClaimedJob, Filters } from '../../../protocol/workers/socket.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import { limits, type Edge } from '../edge.ts'
import { eligible, narrowed, type Wants } from './eligible.ts'
import { claimedFrame } from '../frames.ts'
import { calm, hint, remind } from './hint.ts'
import { withdraw } from './held-leases.ts'
import { gained, settle } from './offers.ts'
import { expect, met, type Claim, type Ready, type Session } from '../session.ts'

/** Bytes of an answer besides its jobs, at most. */
const ENVELOPE = 1024

interface Asked extends Filters {
  readonly message_id?: string | undefined
  readonly available_slots?: number | undefined
}

/** Take a `jobs.claim` frame. A repeated message id gets the answer it got, or joins the claim that waits. */
export function claim(edge: Edge, session: Session, frame: Asked): void {
  const { message_id } = frame
  const known = message_id === undefined ? undefined : edge.answers.get(session.id, message_id)
  if (known !== undefined) {
    session.connection.write(known)
    remind(edge, session)
    return
  }
  if (message_id !== undefined && session.claims.some((other) => other.message_id === message_id))
    return
  calm(session)
  met(session, edge.world.now())
  const slots = frame.available_slots
  if (slots !== undefined) session.limit = session.concurrency
  const wants =
    frame.queues || frame.action_names || frame.models
      ? edge.wants(narrowed(session.wants.filters, frame))
      : session.wants
  const made = new OpenClaim(edge, session, message_id, wants, slots ?? session.concurrency)
  edge.rounds.add(edge.world.settings.timing.poll * 1000, made)
  session.claims.push(made)
  if (session.draining || edge.stopping) {
    answer(edge, session, made, [])
    return
  }
  const [oldest] = session.claims
  if (session.claims.length > limits.claims && oldest) answer(edge, session, oldest, [])
  flush(edge, session)
  gained(edge, session)
}

/** A claim without an answer; an object without closures, because every idle worker has one. */
class OpenClaim implements Claim {
  readonly message_id: string | undefined
  readonly wants: Wants
  slots: number
  round: Claim['round']
  readonly #edge: Edge
  readonly #session: Session
  constructor(
    edge: Edge,
    session: Session,
    message_id: string | undefined,
    wants: Wants,
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

/** A job became ready: answer now when nothing else is on its way to this session, else in a moment, together with it. */
export function arrived(edge: Edge, session: Session): void {
  if (session.promised === 0) flush(edge, session)
  else session.flushing ??= edge.world.later(limits.batch, () => flush(edge, session))
}

/** Answer every outstanding claim with nothing: the worker or the gateway stops. */
export function dismiss(edge: Edge, session: Session): void {
  for (const made of [...session.claims]) answer(edge, session, made, [])
}

/** Hand ready jobs to outstanding claims, the oldest claim first. */
function flush(edge: Edge, session: Session): void {
  session.flushing?.()
  session.flushing = undefined
  for (const made of [...session.claims]) {
    const most = Math.min(made.slots, session.claims.at(-1)?.slots ?? 0)
    const picked: Ready[] = []
    let bytes = ENVELOPE
    for (const item of session.ready) {
      if (picked.length >= most || bytes + item.bytes > sizes.outbound) break
      if (!fits(item.job, made)) continue
      picked.push(item)
      bytes += item.bytes + 1
    }
    if (picked.length > 0) answer(edge, session, made, picked)
  }
}

const fits = (job: ClaimedJob, made: Claim): boolean => eligible(job, job.queue, made.wants)

/** A write that fails has ended the connection, and with it the session: what is still ready then has been given back. */
function answer(edge: Edge, session: Session, made: Claim, jobs: readonly Ready[]): void {
  edge.rounds.remove(made)
  const at = session.claims.indexOf(made)
  if (at < 0) return
  session.claims.splice(at, 1)
  for (const other of session.claims) other.slots = Math.max(0, other.slots - jobs.length)
  const text = claimedFrame(
    made.message_id,
    jobs.map((item) => item.text),
  )
  if (!session.connection.write(text)) return
  for (const { job } of jobs) withdraw(session, job.id)
  if (made.message_id !== undefined) edge.answers.put(session.id, made.message_id, text)
  if (session.claims.length === 0)
    expect(session, made.wants, made.slots - jobs.length, edge.world.now())
  settle(edge, session)
  if (jobs.length < made.slots || session.ready.length > 0) hint(edge, session)
}
