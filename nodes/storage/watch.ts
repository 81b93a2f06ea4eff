/**
 * Watches whether the journal can take entries, before it cannot: the disk of the embedded NATS server, the limit of the
 * JetStream account, what the servers refused, and whether journals lack entries.
 *
 * Invariants:
 * D1. Writes stop before the disk is full, while fences, checkpoints and views still have room.
 * D2. Space that was made is used with the next look. An embedded server that met a full disk stores nothing until it is
 *     started again (nats-server freezes such a stream), so it is started again once there is space.
 * D3. A partition that lacks entries takes none until they are back, or the looks that found it have found nothing for a while.
 */
import type { Log } from '../../gateway/ports.ts'
import type { WriteStop } from '../host/deps.ts'
import type { Clock, Journal } from '../host/ports.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { DiskUse } from './disk.ts'

/** The embedded NATS server, as far as its disk is concerned. */
export interface EmbeddedStore {
  use(): Promise<DiskUse>
  /** Whether the server met a full disk and stores nothing any more. */
  frozen(): boolean
  /** Start the server again, on the same port and store. */
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
  /** Absent: the NATS servers are elsewhere. */
  readonly embedded?: EmbeddedStore
  /** What JetStream says of the account; undefined when it has no limit, or nobody answers. */
  account(): Promise<AccountUse | undefined>
}
export interface StorageWatch {
  /** Why nothing may be appended to the journal of a partition. */
  stopped(partition: number): WriteStop | undefined
  /** The same for all partitions, and what the servers refused lately, as short texts. */
  stops(): readonly string[]
  /** What will stop writes before long. */
  warnings(): readonly string[]
  /** A partition's journal was found to lack entries. */
  damaged(partition: number, reason: string): void
  /** The servers refused to store an entry. */
  refused(reason: string): void
  /** The servers stored an entry of so many bytes. */
  stored(bytes: number): void
  stop(): void
}

/** Share of the limit from which on it is warned of, and below which writes go on after they stopped. */
const WARN_AT = 0.8
const RESUME_AT = 0.98
/** Milliseconds between looks at the disk, near its limit and else; at the journals and the account. */
const NEAR = 100
const EVERY = 1000
const JOURNALS = 5000
/**
 * What follows an entry to the disk, later: its actor's snapshot, and the rows of a view in SQLite's log and then in its
 * tables. Bytes for each byte of the entry, and milliseconds within which they come.
 */
const FOLLOW_BYTES = 4
const FOLLOW_MS = 5000
/** Milliseconds of which entries are counted together. */
const SLICE_MS = 250
/** Milliseconds for which a finding of a shard, or a refusal, holds unless it comes again. */
const HOLDS = 60_000
const REFUSAL_HOLDS = 10_000

const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`
const told = ({ used, limit }: { used: number; limit: number }): string =>
  `${mebibytes(used)} of ${mebibytes(limit)}`

/** Start to watch; resolves after the first look. */
export async function watchStorage(parts: StorageParts): Promise<StorageWatch> {
  const { partitions, journal, clock, log, metrics, embedded } = parts
  let disk: DiskUse | undefined
  let account: AccountUse | undefined
  let full = false
  /** Of the disk's limit, what is in use or will be in a moment. */
  let share = 0
  let refusal: { readonly reason: string; readonly at: number } | undefined
  /** By partition: what is missing, and until when that holds. */
  const damages = new Map<number, { readonly reason: string; readonly until: number }>()
  /** The last sequence that each journal was seen to have. */
  const ends = new Map<number, number>()
  let cancel = () => {}
  let ended = false
  let lookedAtJournals = Number.NEGATIVE_INFINITY

  const damaged = (partition: number, reason: string): void => {
    if (!damages.has(partition)) log.error({ partition, reason }, 'the journal lacks entries')
    damages.set(partition, { reason, until: clock.elapsed() + HOLDS })
  }
  const damageOf = (partition: number): string | undefined => {
    const found = damages.get(partition)
    if (found && clock.elapsed() >= found.until) {
      damages.delete(partition)
      log.info({ partition }, 'the journal is not found to lack entries any more')
    }
    return damages.get(partition)?.reason
  }
  const slices: { readonly at: number; bytes: number }[] = []
  /** Bytes that will be written because of entries that are stored already. */
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
      if (now) log.error({ ...disk }, 'the disk is full: writes stop, reads go on')
      else log.info({ ...disk }, 'the disk has space again: writes go on')
    full = now
    metrics.storage(disk.used, disk.limit)
    if (full || !embedded.frozen()) return
    log.warn({ ...disk }, 'the NATS server met a full disk; it is started again')
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
        damaged(partition, `journal ${partition} ends at ${last}, and has ended at ${before}`)
    }
  }
  const stopped = (partition: number): WriteStop | undefined => {
    const damage = damageOf(partition)
    if (damage !== undefined) return { code: 'journal_damaged', reason: damage }
    if (embedded?.frozen())
      return { code: 'storage_full', reason: 'the NATS server met a full disk' }
    return full && disk ? { code: 'storage_full', reason: `${told(disk)} are in use` } : undefined
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
    if (refusal && clock.elapsed() - refusal.at < REFUSAL_HOLDS) {
      storage = true
      found.add(`storage: the NATS servers store nothing (${refusal.reason})`)
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
      if (clock.elapsed() - lookedAtJournals >= JOURNALS) await lookAtJournals()
      stops()
    } catch (error) {
      log.warn({ err: error }, 'the storage cannot be looked at')
    }
    looking = false
    if (ended) return
    cancel = clock.later(share >= WARN_AT ? NEAR : EVERY, () => void look())
  }
  await look()
  return {
    stopped,
    stops,
    warnings: () => {
      const near = (use: AccountUse | undefined): use is AccountUse =>
        use !== undefined && use.used >= use.limit * WARN_AT
      return [
        ...(disk && share >= WARN_AT && !full ? [`storage: ${told(disk)} are in use`] : []),
        ...(near(account) ? [`storage: ${told(account)} of the account are in use`] : []),
      ]
    },
    damaged,
    refused: (reason) => {
      if (!refusal) log.error({ reason }, 'the NATS servers store nothing')
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
