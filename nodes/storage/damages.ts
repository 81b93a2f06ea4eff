/** Findings that journals lack entries. A finding ends some time after it was last reported. */
import type { Log } from '../../gateway/ports.ts'
import type { Clock } from '../host/ports.ts'

/** Milliseconds for which a finding remains in effect after it was last reported. */
const HOLD_MS = 60_000

export interface Damages {
  /** Reports that a partition's journal lacks entries. */
  report(partition: number, reason: string): void
  /** Returns the finding that is in effect for a partition; undefined if none is. */
  of(partition: number): string | undefined
}

export function createDamages(clock: Pick<Clock, 'elapsed'>, log: Log): Damages {
  const found = new Map<number, { readonly reason: string; readonly until: number }>()
  return {
    report: (partition, reason) => {
      if (!found.has(partition))
        log.error(
          { event: 'journal_entries_missing', partition, reason },
          'journal entries missing',
        )
      found.set(partition, { reason, until: clock.elapsed() + HOLD_MS })
    },
    of: (partition) => {
      const damage = found.get(partition)
      if (!damage || clock.elapsed() < damage.until) return damage?.reason
      found.delete(partition)
      log.info(
        { event: 'journal_entries_restored', partition },
        'journal entries no longer missing',
      )
      return undefined
    },
  }
}
