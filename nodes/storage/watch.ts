/**
 * Detects early when the journal will no longer be able to accept entries. It watches the disk of
 * the embedded NATS server, the limit of the JetStream account, refusals by the servers, and
 * missing entries in journals.
 *
 * Invariants:
 * D1. Writes stop before the disk is full, while fences, checkpoints and views still have space.
 * D2. Freed space is used after the next check. An embedded server that found its disk full stores
 *     nothing until it is restarted (nats-server freezes such a stream), so it is restarted once
 *     there is space.
 * D3. A partition whose journal lacks entries accepts no new entries until `DAMAGE_HOLDS_MS` after
 *     the last check or takeover that found the gap.
 */
import type { Log } from '../../gateway/ports.ts'
import type { WriteStop } from '../host/deps.ts'
import type { Clock, Journal } from '../host/ports.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { DiskUse } from './disk.ts'

/** The functions of the embedded NATS server that concern its disk. */
export interface EmbeddedStore {
  use(): Promise<DiskUse>
  /** Whether the server found its disk full and has stopped storing. */
  frozen(): boolean
  /** Restarts the server on the same port and store. */
  restart(): Promise<void>
}
/** Bytes that an account has stored, and may store. */
export interface AccountUse {
  readonly used: number
  readonly limit: number
}
export interface StorageParts {
  readonly partitions: number
  readonly journal: Pick<Journal, 'position'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Pick<Metrics, 'storage' | 'writesStopped'>
  /** Absent if the NATS servers run elsewhere. */
  readonly embedded?: EmbeddedStore
  /**
   * Returns the usage that JetStream reports for the account; undefined when the account has no
   * limit. Rejects when no server answers.
   */
  account(): Promise<AccountUse | undefined>
}
export interface StorageWatch {
  /**
   * Returns why nothing may be appended to the journal of a partition; undefined while appends are
   * allowed.
   */
  stopped(partition: number): WriteStop | undefined
  /**
   * Returns the reasons why writes are stopped in any partition, and recent refusals by the
   * servers, as short texts.
   */
  stops(): readonly string[]
  /** Returns the conditions that may soon stop writes. */
  warnings(): readonly string[]
  /** Reports that a partition's journal lacks entries. */
  damaged(partition: number, reason: string): void
  /** Reports that the servers refused to store an entry. */
  refused(reason: string): void
  /** Reports that the servers stored an entry of this size in bytes. */
  stored(bytes: number): void
  stop(): void
}

/** Share of the limit at which a warning is reported. */
const WARN_AT = 0.8
/** Share of the limit below which stopped writes resume. */
const RESUME_AT = 0.98
/** Milliseconds between two checks of a disk near its limit. */
const CHECK_NEAR_LIMIT_MS = 100
/** Milliseconds between two checks of a disk that is not near its limit. */
const CHECK_EVERY_MS = 1000
/** Milliseconds between two checks of the journals and the account. */
const CHECK_JOURNALS_MS = 5000
/**
 * Assumed number of bytes that each byte of a stored entry later adds to the disk writes: for its
 * actor's snapshot, and for the rows of a view in SQLite's write-ahead log and then in its tables.
 */
const FOLLOW_BYTES = 4
/** Assumed milliseconds within which these later writes (`FOLLOW_BYTES`) take place. */
const FOLLOW_MS = 5000
/** Length in milliseconds of the intervals in which the sizes of stored entries are added up. */
const SLICE_MS = 250
/**
 * Milliseconds for which a finding of missing entries remains in effect after it was last reported.
 */
const DAMAGE_HOLDS_MS = 60_000
/**
 * Milliseconds for which a refusal by the servers remains in effect after it was last reported,
 * unless the servers store an entry earlier.
 */
const REFUSAL_HOLDS_MS = 10_000

