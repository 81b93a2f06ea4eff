/**
 * Matching waiting jobs with workers. A queue with work offers it to the gateways that listen for it; whoever takes some
 * names the worker sessions, and the queue commits the claims. A gateway that has no free slot says `busy` and stops
 * listening, so the next one is asked at once. Losing an offer costs at most one tick. What no gateway wants, or says to be the
 * service's own work, is offered to the executors.
 *
 * Who listens in the owner's own process is asked first, while the batch that put the work in line is still being decided:
 * then the claims are part of that commit, and the work is on its way one commit earlier.
 *
 * Invariants:
 * O1. Every queue with waiting work is in the list here, and the list is part of the checkpoint: a queue whose actor is not
 *     in memory is offered by the next owner all the same.
 * O2. What is taken before the commit is a promise that runs out; the job itself is handed over behind the commit, as an
 *     effect of its claim.
 */
import { joinsLine } from '../../../actors/jobs/deliveries.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import type { Address, Command } from '../../../protocol/entry.ts'
import { lineOf, offerCapability, subjects } from '../../../protocol/subjects.ts'
import type { Offer, Taking } from '../../../protocol/workers/socket.ts'
import type { Batch } from '../durability/batch.ts'
import { cellKey, type ActorInstance } from '../memory/actor-instance.ts'
import type { Shard } from '../shard.ts'

/** Jobs of one capability in one offer, and gateways asked in one round. */
const JOBS = 64
const GATEWAYS = 16
/** Milliseconds between looks at queues whose work nobody took. */
const TICK = 2000

interface Matching {
  readonly address: Address
  readonly queue: string
  running: boolean
  again: boolean
}

/** What is for no worker is offered to none. */
const isServed = ([first]: readonly JobHeader[]): boolean =>
  first?.executor_kind === 'server_worker'

/** Jobs that are handed out alike, with their capability: an offer is of one such group. */
function grouped(
  jobs: readonly JobHeader[],
): Iterable<{ readonly capability: string; readonly group: JobHeader[] }> {
  const groups = new Map<string, { readonly capability: string; readonly group: JobHeader[] }>()
  for (const job of jobs) {
    const line = lineOf(job)
    const known = groups.get(line)
    if (known) known.group.push(job)
    else groups.set(line, { capability: offerCapability(job), group: [job] })
  }
  return groups.values()
}

export class Offers {
  readonly #shard: Shard
  readonly #queues = new Map<string, Matching>()
  #stop: (() => void) | undefined
  #stopped = false
  #counter = 0

