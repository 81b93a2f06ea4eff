/**
 * A gateway's worker hub in miniature: it listens to offers while a seat of its is free, takes charge of assigned jobs, and
 * carries signs of life and reports to the queues. What it promises is what `gateway/socket` promises.
 */
import type { Outcome } from '../../gateway/ports.ts'
import type { Address } from '../../protocol/entry.ts'
import { errors, isRefusal } from '../../protocol/errors.ts'
import type { JobReport } from '../../protocol/internal.ts'
import { queueOfLease } from '../../protocol/lease.ts'
import { shardOf } from '../../protocol/subjects.ts'
import type { GatewayMessage, Offer, Taking } from '../../protocol/worker.ts'
import type { Machine } from './machine.ts'
import type { Worker } from './worker.ts'

/** Milliseconds a promised slot stays reserved. */
const RESERVED = 2500
export type Verdict = 'accepted' | 'duplicate' | 'lease_lost'

interface Seat {
  readonly worker: Worker
  readonly session: string
  readonly generation: number
  readonly held: Map<string, string>
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

  /** A worker is connected under this session. */
  sit(worker: Worker, session: string, generation: number): void {
    this.#seats.set(session, {
      worker,
      session,
      generation,
      held: new Map(worker.tokens()),
      reserved: new Map(),
    })
    this.#settle(worker.project)
    this.#machine.world.demand(worker.project)
    this.#beat(session)
  }
  /** The connection of a session ended. */
  leave(session: string): void {
    const seat = this.#seats.get(session)
    if (!seat) return
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
  /** Renew a lease; undefined when nobody could decide. */
  async heartbeat(
    worker: Worker,
    job_id: string,
    lease_token: string,
  ): Promise<boolean | undefined> {
    const outcome = await this.#command(
      this.#queueOf(worker.project, job_id, lease_token),
      'queue.heartbeat',
      { job_id, lease_token, gateway: this.#machine.id },
    )
    if (isRefusal(outcome)) return undefined
    const { alive } = outcome.reply as { alive: boolean }
    if (!alive) this.#ended(worker, job_id, lease_token)
    return alive
  }
  /** Put a report to its queue until it is decided. */
  async report(worker: Worker, report: JobReport): Promise<Verdict> {
    const to = this.#queueOf(worker.project, report.job_id, report.lease_token)
    const id = `r:${this.#machine.sim.unique()}`
    const { records } = this.#machine.sim
    records.reports.set(id, { report, to })
    for (;;) {
      const outcome = await this.#command(to, 'queue.report', report, id)
      if (isRefusal(outcome) && 'retryable' in errors[outcome.refused]) {
        await new Promise<void>((again) => void this.#machine.clock.later(300, again))
        continue
      }
      const verdict = isRefusal(outcome)
        ? 'lease_lost'
        : (outcome.reply as { outcome: Verdict }).outcome
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
      void this.#command(
        { project: worker.project, kind: 'worker', id: worker.id },
        'worker.seen',
        { session, generation, leases: held.size },
      ).then((outcome) => {
        if (!isRefusal(outcome) && !(outcome.reply as { current: boolean }).current)
          this.#dismiss(seat)
      })
      this.#beat(session)
    })
  }
  #dismiss(seat: Seat): void {
    if (this.#seats.get(seat.session) !== seat) return
    this.#seats.delete(seat.session)
    for (const cancel of seat.reserved.values()) cancel()
    this.#settle(seat.worker.project)
    seat.worker.disconnected(this.#machine)
  }
  #queueOf(project: string, job: string, token: string): Address {
    return {
      project,
      kind: 'queue',
      id: `${shardOf('job', job, this.#machine.sim.shards)}.${queueOfLease(token)}`,
    }
  }
  #command(
    to: Address,
    name: string,
    input: unknown,
    command_id = `h:${this.#machine.sim.unique()}`,
  ): Promise<Outcome> {
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
      if (seat.worker === worker && seat.held.get(job) === token) seat.held.delete(job)
    this.#settle(worker.project)
    this.#machine.world.demand(worker.project)
  }
  /** Listen exactly while a seat of the project is free. */
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
  #take(offer: Offer): Taking {
    const takes: Taking['takes'][number][] = []
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
        this.#machine.clock.later(RESERVED, () => {
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
    if (seat.held.get(job.id) === job.lease_token) return { ok: true }
    const promised = seat.reserved.get(job.id)
    promised?.()
    seat.reserved.delete(job.id)
    if (!promised && !seat.held.has(job.id) && this.#free(seat) <= 0) return { ok: false }
    seat.held.set(job.id, job.lease_token)
    this.#settle(message.project)
    this.#machine.sim.note(
      () =>
        `${this.#machine.name}: ${job.id} goes to ${seat.worker.instance} under ${job.lease_token}`,
    )
    this.#machine.sim.timeline.after(this.#machine.sim.weather.travel(), () => {
      if (this.#machine.alive) seat.worker.given(job)
    })
    return { ok: true }
  }
}
