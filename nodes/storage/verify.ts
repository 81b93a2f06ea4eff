/**
 * Reads every journal completely once a day, in small steps. Otherwise a damaged block that
 * precedes all checkpoints would be found only by a backup or by the rebuild of a view.
 *
 * Invariants:
 * V1. The load is bounded: the process reads one partition at a time, and each partition at most
 *     once per `STEP_MS`. A step reads as many entries as are needed to finish within a day, and at
 *     least `MIN_ENTRIES`.
 * V2. Only the owner of a partition's first shard reads, so each journal is read by one node.
 * V3. A finding remains until the same entries are read without errors, the journal starts after
 *     them, or the node loses the shard. It causes a warning and stops no writes: appends and all
 *     later entries are unaffected.
 */
import type { Log } from '../../gateway/ports.ts'
import type { Clock, Journal } from '../host/ports.ts'
import type { Scan } from '../nats/journal/scan.ts'

const DAY_MS = 86_400_000
/** Milliseconds between two steps. */
const STEP_MS = 10_000
/** Minimum number of entries that a step reads. */
const MIN_ENTRIES = 64
/**
 * Number of attempts after which an entry that is not delivered is reported as damaged. One attempt
 * is not enough, because no entry is delivered during an election. nats-server (2.15.1) delivers
 * nothing from a truncated compressed block, but still counts its entries. Further steps then skip
 * a growing number of entries, until one is delivered.
 */
const MAX_SILENCE = 3

export interface VerifyParts {
  readonly partitions: number
  readonly journal: Pick<Journal, 'position'>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: { journalDamaged(partition: number, damaged: boolean): void }
  /**
   * Where the first pass begins, as a fraction of the entries (at least 0, less than 1). It should
   * be random, so that a node that restarts often also verifies the end of the journal.
   */
  readonly begin: number
  /** Whether this node reads the journal of a partition. */
  owns(partition: number): boolean
  scan(partition: number, from: number, to: number): Promise<Scan>
}
interface Finding {
  readonly from: number
  readonly next: number
  readonly reason: string
}
interface Progress {
  next: number
  /** Number of entries of this pass that have not been read yet. */
  left: number
  /** Earliest start of the next pass, in monotonic time (`Clock.elapsed`). */
  due: number
  silences: number
  /** The first entry that was not delivered. */
  gap: number | undefined
  findings: readonly Finding[]
}

export interface Verification {
  /** Returns short descriptions, for `/readyz`, of the entries that cannot be read. */
  warnings(): readonly string[]
  stop(): Promise<void>
}

/** Starts the verification. The first step follows `STEP_MS` later. */
export function startVerifying(parts: VerifyParts): Verification {
  const { clock, log, metrics } = parts
  const all = new Map<number, Progress>()
  let stopped = false
  let cancel = () => {}
  let stepping: Promise<void> = Promise.resolve()

  const progressOf = (partition: number): Progress => {
    const found = all.get(partition) ?? {
      next: 0,
      left: 0,
      due: 0,
      silences: 0,
      gap: undefined,
      findings: [],
    }
    all.set(partition, found)
    return found
  }
  /**
   * Records the result for the entries from `from` (inclusive) to `next` (exclusive). It replaces
   * earlier findings about these entries.
   */
  const settle = (partition: number, from: number, next: number, reason?: string): void => {
    const progress = progressOf(partition)
    const before = progress.findings
    const kept = before.filter((one) => one.next <= from || one.from >= next)
    progress.findings = reason === undefined ? kept : [...kept, { from, next, reason }]
    if (reason !== undefined && !before.some((one) => one.reason === reason))
      log.error({ event: 'journal_damaged', partition, reason }, 'journal damaged')
    metrics.journalDamaged(partition, progress.findings.length > 0)
  }
  const step = async (partition: number): Promise<void> => {
    const progress = progressOf(partition)
    if (progress.left === 0 && clock.elapsed() < progress.due) return
    const { first, last } = await parts.journal.position(partition)
    const total = last - first + 1
    if (total <= 0) return
    // Entries before `first` were deleted on purpose, so findings about them are dropped.
    progress.findings = progress.findings.filter((one) => one.next > first)
    if (progress.left === 0) {
      const begun = progress.next > 0
      progress.left = total
      progress.due = clock.elapsed() + DAY_MS
      if (!begun) progress.next = first + Math.floor(parts.begin * total)
    }
    if (progress.next > last || progress.next < first) progress.next = first
    const entries = Math.max(MIN_ENTRIES, Math.ceil((total * STEP_MS) / DAY_MS))
    const from = progress.next
    const to = Math.min(last, from + Math.min(entries, progress.left) - 1)
    const scan = await parts.scan(partition, from, to)
    let { next } = scan
    if (scan.outcome === 'damaged') {
      // An operator may have deleted the beginning of the journal during the scan. The entries are
      // then not damaged.
      const now = await parts.journal.position(partition)
      if (now.first <= from) settle(partition, from, next, scan.reason)
    } else if (next > from) settle(partition, from, next)
    if (next > from) Object.assign(progress, { silences: 0, gap: undefined })
    if (scan.outcome === 'silent' && ++progress.silences >= MAX_SILENCE) {
      const gap = (progress.gap ??= next)
      next = Math.min(last + 1, gap + Math.max(1, 2 * (next - gap)))
      const reason = `entries of journal ${partition} from ${gap} on are not delivered`
      settle(partition, gap, next, reason)
    }
    progress.left = Math.max(0, progress.left - (next - from))
    progress.next = next
  }
  const round = async (): Promise<void> => {
    for (let partition = 0; partition < parts.partitions && !stopped; partition++) {
      if (!parts.owns(partition)) {
        if (all.delete(partition)) metrics.journalDamaged(partition, false)
        continue
      }
      await step(partition).catch((error: unknown) =>
        log.debug(
          { event: 'journal_verification_failed', partition, err: error },
          'journal verification step failed',
        ),
      )
    }
    plan()
  }
  const plan = () => {
    if (!stopped)
      cancel = clock.later(STEP_MS, () => {
        stepping = round()
      })
  }
  plan()
  return {
    warnings: () =>
      [...all.values()].flatMap(({ findings }) =>
        findings.map(({ reason }) => `journal_damaged: ${reason}`),
      ),
    stop: async () => {
      stopped = true
      cancel()
      await stepping
    },
  }
}
