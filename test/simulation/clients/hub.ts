/**
 * A minimal worker hub of a gateway. It subscribes to offers while one of its workers has a free
 * slot, delivers assigned jobs, and forwards heartbeats and reports to the queues. It stands in for
 * `gateway/workers`.
 */

import type { Outcome } from '../../../gateway/ports.ts'
import { errors, isRefusal } from '../../../protocol/errors.ts'
import type { JobReport } from '../../../protocol/internal.ts'
import { queueOfLease } from '../../../protocol/jobs/lease-token.ts'
import type { CommandInput, CommandName, CommandReply } from '../../../protocol/queries/commands.ts'
import type { AddressOf } from '../../../protocol/queries/owners.ts'
import { shardOf } from '../../../protocol/subjects.ts'
import type { WorkerCommands } from '../../../protocol/workers/commands.ts'
import type { GatewayMessage, Offer, OfferReply } from '../../../protocol/workers/messages.ts'
import type { Machine } from '../machines/machine.ts'
import type { Worker } from './worker.ts'

/** Milliseconds for which a promised slot stays reserved. */
const RESERVATION_MS = 2500
/** Milliseconds after the end of a lease during which the lease is still considered held. */
const GRACE_MS = 250
export type Verdict = 'accepted' | 'duplicate' | 'lease_lost'

interface Lease {
  readonly token: string
  /** The time at which the lease is dropped unless it is renewed, in ms of the machine's clock. */
  until: number
  /** The time at which its last heartbeat or report arrived, in ms of the machine's clock. */
  heard: number
}
interface Seat {
  readonly worker: Worker
  readonly session: string
  readonly generation: number
  readonly held: Map<string, Lease>
  readonly reserved: Map<string, () => void>
}

export class Hub {
  readonly #machine: Machine
  readonly #seats = new Map<string, Seat>()
  readonly #listening = new Map<string, () => void>()

  constructor(machine: Machine) {
    this.#machine = machine
    machine.world.onMessage((message) => this.#receive(message))
  }

  sit(
    worker: Worker,
    { session, generation }: WorkerCommands['worker.register']['reply']['registration'],
  ): void {
    const known = this.#machine.sim.records.leases.get(session) ?? []
    const held = [...known].map(([job, token]): [string, Lease] => [job, this.#lease(token)])
    this.#seats.set(session, {
      worker,
      session,
      generation,
      held: new Map(held),
      reserved: new Map(),
    })
    this.#settle(worker.project)
    this.#machine.world.demand(worker.project)
    this.#beat(session)
  }
  leave(session: string, generation: number): void {
    const seat = this.#seats.get(session)
    if (seat?.generation !== generation) return
    this.#seats.delete(session)
    for (const cancel of seat.reserved.values()) cancel()
    this.#settle(seat.worker.project)
    const input = { session, generation: seat.generation, leases: seat.held.size }
    void this.#command(
      { project: seat.worker.project, kind: 'worker', id: seat.worker.id },
      'worker.closed',
      input,
    )
  }
  /** Renews a lease. Returns whether the lease is alive, or undefined if no owner could decide. */
  async heartbeat(
    worker: Worker,
    job_id: string,
    lease_token: string,
  ): Promise<boolean | undefined> {
    const lease = this.#hear(worker, job_id, lease_token)
    const { sim } = this.#machine
    const sent = sim.timeline.now
    const outcome = await this.#command(
      this.#queueOf(worker.project, job_id, lease_token),
      'queue.heartbeat',
      { job_id, lease_token, gateway: this.#machine.id },
    )
    if (isRefusal(outcome)) return undefined
    const { alive } = outcome.reply
    if (!alive) this.#ended(worker, job_id, lease_token)
    else {
      sim.records.beats.set(lease_token, Math.max(sent, sim.records.beats.get(lease_token) ?? 0))
      if (lease) lease.until = this.#lease(lease_token).until
    }
    return alive
  }
  /**
   * Sends a report to its queue, repeats it until the queue has decided, and returns the verdict.
   */
  async report(worker: Worker, report: JobReport): Promise<Verdict> {
    const to = this.#queueOf(worker.project, report.job_id, report.lease_token)
    this.#hear(worker, report.job_id, report.lease_token)
    const id = `r:${this.#machine.sim.unique()}`
    const { records } = this.#machine.sim
    records.reports.set(id, { report, to })
    for (;;) {
      const outcome = await this.#command(to, 'queue.report', report, id)
      if (isRefusal(outcome) && 'retryable' in errors[outcome.refused]) {
        await new Promise<void>((again) => void this.#machine.clock.later(300, again))
        continue
      }
      const verdict = isRefusal(outcome) ? 'lease_lost' : outcome.reply.outcome
      records.verdicts.push({ id, verdict })
      this.#machine.sim.note(
        () =>
          `${this.#machine.name}: report ${id} of ${report.job_id} under ${report.lease_token}: ${verdict}`,
      )
      this.#ended(worker, report.job_id, report.lease_token)
      return verdict
    }
  }

