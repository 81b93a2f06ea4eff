/**
 * Matches waiting jobs with workers. Waiting jobs are offered to the gateways that listen for such
 * jobs. A gateway that accepts jobs returns the worker sessions for them, and the queue commits the
 * claims. A gateway without a free slot answers `busy` and stops listening, and the next gateway
 * receives the offer immediately. A lost offer is repeated after about `OFFER_INTERVAL_MS`. Jobs
 * for which no gateway listens, or that a gateway reports as work of the service itself (`served`),
 * are offered to the executors.
 *
 * Listeners in the owner's own process receive the first offer before the batch that queued the
 * jobs is committed. Their claims are then part of that commit, and the jobs are sent one commit
 * earlier.
 *
 * Invariants:
 * O1. While no append is in flight, every queue with waiting work is in `#queues`, which is part of
 *     the checkpoint. The next owner therefore also offers the work of a queue whose actor is not
 *     in memory.
 * O2. A job that is accepted before the commit is only reserved, and the reservation expires. The
 *     job itself is sent after the commit, as an effect of its claim.
 */
import { offeringEvents } from '../../../actors/jobs/deliveries.ts'
import type { Address, Command } from '../../../protocol/entry.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { matchingKeyOf, offerCapability, subjects } from '../../../protocol/subjects.ts'
import type { Offer, OfferReply } from '../../../protocol/workers/messages.ts'
import type { Batch } from '../durability/batch.ts'
import type { WriteGate } from '../durability/write-gate.ts'
import { type ActorInstance, actorKey } from '../memory/actor-instance.ts'
import type { ActorRequests, ShardContext } from '../shard-context.ts'

/** Maximum number of jobs in one offer. */
const MAX_JOBS = 64
/** Maximum number of times that one group of jobs is offered before the queue is read again. */
const MAX_REQUESTS = 16
/** Milliseconds between two offers of work that was not accepted. */
const OFFER_INTERVAL_MS = 2000

interface Matching {
  readonly key: string
  readonly address: Address
  readonly queue: string
  running: boolean
  again: boolean
}

/**
 * Whether the jobs of a group are never executed by workers, and are therefore offered to executors
 * only.
 */
const isServed = ([first]: readonly JobHeader[]): boolean =>
  first?.executor_kind === 'server_worker'

interface Group {
  readonly capability: string
  readonly jobs: JobHeader[]
}
/**
 * A quick test whether two jobs have the same matching key (`matchingKeyOf`). False does not imply that
 * the keys differ.
 */
const isAlike = (a: JobHeader, b: JobHeader): boolean =>
  a.action_name === b.action_name &&
  a.kind === b.kind &&
  a.executor_kind === b.executor_kind &&
  a.workers_only === b.workers_only &&
  a.environment_id === b.environment_id &&
  a.model === b.model &&
  a.provider === b.provider
/**
 * Groups jobs that can be offered together, with the capability that they require. An offer
 * contains one group.
 */
function groupJobs(jobs: readonly JobHeader[]): Iterable<Group> {
  const groups = new Map<string, Group>()
  let last: Group | undefined
  for (const job of jobs) {
    if (!last || !isAlike(job, last.jobs[0] as JobHeader)) {
      const key = matchingKeyOf(job)
      last = groups.get(key)
      if (!last) groups.set(key, (last = { capability: offerCapability(job), jobs: [] }))
    }
    last.jobs.push(job)
  }
  return groups.values()
}

export class Offers {
  readonly #context: ShardContext
  readonly #requests: ActorRequests
  readonly #gate: Pick<WriteGate, 'closed'>
  readonly #queues = new Map<string, Matching>()
  #stop: (() => void) | undefined
  #stopped = false
  #counter = 0

