/**
 * Invariants of jobs and their leases, in journal order: one lease at a time; a report takes effect
 * only under the current lease or, if no lease is current, under the last one; no lease ends too
 * early; nothing follows the end of a job.
 */

import type { PlacedEntry } from '../../../protocol/entry.ts'
import type { QueueEvent } from '../../../protocol/jobs/rows.ts'
import type { Simulation } from '../simulation.ts'

interface Job {
  lease?: string
  last?: string
  settled?: number
}

export class JobRules {
  readonly #sim: Simulation
  readonly #jobs = new Map<string, Job>()

  constructor(sim: Simulation) {
    this.#sim = sim
  }
  /**
   * Whether a lease ended too early. Always false if the clocks are faulty.
   * @param ms milliseconds from the sending of its last successful heartbeat to its end.
   */
  #early(ms: number): boolean {
    const { timing, weather } = this.#sim
    const clocks = (['skew', 'drift', 'jump'] as const).some((kind) => weather.kinds.has(kind))
    return !clocks && ms < timing.lease * 1000
  }
  /**
   * Checks an entry of a queue.
   * @param at the simulated time at which the entry was stored.
   */
  check({ cursor, entry }: PlacedEntry, at: number): void {
    const reported = this.#sim.records.reports.get(entry.command.id)?.report
    for (const event of entry.events as readonly QueueEvent[]) {
      const say = (what: string) =>
        this.#sim.violated(`job ${event.id}: ${event.type} at ${cursor} ${what}`)
      const job = this.#jobs.get(event.id) ?? {}
      if (event.type === 'job.queued' ? this.#jobs.has(event.id) : !this.#jobs.has(event.id))
        say('of a job in the wrong state')
      this.#jobs.set(event.id, job)
      if (job.settled !== undefined) say(`after it ended at ${job.settled}`)
      if (reported && reported.job_id === event.id && event.type !== 'job.queued') {
        const speaks = job.lease ?? job.last
        if (speaks !== reported.lease_token)
          say(`by a report under ${reported.lease_token}, but the lease is ${speaks}`)
      }
      if (event.type === 'job.claimed') {
        if (job.lease !== undefined) say(`while ${job.lease} holds it`)
        job.lease = event.lease.token
      } else if (event.type === 'job.requeued') {
        if (job.lease === undefined) say('without a lease')
        else job.last = job.lease
        const beat = job.lease === undefined ? undefined : this.#sim.records.beats.get(job.lease)
        if (event.reason === 'lease_expired' && beat !== undefined && this.#early(at - beat))
          say(`${Math.round(at - beat)} ms after a heartbeat that was answered as alive`)
        delete job.lease
      } else if (
        event.type === 'job.completed' ||
        event.type === 'job.failed' ||
        event.type === 'job.cancelled'
      ) {
        job.settled = cursor
        if (job.lease !== undefined) job.last = job.lease
        delete job.lease
      }
    }
  }
}
