/**
 * Invariants of a run's history, in journal order: it begins with the creation of the run, which
 * occurs once; nothing follows the end of a run, unless a failed run is resumed; each step starts
 * at most once and completes at most once; each job has at most one outcome.
 */

import type { PlacedEntry } from '../../../protocol/entry.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { Simulation } from '../simulation.ts'

interface Course {
  ended?: string
  readonly begun: Set<string>
  readonly completed: Set<string>
  readonly settled: Set<string>
}
const ends: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled'])

export class RunRules {
  readonly #sim: Simulation
  readonly #runs = new Map<string, Course>()

  constructor(sim: Simulation) {
    this.#sim = sim
  }
  check({ cursor, entry }: PlacedEntry): void {
    for (const event of entry.events as readonly RunEvent[]) {
      const say = (what: string) =>
        this.#sim.violated(`run ${entry.id}: ${event.type} at ${cursor} ${what}`)
      const known = this.#runs.get(entry.id)
      if (event.type === 'run.created' ? known : !known)
        say(known ? 'a second time' : 'before it was created')
      const run: Course = known ?? { begun: new Set(), completed: new Set(), settled: new Set() }
      this.#runs.set(entry.id, run)
      // An interaction may end after its run has failed. The run then stores the end of the
      // interaction for a retry.
      if (run.ended === 'run.failed' && event.type === 'interaction.settled') continue
      if (run.ended !== undefined) {
        if (run.ended !== 'run.failed' || event.type !== 'run.resumed') say(`after ${run.ended}`)
        delete run.ended
      }
      if (ends.has(event.type)) run.ended = event.type
      const { step } = event
      if (event.type === 'step.started' && step !== undefined) {
        if (run.begun.has(step)) say(`of ${step} a second time`)
        run.begun.add(step)
      }
      if (
        (event.type === 'step.completed' || event.type === 'step.skipped') &&
        step !== undefined
      ) {
        if (run.completed.has(step)) say(`of ${step} a second time`)
        run.completed.add(step)
      }
      const job = event.payload?.['job_id']
      if (
        (event.type === 'action.completed' || event.type === 'action.failed') &&
        typeof job === 'string'
      ) {
        if (run.settled.has(job)) say(`of job ${job} a second time`)
        run.settled.add(job)
      }
    }
  }
}
