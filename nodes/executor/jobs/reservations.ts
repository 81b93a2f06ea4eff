/**
 * The jobs that an executor has taken from offers, and that have not arrived yet. A reservation
 * expires if its job does not arrive, because the queue may have given the job to another taker.
 */
import type { World } from '../../../gateway/ports.ts'

/** Milliseconds within which a reserved job must arrive. */
const RESERVATION_MS = 5000

export interface Reservations {
  /** Returns the number of reserved jobs, or of those of one project. */
  count(project?: string): number
  has(job_id: string): boolean
  /** Reserves a job. If it is reserved already, its reservation is renewed. */
  reserve(job_id: string, project: string): void
  /** Ends a reservation. Does nothing if it has ended already. */
  release(job_id: string): void
  releaseAll(): void
}

/**
 * Creates the reservations of an executor.
 * @param onExpired called after a reservation has expired.
 */
export function createReservations(
  world: Pick<World, 'later'>,
  onExpired: () => void,
): Reservations {
  const reserved = new Map<string, { readonly project: string; readonly cancel: () => void }>()
  const release = (job_id: string): void => {
    reserved.get(job_id)?.cancel()
    reserved.delete(job_id)
  }
  return {
    count: (project) => {
      if (project === undefined) return reserved.size
      let count = 0
      for (const one of reserved.values()) if (one.project === project) count++
      return count
    },
    has: (job_id) => reserved.has(job_id),
    reserve: (job_id, project) => {
      release(job_id)
      const cancel = world.later(RESERVATION_MS, () => {
        release(job_id)
        onExpired()
      })
      reserved.set(job_id, { project, cancel })
    },
    release,
    releaseAll: () => {
      for (const { cancel } of reserved.values()) cancel()
      reserved.clear()
    },
  }
}
