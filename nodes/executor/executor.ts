/**
 * The executor: a built-in worker without a socket. It accepts the jobs that are not for external
 * workers, from the same queues, under the same leases, with the same heartbeats and reports.
 *
 * Invariants:
 * X1. Reserved and running jobs together never exceed the limit, and no project ever has more than
 *     three quarters of the limit (rounded up). At the limit, the executor does not listen, so that
 *     offers go to other executors.
 * X2. Nothing is reported about a job whose lease is known to be lost when its attempt ends. A
 *     report is repeated until the queue decides it, or until one lease duration has passed.
 * X3. A job begins only while the node's own lease is fresh, because handlers trust the cached
 *     configuration. If the lease stays stale, the job returns to its queue, and no attempt is
 *     used.
 * X4. Jobs that are still running some time after a stop was requested return to their queues, and
 *     no attempt is used.
 */

import type { MaybePromise } from '../../gateway/maybe-promise.ts'
import type { Log, World } from '../../gateway/ports.ts'
import { atMost } from '../../gateway/timing.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { Take } from '../../protocol/internal.ts'
import type { GatewayMessage, Offer, OfferReply } from '../../protocol/workers/messages.ts'
import type { ClaimedJob } from '../../protocol/workers/socket.ts'
import type { Handler, Handlers } from './handler.ts'
import { type AbortReason, createAttempts, outcomeToReport } from './jobs/attempt.ts'
import { type JobLease, jobLease } from './jobs/job-lease.ts'
import { createReservations } from './jobs/reservations.ts'

export interface ExecutorParts {
  readonly world: Pick<
    World,
    | 'now'
    | 'monotonic'
    | 'later'
    | 'command'
    | 'newCommandId'
    | 'demand'
    | 'settings'
    | 'random'
    | 'id'
    | 'fresh'
  > & { readonly log: Log }
  /** Name of the executor's mailbox. The leases of the executor contain this name. */
  readonly mailbox: string
  readonly handlers: Handlers
  /** Maximum number of concurrent jobs. */
  readonly limit: number
  /** Listens for offers of work. Returns a function that stops listening. */
  listen(handler: (offer: Offer) => MaybePromise<OfferReply | undefined>): () => void
}
/** What a handler answers about an offered job; undefined if the job's kind has no handler. */
type Taken = Awaited<ReturnType<Handler['takes']>> | undefined
export interface Executor {
  /**
   * Handles a message from a shard owner. `ok` is false when the message is not for this executor,
   * or an assigned job is not accepted.
   */
  receive(message: GatewayMessage): { ok: boolean }
  /** Returns the number of running jobs. */
  running(): number
  /**
   * Accepts no more jobs, waits a limited time for running jobs, and then returns the remaining
   * jobs to their queues.
   */
  stop(): Promise<void>
}

/** Milliseconds for which `stop` waits for work in progress, and then for reports. */
const STOP_TIMEOUT_MS = { work: 5000, reports: 3000 } as const

interface Running {
  readonly project: string
  readonly kind: ClaimedJob['kind']
  readonly token: string
  readonly abort: AbortController
  why?: AbortReason
  readonly stopBeating: () => void
  readonly done: Promise<void>
}