  #beat(session: string): void {
    this.#machine.clock.later(this.#machine.sim.timing.cadence * 1000, () => {
      const seat = this.#seats.get(session)
      if (!seat) return
      const { worker, generation, held } = seat
      this.#expire(seat)
      void this.#command(
        { project: worker.project, kind: 'worker', id: worker.id },
        'worker.seen',
        { session, generation, leases: held.size },
      ).then((outcome) => {
        if (!isRefusal(outcome) && !outcome.reply.current) this.#dismiss(seat)
      })
      this.#beat(session)
    })
  }
  #lease(token: string): Lease {
    const now = this.#machine.clock.elapsed()
    return { token, until: now + this.#machine.sim.timing.lease * 1000 + GRACE_MS, heard: now }
  }
  /**
   * Records that a heartbeat or report for a job arrived. Returns the lease; undefined if the
   * worker does not hold it.
   */
  #hear(worker: Worker, job: string, token: string): Lease | undefined {
    const seat = [...this.#seats.values()].find((one) => one.worker === worker)
    const lease = seat?.held.get(job)
    if (lease?.token !== token) return undefined
    lease.heard = this.#machine.clock.elapsed()
    return lease
  }
  /**
   * Drops the leases that have expired. For those that received no heartbeat or report for a full
   * lease duration, also asks the queues to end them, provided that the connection of the seat is
   * still the current one of its worker session.
   */
  #expire(seat: Seat): void {
    const { world, clock, sim } = this.#machine
    const now = clock.elapsed()
    const lapsed: [string, string][] = []
    for (const [job, { token, until, heard }] of seat.held) {
      if (until > now) continue
      seat.held.delete(job)
      if (heard <= now - sim.timing.lease * 1000) lapsed.push([job, token])
    }
    if (lapsed.length === 0) return
    this.#settle(seat.worker.project)
    const { session, generation, worker } = seat
    const registry: AddressOf<'worker'> = { project: worker.project, kind: 'worker', id: worker.id }
    world.ask(registry, 'current', { session, generation }).then(
      (current) => {
        if (current !== true || this.#seats.get(session) !== seat) return
        for (const [job_id, token] of lapsed)
          void this.#command(this.#queueOf(worker.project, job_id, token), 'queue.expire', {
            session,
            job_id,
          })
      },
      () => {},
    )
  }
  #dismiss(seat: Seat): void {
    if (this.#seats.get(seat.session) !== seat) return
    this.#seats.delete(seat.session)
    for (const cancel of seat.reserved.values()) cancel()
    this.#settle(seat.worker.project)
    seat.worker.disconnected(this.#machine)
  }
  #queueOf(project: string, job: string, token: string): AddressOf<'queue'> {
    return {
      project,
      kind: 'queue',
      id: `${shardOf('job', job, this.#machine.sim.shards)}.${queueOfLease(token)}`,
    }
  }
  #command<K extends 'queue' | 'worker', N extends CommandName<K>>(
    to: AddressOf<K>,
    name: N,
    input: CommandInput<K, N>,
    command_id = `h:${this.#machine.sim.unique()}`,
  ): Promise<Outcome<CommandReply<K, N>>> {
    return this.#machine.world.command({
      ...to,
      name,
      input,
      command_id,
      origin: {
        at: this.#machine.world.now(),
        principal: { type: 'service_account', id: 'svc_worker' },
      },
    })
  }
  #free({ worker, held, reserved }: Seat): number {
    return worker.slots - held.size - reserved.size
  }
  #ended(worker: Worker, job: string, token: string): void {
    for (const seat of this.#seats.values())
      if (seat.worker === worker && seat.held.get(job)?.token === token) {
        seat.held.delete(job)
        this.#machine.sim.records.leases.get(seat.session)?.delete(job)
      }
    this.#settle(worker.project)
    this.#machine.world.demand(worker.project)
  }
  /**
   * Subscribes to offers for a project while one of the project's workers has a free slot, and
   * unsubscribes otherwise.
   */
  #settle(project: string): void {
    const free = [...this.#seats.values()].some(
      (seat) => seat.worker.project === project && this.#free(seat) > 0,
    )
    const listening = this.#listening.get(project)
    if (free && !listening)
      this.#listening.set(
        project,
        this.#machine.world.onOffer(project, undefined, undefined, (offer) => this.#take(offer)),
      )
    if (!free && listening) {
      this.#listening.delete(project)
      listening()
    }
  }
  #take(offer: Offer): OfferReply {
    const takes: OfferReply['takes'][number][] = []
    for (const job of offer.jobs) {
      const seats = [...this.#seats.values()].filter(
        (seat) =>
          seat.worker.project === offer.project &&
          (this.#free(seat) > 0 || seat.reserved.has(job.id)),
      )
      const seat =
        seats.find(({ reserved }) => reserved.has(job.id)) ?? this.#machine.sim.dice.pick(seats)
      if (!seat) continue
      seat.reserved.get(job.id)?.()
      seat.reserved.set(
        job.id,
        this.#machine.clock.later(RESERVATION_MS, () => {
          seat.reserved.delete(job.id)
          this.#settle(offer.project)
          this.#machine.world.demand(offer.project)
        }),
      )
      takes.push({ job_id: job.id, session: seat.session, instance: seat.worker.instance })
    }
    this.#settle(offer.project)
    return { gateway: this.#machine.id, takes, ...(takes.length === 0 && { busy: true as const }) }
  }
  #receive(message: GatewayMessage): { ok: boolean } {
    if (message.type === 'forget') return { ok: true }
    const seat = this.#seats.get(message.session)
    if (!seat) return { ok: false }
    if (message.type === 'supersede') {
      if (seat.generation < message.generation) this.#dismiss(seat)
      return { ok: true }
    }
    if (message.type === 'cancel') {
      this.#machine.sim.timeline.after(1, () => seat.worker.cancelled(message.job_id))
      return { ok: true }
    }
    if (message.type !== 'assign') return { ok: true }
    const { job } = message
    if (seat.held.get(job.id)?.token === job.lease_token) return { ok: true }
    const promised = seat.reserved.get(job.id)
    promised?.()
    seat.reserved.delete(job.id)
    if (!promised && !seat.held.has(job.id) && this.#free(seat) <= 0) return { ok: false }
    seat.held.set(job.id, this.#lease(job.lease_token))
    const { leases } = this.#machine.sim.records
    leases.set(seat.session, (leases.get(seat.session) ?? new Map()).set(job.id, job.lease_token))
    this.#settle(message.project)
    this.#machine.sim.note(
      () =>
        `${this.#machine.name}: ${job.id} goes to ${seat.worker.instance} under ${job.lease_token}`,
    )
    this.#machine.sim.timeline.after(this.#machine.sim.weather.travel(), () => {
      if (this.#machine.alive && seat.worker.isOn(this.#machine, seat.generation))
        seat.worker.given(job)
    })
    return { ok: true }
  }
}