const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`
/** Formats a usage with its limit, such as `1.0 MiB of 2.0 MiB`. */
const usageText = ({ used, limit }: { used: number; limit: number }): string =>
  `${mebibytes(used)} of ${mebibytes(limit)}`

/** Starts watching. Resolves after the first check. */
export async function watchStorage(parts: StorageParts): Promise<StorageWatch> {
  const { partitions, journal, clock, log, metrics, embedded } = parts
  let disk: DiskUse | undefined
  let account: AccountUse | undefined
  let full = false
  /** The share of the disk's limit that is in use or soon will be. */
  let share = 0
  let refusal: { readonly reason: string; readonly at: number } | undefined
  /** The missing entries by partition, and the time until which the finding remains in effect. */
  const damages = new Map<number, { readonly reason: string; readonly until: number }>()
  /** The highest last sequence seen so far, by partition. */
  const ends = new Map<number, number>()
  let cancel = () => {}
  let ended = false
  let lookedAtJournals = Number.NEGATIVE_INFINITY

  const damaged = (partition: number, reason: string): void => {
    if (!damages.has(partition))
      log.error({ event: 'journal_entries_missing', partition, reason }, 'journal entries missing')
    damages.set(partition, { reason, until: clock.elapsed() + DAMAGE_HOLDS_MS })
  }
  const damageOf = (partition: number): string | undefined => {
    const found = damages.get(partition)
    if (found && clock.elapsed() >= found.until) {
      damages.delete(partition)
      log.info(
        { event: 'journal_entries_restored', partition },
        'journal entries no longer missing',
      )
    }
    return damages.get(partition)?.reason
  }
  const slices: { readonly at: number; bytes: number }[] = []
  /**
   * Estimates the number of bytes that will still be written because of recently stored entries.
   */
  const following = (): number => {
    const since = clock.elapsed() - FOLLOW_MS
    while ((slices[0]?.at ?? since) < since) slices.shift()
    return FOLLOW_BYTES * slices.reduce((sum, { bytes }) => sum + bytes, 0)
  }
  const lookAtDisk = async (): Promise<void> => {
    if (!embedded) return
    disk = await embedded.use()
    share = (disk.used + following()) / Math.max(1, disk.limit)
    const now = share >= 1 || (full && share >= RESUME_AT)
    if (now !== full)
      if (now) log.error({ event: 'disk_full', ...disk }, 'disk full; writes stopped')
      else
        log.info({ event: 'disk_space_available', ...disk }, 'disk space available; writes resumed')
    full = now
    metrics.storage(disk.used, disk.limit)
    if (full || !embedded.frozen()) return
    log.warn(
      { event: 'nats_server_disk_full', ...disk },
      'NATS server out of disk space; restarting the server',
    )
    await embedded.restart()
  }
  const lookAtJournals = async (): Promise<void> => {
    lookedAtJournals = clock.elapsed()
    account = await parts.account().catch(() => undefined)
    if (account && !embedded) metrics.storage(account.used, account.limit)
    for (let partition = 0; partition < partitions; partition++) {
      const found = await journal.position(partition).catch(() => undefined)
      if (!found) continue
      const { first, last, missing = 0 } = found
      const before = ends.get(partition) ?? 0
      ends.set(partition, Math.max(before, last))
      if (missing > 0)
        damaged(
          partition,
          `${missing} entries of journal ${partition} are missing between ${first} and ${last}`,
        )
      else if (last < before)
        damaged(partition, `journal ${partition} ends at ${last}, but ended at ${before} before`)
    }
  }
  const stopped = (partition: number): WriteStop | undefined => {
    const damage = damageOf(partition)
    if (damage !== undefined) return { code: 'journal_damaged', reason: damage }
    if (embedded?.frozen())
      return { code: 'storage_full', reason: 'the NATS server ran out of disk space' }
    return full && disk
      ? { code: 'storage_full', reason: `${usageText(disk)} are in use` }
      : undefined
  }
  const stops = (): readonly string[] => {
    const found = new Set<string>()
    let [storage, damage] = [false, false]
    for (let partition = 0; partition < partitions; partition++) {
      const stop = stopped(partition)
      if (!stop) continue
      if (stop.code === 'storage_full') storage = true
      else damage = true
      found.add(`${stop.code === 'storage_full' ? 'storage' : 'journal'}: ${stop.reason}`)
    }
    if (refusal && clock.elapsed() - refusal.at < REFUSAL_HOLDS_MS) {
      storage = true
      found.add(`storage: the NATS servers reject writes (${refusal.reason})`)
    }
    metrics.writesStopped({ storage_full: storage, journal_damaged: damage })
    return [...found]
  }
  let looking = false
  const look = async (): Promise<void> => {
    if (looking) return
    looking = true
    cancel()
    try {
      await lookAtDisk()
      if (clock.elapsed() - lookedAtJournals >= CHECK_JOURNALS_MS) await lookAtJournals()
      stops()
    } catch (error) {
      log.warn({ event: 'storage_check_failed', err: error }, 'storage check failed')
    }
    looking = false
    if (ended) return
    cancel = clock.later(share >= WARN_AT ? CHECK_NEAR_LIMIT_MS : CHECK_EVERY_MS, () => void look())
  }
  await look()
  return {
    stopped,
    stops,
    warnings: () => {
      const near = (use: AccountUse | undefined): use is AccountUse =>
        use !== undefined && use.used >= use.limit * WARN_AT
      return [
        ...(disk && share >= WARN_AT && !full ? [`storage: ${usageText(disk)} are in use`] : []),
        ...(near(account) ? [`storage: ${usageText(account)} of the account are in use`] : []),
      ]
    },
    damaged,
    refused: (reason) => {
      if (!refusal) log.error({ event: 'journal_write_refused', reason }, 'journal write refused')
      refusal = { reason, at: clock.elapsed() }
    },
    stored: (bytes) => {
      refusal = undefined
      const now = clock.elapsed()
      const slice = slices.at(-1)
      if (slice && now - slice.at < SLICE_MS) slice.bytes += bytes
      else {
        slices.push({ at: now, bytes })
        if (disk && disk.used + following() >= disk.limit * WARN_AT) void look()
      }
    },
    stop: () => {
      ended = true
      cancel()
    },
  }
}