  /** @param gate while it is closed, nothing is offered. */
  constructor(context: ShardContext, requests: ActorRequests, gate: Pick<WriteGate, 'closed'>) {
    this.#context = context
    this.#requests = requests
    this.#gate = gate
  }
  start(): void {
    for (const instance of this.#context.instances.all())
      if (instance.kind === 'queue') this.#matchingOf(instance)
    for (const matching of this.#queues.values()) this.#kick(matching)
    const tick = () => {
      for (const matching of this.#queues.values()) this.#kick(matching)
      this.#stop = this.#context.deps.clock.later(OFFER_INTERVAL_MS, tick)
    }
    this.#stop = this.#context.deps.clock.later(OFFER_INTERVAL_MS, tick)
  }
  stop(): void {
    this.#stopped = true
    this.#stop?.()
  }
  /**
   * Returns the keys of the queues that have, or may have, work. While no append is in flight,
   * these include all queues with work.
   */
  waiting(): string[] {
    return [...this.#queues.keys()]
  }
  /** Adds a queue that had work when the checkpoint was made. `start` begins to offer its work. */
  recall(queue: Address): void {
    this.#matchingOf(queue)
  }
  /**
   * Offers the waiting jobs of a queue of this shard. Called when the queue has, or may have,
   * waiting jobs.
   */
  kick(project: string, queue: string): void {
    this.#kick(this.#matchingOf({ project, kind: 'queue', id: `${this.#context.shard}.${queue}` }))
  }
  /** Offers the work of a project for which a worker or an executor gained slots. */
  kickProject(project: string): void {
    for (const matching of this.#queues.values())
      if (matching.address.project === project) this.#kick(matching)
  }

  /**
   * Offers jobs to the listeners in this process before the batch that queued the jobs is
   * committed. The resulting claims become part of the batch.
   */
  async ahead(batch: Batch): Promise<void> {
    const queues = new Set<ActorInstance>()
    batch.entries.forEach(({ kind, events }, i) => {
      if (kind === 'queue' && events.some(({ type }) => offeringEvents.has(type)))
        queues.add(batch.instances[i] as ActorInstance)
    })
    for (const instance of queues) {
      const matching = this.#matchingOf(instance)
      // The jobs of this queue are being offered already.
      if (matching.running) continue
      for (const { capability, jobs } of groupJobs(this.#peek(instance) ?? [])) {
        const taking = batch.full ? undefined : this.#askHere(matching, capability, jobs)
        if (!taking || taking.takes.length === 0) continue
        this.#context.deps.measure.offer(jobs.length, taking.takes.length)
        await batch.decide(this.#claim(matching.address, taking))
      }
    }
  }
  #askHere(
    { address: { project }, queue }: Matching,
    capability: string,
    jobs: readonly JobHeader[],
  ): OfferReply | undefined {
    const offer: Offer = { project, queue, jobs, source: this.#context.name, ahead: true }
    const ask = (subject: string) =>
      this.#context.deps.bus.here(subject, offer) as OfferReply | undefined
    const taking = isServed(jobs) ? undefined : ask(subjects.offer(project, queue, capability))
    return isServed(jobs) || taking?.served
      ? ask(subjects.serve(project, queue, capability))
      : taking
  }
  #claim(queue: Address, { gateway, takes }: OfferReply): Command {
    const { clock, node } = this.#context.deps
    return {
      kind: queue.kind,
      project: queue.project,
      id: queue.id,
      command_id: `c:${this.#context.position.epoch}.${this.#counter++}`,
      name: 'queue.claim',
      input: { gateway, takes },
      origin: {
        at: clock.now(),
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: node },
      },
    }
  }

  #matchingOf(address: Address): Matching {
    const key = actorKey(address)
    const known = this.#queues.get(key)
    if (known) return known
    const { project, id } = address
    const matching: Matching = {
      key,
      address: { project, kind: 'queue', id },
      queue: id.slice(id.indexOf('.') + 1),
      running: false,
      again: false,
    }
    this.#queues.set(key, matching)
    return matching
  }
  #kick(matching: Matching): void {
    if (this.#stopped || this.#gate.closed()) return
    if (matching.running) {
      matching.again = true
      return
    }
    const jobs = this.#peek(matching.address)
    if (jobs?.length === 0) {
      this.#queues.delete(matching.key)
      return
    }
    matching.running = true
    void this.#match(matching, jobs)
      .catch((error) =>
        this.#context.deps.log.warn(
          { event: 'job_offer_failed', err: error, queue: matching.queue },
          'job offer failed',
        ),
      )
      .finally(() => {
        matching.running = false
      })
  }
  /**
   * Offers the waiting jobs of a queue. Reads the queue and offers again if all jobs of a group
   * were taken, or if another offer was requested in the meantime (`again`).
   * @param waiting the waiting jobs, if the queue is in memory.
   */
  async #match(matching: Matching, waiting: readonly JobHeader[] | undefined): Promise<void> {
    for (let jobs = waiting; ; jobs = this.#peek(matching.address)) {
      matching.again = false
      jobs ??= await this.#ask(matching.address)
      if (!jobs) return
      if (jobs.length === 0 && !matching.again) this.#queues.delete(matching.key)
      for (const group of groupJobs(jobs))
        if (await this.#offer(matching, group)) matching.again = true
      if (!matching.again || this.#stopped) return
    }
  }
  /**
   * Returns the jobs that may be offered; undefined when the queue is not in memory. The jobs may
   * be ahead of the journal. This is harmless, because a claim is decided after the command that
   * queued the job.
   */
  #peek(queue: Address): readonly JobHeader[] | undefined {
    const seen = this.#requests.peek(queue, 'waiting', { limit: MAX_JOBS })
    return seen?.result as readonly JobHeader[] | undefined
  }
  /** Reads the jobs that may be offered; undefined when they cannot be read now. */
  async #ask(queue: Address): Promise<readonly JobHeader[] | undefined> {
    const asked = await this.#requests.ask(queue, 'waiting', { limit: MAX_JOBS })
    return 'reply' in asked ? (asked.reply as readonly JobHeader[]) : undefined
  }
  /**
   * Offers jobs that require the same capability. Returns true if all of them were taken. The queue
   * may then have more such jobs.
   */
  async #offer({ address, queue }: Matching, { capability, jobs }: Group): Promise<boolean> {
    const { bus, measure } = this.#context.deps
    const subject = subjects.offer(address.project, queue, capability)
    let left: readonly JobHeader[] = jobs
    let served = isServed(jobs)
    for (let asked = 0; left.length > 0 && asked < MAX_REQUESTS && !this.#stopped; asked++) {
      const offer: Offer = {
        project: address.project,
        queue,
        jobs: left,
        source: this.#context.name,
      }
      const answer = await bus.request(
        served ? subjects.serve(address.project, queue, capability) : subject,
        offer,
        1000,
      )
      if (typeof answer !== 'object') {
        // Jobs that no gateway takes may be work of the service itself. An answer to an earlier
        // request would have reported this (`served`), so jobs that remain after an answer are for
        // workers.
        if (served || asked > 0 || jobs[0]?.workers_only) return false
        served = true
        continue
      }
      const taking = answer.answer as OfferReply
      measure.offer(left.length, taking.takes.length)
      if (taking.takes.length > 0) {
        await this.#requests.submit(this.#claim(address, taking))
        const taken = new Set(taking.takes.map((take) => take.job_id))
        left = left.filter((job) => !taken.has(job.id))
      } else if (!taking.busy && !taking.served) return false
      served ||= taking.served === true
    }
    return left.length === 0
  }
}