  constructor(shard: Shard) {
    this.#shard = shard
  }
  start(): void {
    for (const cell of this.#shard.cells.all()) if (cell.kind === 'queue') this.#known(cell)
    for (const matching of this.#queues.values()) this.#kick(matching)
    const tick = () => {
      for (const matching of this.#queues.values()) this.#kick(matching)
      this.#stop = this.#shard.deps.clock.later(TICK, tick)
    }
    this.#stop = this.#shard.deps.clock.later(TICK, tick)
  }
  stop(): void {
    this.#stopped = true
    this.#stop?.()
  }
  /** Keys of the queues that have, or may have, work: when no append is in flight, of all that do. */
  waiting(): string[] {
    return [...this.#queues.keys()]
  }
  /** A queue had work when the checkpoint was made. Offering it begins with `start`. */
  recall(queue: Address): void {
    this.#known(queue)
  }
  /** A queue of this shard has, or may have, work. */
  kick(project: string, queue: string): void {
    this.#kick(this.#known({ project, kind: 'queue', id: `${this.#shard.shard}.${queue}` }))
  }
  /** A worker of the project gained slots. */
  kickProject(project: string): void {
    for (const matching of this.#queues.values())
      if (matching.address.project === project) this.#kick(matching)
  }

  /** Offer what has come into line in a batch, before it is committed, to who listens in this process; claims join the batch. */
  async ahead(batch: Batch): Promise<void> {
    const queues = new Set<ActorInstance>()
    batch.entries.forEach(({ kind, events }, i) => {
      if (kind === 'queue' && events.some(({ type }) => joinsLine.has(type)))
        queues.add(batch.cells[i] as ActorInstance)
    })
    for (const cell of queues) {
      const matching = this.#known(cell)
      // What is being offered right now is not offered twice.
      if (matching.running) continue
      const jobs = this.#shard.peek(cell, 'waiting', { limit: JOBS })?.result as
        | readonly JobHeader[]
        | undefined
      for (const { capability, group } of grouped(jobs ?? [])) {
        const taking = batch.full ? undefined : this.#askHere(matching, capability, group)
        if (!taking || taking.takes.length === 0) continue
        this.#shard.deps.measure.offer(group.length, taking.takes.length)
        await batch.decide(this.#claim(matching.address, taking))
      }
    }
  }
  #askHere(
    { address: { project }, queue }: Matching,
    capability: string,
    jobs: readonly JobHeader[],
  ): Taking | undefined {
    const offer: Offer = { project, queue, jobs, source: this.#shard.name, ahead: true }
    const ask = (subject: string) => this.#shard.deps.bus.here(subject, offer) as Taking | undefined
    const taking = isServed(jobs) ? undefined : ask(subjects.offer(project, queue, capability))
    return isServed(jobs) || taking?.served
      ? ask(subjects.serve(project, queue, capability))
      : taking
  }
  #claim(queue: Address, { gateway, takes }: Taking): Command {
    const { clock, node } = this.#shard.deps
    return {
      ...queue,
      command_id: `c:${this.#shard.epoch}.${this.#counter++}`,
      name: 'queue.claim',
      input: { gateway, takes },
      origin: {
        at: clock.now(),
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: node },
      },
    }
  }

  #known(address: Address): Matching {
    const key = cellKey(address)
    const known = this.#queues.get(key)
    if (known) return known
    const { project, id } = address
    const matching: Matching = {
      address: { project, kind: 'queue', id },
      queue: id.slice(id.indexOf('.') + 1),
      running: false,
      again: false,
    }
    this.#queues.set(key, matching)
    return matching
  }
  #kick(matching: Matching): void {
    if (this.#stopped || this.#shard.gate.closed()) return
    if (matching.running) {
      matching.again = true
      return
    }
    matching.running = true
    void this.#match(matching)
      .catch((error) =>
        this.#shard.deps.log.warn({ err: error, queue: matching.queue }, 'offering work failed'),
      )
      .finally(() => {
        matching.running = false
      })
  }
  async #match(matching: Matching): Promise<void> {
    do {
      matching.again = false
      const jobs = await this.#waiting(matching.address)
      if (!jobs) return
      if (jobs.length === 0) {
        if (!matching.again) this.#queues.delete(cellKey(matching.address))
        continue
      }
      for (const { capability, group } of grouped(jobs))
        if (await this.#offer(matching, capability, group)) matching.again = true
    } while (matching.again && !this.#stopped)
  }
  /** What may be handed out; undefined when nobody can say now. A claim is decided behind whatever put a job there, so looking ahead of the journal is harmless. */
  async #waiting(queue: Address): Promise<readonly JobHeader[] | undefined> {
    const seen = this.#shard.peek(queue, 'waiting', { limit: JOBS })
    if (seen) return seen.result as readonly JobHeader[]
    const asked = await this.#shard.ask(queue, 'waiting', { limit: JOBS })
    return 'reply' in asked ? (asked.reply as readonly JobHeader[]) : undefined
  }
  /** Offer jobs of one capability; whether all of them found a worker, so that there may be more to hand out. */
  async #offer(
    { address, queue }: Matching,
    capability: string,
    jobs: readonly JobHeader[],
  ): Promise<boolean> {
    const { bus, measure } = this.#shard.deps
    const subject = subjects.offer(address.project, queue, capability)
    let left = jobs
    let served = isServed(jobs)
    for (let asked = 0; left.length > 0 && asked < GATEWAYS && !this.#stopped; asked++) {
      const offer: Offer = {
        project: address.project,
        queue,
        jobs: left,
        source: this.#shard.name,
      }
      const answer = await bus.request(
        served ? subjects.serve(address.project, queue, capability) : subject,
        offer,
        1000,
      )
      if (typeof answer !== 'object') {
        // Gateways that were there before know that this is work for workers.
        if (served || asked > 0 || jobs[0]?.workers_only) return false
        served = true
        continue
      }
      const taking = answer.answer as Taking
      measure.offer(left.length, taking.takes.length)
      if (taking.takes.length > 0) {
        await this.#shard.submit(this.#claim(address, taking))
        const taken = new Set(taking.takes.map((take) => take.job_id))
        left = left.filter((job) => !taken.has(job.id))
      } else if (!taking.busy && !taking.served) return false
      served ||= taking.served === true
    }
    return left.length === 0
  }
}
