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
 * D3. A partition whose journal lacks entries accepts no new entries until some time after the last
 *     check or takeover that found the gap (`damages.ts`).
 */
import type { Log } from '../../gateway/ports.ts'
import type { WriteStop } from '../host/deps.ts'
import type { Clock, Journal } from '../host/ports.ts'
import type { Metrics } from '../observe/metrics.ts'
import { createDamages } from './damages.ts'
import type { DiskUse } from './disk.ts'
import { createExpectedWrites } from './expected-writes.ts'

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
  const damages = createDamages(clock, log)
  const expected = createExpectedWrites(clock)
  let disk: DiskUse | undefined
  let account: AccountUse | undefined
  /** Whether writes are stopped because the disk is full. */
  let full = false
  /** The share of the disk's limit that is in use or soon will be. */
  let share = 0
  let refusal: { readonly reason: string; readonly at: number } | undefined
  /** The highest last sequence seen so far, by partition. */
  const ends = new Map<number, number>()
  let checkedJournalsAt = Number.NEGATIVE_INFINITY

  const checkDisk = async (): Promise<void> => {
    if (!embedded) return
    disk = await embedded.use()
    share = (disk.used + expected.bytes()) / Math.max(1, disk.limit)
    const wasFull = full
    full = share >= 1 || (wasFull && share >= RESUME_AT)
    if (full && !wasFull) log.error({ event: 'disk_full', ...disk }, 'disk full; writes stopped')
    else if (wasFull && !full)
      log.info({ event: 'disk_space_available', ...disk }, 'disk space available; writes resumed')
    metrics.storage(disk.used, disk.limit)
    if (full || !embedded.frozen()) return
    log.warn(
      { event: 'nats_server_disk_full', ...disk },
      'NATS server out of disk space; restarting the server',
    )
    await embedded.restart()
  }
  const checkJournals = async (): Promise<void> => {
    checkedJournalsAt = clock.elapsed()
    account = await parts.account().catch(() => undefined)
    if (account && !embedded) metrics.storage(account.used, account.limit)
    for (let partition = 0; partition < partitions; partition++) {
      const found = await journal.position(partition).catch(() => undefined)
      if (!found) continue
      const { first, last, missing = 0 } = found
      const before = ends.get(partition) ?? 0
      ends.set(partition, Math.max(before, last))
      if (missing > 0)
        damages.report(
          partition,
          `${missing} entries of journal ${partition} are missing between ${first} and ${last}`,
        )
      else if (last < before)
        damages.report(
          partition,
          `journal ${partition} ends at ${last}, but ended at ${before} before`,
        )
    }
  }
  const stopped = (partition: number): WriteStop | undefined => {
    const damage = damages.of(partition)
    if (damage !== undefined) return { code: 'journal_damaged', reason: damage }
    if (embedded?.frozen())
      return { code: 'storage_full', reason: 'the NATS server ran out of disk space' }
    return full && disk
      ? { code: 'storage_full', reason: `${usageText(disk)} are in use` }
      : undefined
  }
  /** Returns the reasons for which writes are stopped, and updates the metrics. */
  const stops = (): readonly string[] => {
    const reasons = new Set<string>()
    const codes = { storage_full: false, journal_damaged: false }
    for (let partition = 0; partition < partitions; partition++) {
      const stop = stopped(partition)
      if (!stop) continue
      codes[stop.code] = true
      reasons.add(`${stop.code === 'storage_full' ? 'storage' : 'journal'}: ${stop.reason}`)
    }
    if (refusal && clock.elapsed() - refusal.at < REFUSAL_HOLDS_MS) {
      codes.storage_full = true
      reasons.add(`storage: the NATS servers reject writes (${refusal.reason})`)
    }
    metrics.writesStopped(codes)
    return [...reasons]
  }

  let cancel = () => {}
  let ended = false
  let checking = false
  /** Checks the disk and, less often, the journals and the account. Schedules the next check. */
  const check = async (): Promise<void> => {
    if (checking) return
    checking = true
    cancel()
    try {
      await checkDisk()
      if (clock.elapsed() - checkedJournalsAt >= CHECK_JOURNALS_MS) await checkJournals()
      stops()
    } catch (error) {
      log.warn({ event: 'storage_check_failed', err: error }, 'storage check failed')
    }
    checking = false
    if (ended) return
    cancel = clock.later(
      share >= WARN_AT ? CHECK_NEAR_LIMIT_MS : CHECK_EVERY_MS,
      () => void check(),
    )
  }
  await check()
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
    damaged: damages.report,
    refused: (reason) => {
      if (!refusal) log.error({ event: 'journal_write_refused', reason }, 'journal write refused')
      refusal = { reason, at: clock.elapsed() }
    },
    stored: (bytes) => {
      refusal = undefined
      const isNewInterval = expected.add(bytes)
      if (isNewInterval && disk && disk.used + expected.bytes() >= disk.limit * WARN_AT)
        void check()
    },
    stop: () => {
      ended = true
      cancel()
    },
  }
}
