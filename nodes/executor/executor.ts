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

import { openLeaseGate } from '../../gateway/lease-gate.ts'
import type { MaybePromise } from '../../gateway/maybe-promise.ts'
import type { Log, World } from '../../gateway/ports.ts'
import { atMost } from '../../gateway/timing.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { Take } from '../../protocol/internal.ts'
import type { GatewayMessage, Offer, OfferReply } from '../../protocol/workers/messages.ts'
import { type ClaimedJob, reportErrors, sizes } from '../../protocol/workers/socket.ts'
import { type Handler, type Handlers, NOT_OURS, type Outcome } from './handler.ts'
import { type JobLease, jobLease } from './job-lease.ts'

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
type Wanted = Awaited<ReturnType<Handler['takes']>> | undefined
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

/** Milliseconds within which a reserved job must arrive. */
const RESERVATION_MS = 5000
/** Milliseconds for which `stop` waits for work in progress, and then for reports. */
const STOP_TIMEOUT_MS = { work: 5000, reports: 3000 } as const
/** The report with which a job returns to its queue. No attempt is used. */
const RETURNED: Outcome = { status: 'failed', error_type: reportErrors.over_capacity }

interface Running {
  readonly project: string
  readonly kind: ClaimedJob['kind']
  readonly token: string
  readonly abort: AbortController
  /** The reason why the job was aborted. */
  why?: 'lost' | 'cancelled' | 'stopping'
  readonly stopBeating: () => void
  readonly done: Promise<void>
}

/**
 * Replaces an outcome whose result exceeds the limit with a failure. The same limit applies to
 * workers. The failure is final, because another attempt would not make the result smaller.
 */
const kept = (outcome: Outcome): Outcome =>
  outcome.result && Buffer.byteLength(JSON.stringify(outcome.result)) > sizes.result
    ? {
        status: 'failed',
        error_type: reportErrors.result_too_large,
        error_message: `the result is larger than ${sizes.result} bytes`,
        final: true,
      }
    : outcome

/**
 * Returns the outcome that is reported for an attempt. Undefined if its lease was lost.
 * @param why the reason why the attempt was aborted, if it was.
 */
function reported(outcome: Outcome | typeof NOT_OURS, why: Running['why']): Outcome | undefined {
  if (why === 'lost') return undefined
  if (why === 'cancelled') return { status: 'cancelled' }
  return why === 'stopping' || outcome === NOT_OURS ? RETURNED : outcome
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
  const becomesFresh = openLeaseGate(world)
  const promised = new Map<string, { readonly project: string; readonly cancel: () => void }>()
  const running = new Map<string, Running>()
  /** Projects with a job that was not accepted because a limit was reached. */
  const refused = new Set<string>()
  let stopping = false
  let unlisten: (() => void) | undefined
  const share = Math.max(1, Math.ceil((limit * 3) / 4))
  const held = () => promised.size + running.size
  const ofProject = (project: string): number => {
    let count = 0
    for (const one of promised.values()) if (one.project === project) count++
    for (const one of running.values()) if (one.project === project) count++
    return count
  }
  const room = (project: string): number =>
    stopping ? 0 : Math.min(limit - held(), share - ofProject(project))

  /**
   * Listens while the limit is not reached, and announces new capacity to the projects in
   * `refused`.
   */
  const settle = (): void => {
    if (stopping || held() >= limit) {
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
  const free = (job_id: string): void => {
    promised.get(job_id)?.cancel()
    promised.delete(job_id)
    settle()
  }

  function take({ project, jobs }: Offer): MaybePromise<OfferReply | undefined> {
    const known = jobs.map((job) => handlers[job.kind]?.takes(project, job))
    return known.some((one) => one instanceof Promise)
      ? Promise.all(known).then((all) => promise(project, jobs, all))
      : promise(project, jobs, known as Wanted[])
  }
  /**
   * Reserves the jobs of an offer that the service can take, and returns the answer to the offer.
   * Returns undefined if no job is known to be for the service. If a job is offered again because
   * the first answer was late or lost, its reservation is renewed.
   */
  function promise(
    project: string,
    jobs: Offer['jobs'],
    known: readonly Wanted[],
  ): OfferReply | undefined {
    const takes: Take[] = []
    let busy = false
    for (const [i, job] of jobs.entries()) {
      const wanted = known[i]
      if (wanted === undefined || isRefusal(wanted)) continue
      const before = promised.get(job.id)
      if (!before && room(project) <= 0) {
        busy = true
        continue
      }
      before?.cancel()
      promised.set(job.id, { project, cancel: world.later(RESERVATION_MS, () => free(job.id)) })
      takes.push({ job_id: job.id, session, instance: mailbox, served: true, ...wanted })
    }
    if (busy) refused.add(project)
    settle()
    return takes.length > 0 || busy
      ? { gateway: mailbox, takes, ...(takes.length === 0 && { busy: true }) }
      : undefined
  }

  function end(one: Running, why: NonNullable<Running['why']>): void {
    one.why ??= why
    one.abort.abort()
  }

  async function perform(
    project: string,
    job: ClaimedJob,
    signal: AbortSignal,
  ): Promise<Outcome | typeof NOT_OURS> {
    try {
      if (!(await becomesFresh()) || signal.aborted) return NOT_OURS
      const outcome = (await handlers[job.kind]?.perform({ project, job, signal })) ?? NOT_OURS
      return outcome === NOT_OURS ? outcome : kept(outcome)
    } catch (error) {
      world.log.error(
        { event: 'executor_job_failed', err: error, job: job.id },
        'executor job failed',
      )
      return {
        status: 'failed',
        error_type: 'internal',
        error_message: 'an internal error occurred',
      }
    }
  }

  /** Performs a job, and reports its outcome. */
  async function work(one: Running, lease: JobLease, job: ClaimedJob): Promise<void> {
    const outcome = await perform(one.project, job, one.abort.signal)
    const outcomeToReport = reported(outcome, one.why)
    if (outcomeToReport) await lease.report(outcomeToReport)
    one.stopBeating()
    running.delete(job.id)
    settle()
  }

  function assign(project: string, job: ClaimedJob): boolean {
    const lease = jobLease({ world, mailbox }, project, job)
    const known = running.get(job.id)
    if (known?.token === job.lease_token) return true
    const was = promised.has(job.id)
    free(job.id)
    // The job has a newer lease, so the running attempt has lost its lease without being notified.
    if (known) end(known, 'lost')
    if (!lease || known || stopping || (!was && room(project) <= 0)) return false
    const one: Running = {
      project,
      kind: job.kind,
      token: job.lease_token,
      abort: new AbortController(),
      stopBeating: lease.renew((why) => end(one, why)),
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
      if (one) end(one, 'cancelled')
      return { ok: true }
    },
    running: () => running.size,
    async stop() {
      stopping = true
      for (const { cancel } of promised.values()) cancel()
      promised.clear()
      settle()
      const worked = () => Promise.all([...running.values()].map(({ done }) => done))
      const early = [...running.values()].flatMap((one) => {
        const grace = handlers[one.kind]?.graceMs
        return grace === undefined ? [] : [world.later(grace, () => end(one, 'stopping'))]
      })
      await atMost(world, STOP_TIMEOUT_MS.work, worked())
      for (const cancel of early) cancel()
      for (const one of running.values()) end(one, 'stopping')
      await atMost(world, STOP_TIMEOUT_MS.reports, worked())
      for (const one of running.values()) one.stopBeating()
      running.clear()
    },
  }
}