/** Starts accepting jobs. */
export function startExecutor({
  world,
  mailbox,
  handlers,
  limit,
  listen,
}: ExecutorParts): Executor {
  const session = world.id('session')
  const attempt = createAttempts(world, handlers)
  const reservations = createReservations(world, settle)
  const running = new Map<string, Running>()
  /** Projects with a job that was not accepted because a limit was reached. */
  const refused = new Set<string>()
  let stopping = false
  let unlisten: (() => void) | undefined

  const maxOfProject = Math.max(1, Math.ceil((limit * 3) / 4))
  const used = () => reservations.count() + running.size
  const usedBy = (project: string): number => {
    let count = reservations.count(project)
    for (const one of running.values()) if (one.project === project) count++
    return count
  }
  /** Returns how many further jobs of a project may be accepted (X1). */
  const room = (project: string): number =>
    stopping ? 0 : Math.min(limit - used(), maxOfProject - usedBy(project))

  /**
   * Listens while the limit is not reached, and announces new capacity to the projects in
   * `refused`.
   */
  function settle(): void {
    if (stopping || used() >= limit) {
      unlisten?.()
      unlisten = undefined
      return
    }
    unlisten ??= listen(take)
    for (const project of [...refused]) {
      if (room(project) <= 0) continue
      refused.delete(project)
      world.demand(project)
    }
  }

  function take({ project, jobs }: Offer): MaybePromise<OfferReply | undefined> {
    const taken = jobs.map((job) => handlers[job.kind]?.takes(project, job))
    return taken.some((one) => one instanceof Promise)
      ? Promise.all(taken).then((all) => reserve(project, jobs, all))
      : reserve(project, jobs, taken as Taken[])
  }
  /**
   * Reserves the jobs of an offer that the service can take, and returns the answer to the offer.
   * Returns undefined if no job is known to be for the service. If a job is offered again because
   * the first answer was late or lost, its reservation is renewed.
   */
  function reserve(
    project: string,
    jobs: Offer['jobs'],
    taken: readonly Taken[],
  ): OfferReply | undefined {
    const takes: Take[] = []
    let busy = false
    for (const [i, job] of jobs.entries()) {
      const data = taken[i]
      if (data === undefined || isRefusal(data)) continue
      if (!reservations.has(job.id) && room(project) <= 0) {
        busy = true
        continue
      }
      reservations.reserve(job.id, project)
      takes.push({ job_id: job.id, session, instance: mailbox, served: true, ...data })
    }
    if (busy) refused.add(project)
    settle()
    return takes.length > 0 || busy
      ? { gateway: mailbox, takes, ...(takes.length === 0 && { busy: true }) }
      : undefined
  }

  function abort(one: Running, why: AbortReason): void {
    one.why ??= why
    one.abort.abort()
  }

  /** Performs a job, and reports its outcome. */
  async function work(one: Running, lease: JobLease, job: ClaimedJob): Promise<void> {
    const outcome = await attempt({ project: one.project, job, signal: one.abort.signal })
    const report = outcomeToReport(outcome, one.why)
    if (report) await lease.report(report)
    one.stopBeating()
    running.delete(job.id)
    settle()
  }

  /** Begins a job that its queue has assigned. Returns whether the job is accepted. */
  function assign(project: string, job: ClaimedJob): boolean {
    const lease = jobLease({ world, mailbox }, project, job)
    const known = running.get(job.id)
    if (known?.token === job.lease_token) return true
    const wasReserved = reservations.has(job.id)
    reservations.release(job.id)
    settle()
    // The job has a newer lease, so the running attempt has lost its lease without being notified.
    if (known) abort(known, 'lost')
    if (!lease || known || stopping || (!wasReserved && room(project) <= 0)) return false
    const one: Running = {
      project,
      kind: job.kind,
      token: job.lease_token,
      abort: new AbortController(),
      stopBeating: lease.renew((why) => abort(one, why)),
      done: Promise.resolve().then(() => work(one, lease, job)),
    }
    running.set(job.id, one)
    settle()
    return true
  }

  settle()
  return {
    receive(message) {
      if (message.type === 'assign' && message.session === session)
        return { ok: assign(message.project, message.job) }
      if (message.type !== 'cancel' || message.session !== session) return { ok: false }
      const one = running.get(message.job_id)
      if (one) abort(one, 'cancelled')
      return { ok: true }
    },
    running: () => running.size,
    async stop() {
      stopping = true
      reservations.releaseAll()
      settle()
      const worked = () => Promise.all([...running.values()].map(({ done }) => done))
      const early = [...running.values()].flatMap((one) => {
        const grace = handlers[one.kind]?.graceMs
        return grace === undefined ? [] : [world.later(grace, () => abort(one, 'stopping'))]
      })
      await atMost(world, STOP_TIMEOUT_MS.work, worked())
      for (const cancel of early) cancel()
      for (const one of running.values()) abort(one, 'stopping')
      await atMost(world, STOP_TIMEOUT_MS.reports, worked())
      for (const one of running.values()) one.stopBeating()
      running.clear()
    },
  }
}
