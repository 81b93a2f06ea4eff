/**
 * Decides whether the simulation is at rest: all remaining work waits for input or a later time.
 */

import type { QueueState } from '../../actors/jobs/state.ts'
import type { LoopState } from '../../actors/loops/state.ts'
import { isAsked, type RunState } from '../../actors/runs/state.ts'
import type { WorkerState } from '../../actors/workers/worker.ts'
import { ERRANDS } from '../../protocol/errand.ts'
import { terminal } from '../../protocol/runs/schema.ts'
import { unsettledInteraction } from './checks/interactions.ts'
import type { Added, Ledger } from './checks/ledger.ts'
import { EPOCH } from './machines/machine.ts'
import type { Simulation } from './simulation.ts'

/**
 * At rest, nothing may be due within this number of milliseconds. Clocks differ, so something that
 * is due on one clock may still be in the future on another.
 */
const CLOCK_SKEW_MS = 30_000

/**
 * Returns why the registration of a worker is not as expected; undefined if it is as expected.
 */
function unregistered(
  sim: Simulation,
  id: string,
  { registration, connected }: WorkerState,
): string | undefined {
  const worker = sim.workers.find((one) => one.id === id)
  if (!worker?.alive) return undefined
  const { connection, instance } = worker
  if (!connection) return `worker ${instance} is not connected`
  return connected &&
    registration?.session === connection.session &&
    registration.generation === connection.generation
    ? undefined
    : `worker ${instance} is connected, and its registry entry does not say so`
}

/**
 * Returns why the simulation is not at rest; undefined if it is at rest. Only the part of the
 * journal that the history has read is considered.
 */
export function unsettled(sim: Simulation): string | undefined {
  if (sim.clients.busy > 0) return `${sim.clients.busy} requests are under way`
  for (const machine of sim.machines)
    if (!machine.alive || machine.paused || machine.stopping) return `${machine.name} does not run`
  for (let shard = 0; shard < sim.shards; shard++) {
    const owners = sim.machines.filter((machine) => machine.host.owned().includes(`0.${shard}`))
    if (owners.length !== 1)
      return `shard ${shard} is owned by ${owners.map(({ name }) => name).join(' and ') || 'nobody'}`
  }
  const now = EPOCH + sim.timeline.now
  const sent = new Map<string, number>()
  for (const past of sim.history.actors.values()) {
    const { id, kind } = past.address
    // The simulation has no executors, so errands wait.
    if (kind === 'queue' && !id.endsWith(`.${ERRANDS}`)) {
      const [job] = Object.values((past.state as QueueState).jobs)
      if (job)
        return `${job.header.id} is still in queue ${id}${job.lease ? ` under ${job.lease.token}` : ''}`
    } else if (kind === 'run') {
      const { record, engine } = past.state as RunState
      if (terminal.has(record.status)) continue
      if (engine.held) {
        const of =
          record.loop_id === undefined
            ? undefined
            : (sim.history.of({ project: past.address.project, kind: 'loop', id: record.loop_id })
                ?.state as LoopState | undefined)
        if (of?.places[id] !== 'asked')
          return `run ${id} is kept waiting, and its loop does not know`
        continue
      }
      const { wait, wall_deadline } = engine
      if (!wait || isAsked(wait)) return `run ${id} is ${record.status} and waits for nothing`
      const missed = sim.history.events.unsettledRun(past)
      if (missed) return missed
      if (wait.kind === 'loop') return `run ${id} waits for an answer of loop ${wait.loop_id}`
      if (wait.kind === 'worker') return `run ${id} waits for job ${wait.job_id}`
      if (record.cancel_requested) return `run ${id} was cancelled and has not ended`
      const due = Math.min(
        wait.due ?? Number.POSITIVE_INFINITY,
        wall_deadline ?? Number.POSITIVE_INFINITY,
      )
      if (due < now + CLOCK_SKEW_MS) return `run ${id} has a ${wait.kind} due in ${due - now} ms`
    } else if (kind === 'interaction') {
      const why = unsettledInteraction(sim, past, now + CLOCK_SKEW_MS)
      if (why) return why
    } else if (kind === 'events') {
      const why = sim.history.events.unsettled(past) ?? sim.history.loops.unsettledMatcher(past)
      if (why) return why
    } else if (kind === 'loop') {
      const why = sim.history.loops.unsettled(past)
      if (why) return why
    } else if (kind === 'plan') {
      const why = sim.history.loops.unsettledPlaces(past)
      if (why) return why
    } else if (kind === 'session') {
      const why = sim.history.sessions.unsettled(past)
      if (why) return why
    } else if (kind === 'worker') {
      const why = unregistered(sim, id, past.state as WorkerState)
      if (why) return why
    } else if (kind === 'project') {
      for (const { place } of past.entries)
        for (const event of place.entry.events)
          if (event.type === 'ledger.added')
            sent.set((event as Added).to, (sent.get((event as Added).to) ?? 0) + 1)
    }
  }
  for (const [to, count] of sent) {
    const past = sim.history.of({ project: to, kind: 'project', id: to })
    const heard = (past?.state as { ledger?: Ledger } | undefined)?.ledger?.heard.length ?? 0
    if (heard < count) return `${to} has heard ${heard} of ${count} tells`
  }
  return undefined
}
