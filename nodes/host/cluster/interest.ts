/**
 * Interest in the committed entries of single actors. A node that follows actors reports to the
 * owners of shards which ones, so that an owner publishes only entries that some node follows.
 *
 * A report does not list the actors. It has `BITS` bits, and the hash of an actor's subject selects
 * its bit, so a report has a fixed size and replaces the one before. An owner therefore publishes
 * some entries in vain, but never withholds a followed one:
 *
 * I1. A query that a node sends after it has followed an actor waits until the owners have the
 *     report (`settled`). An entry that the answer does not contain is therefore published.
 * I2. An owner that has no recent report of a live node that may follow actors considers every
 *     actor followed. Nodes of older releases never report.
 * I3. A lost report delays entries, but does not lose them: reports are repeated, and followers
 *     query views when they find a gap, and periodically.
 */
import type { Kind } from '../../../protocol/entry.ts'
import { hashOf } from '../../../protocol/subjects.ts'
import type { Clock } from '../ports.ts'
import { LEASE_DURATION_MS } from '../timing.ts'
import type { Membership } from './membership.ts'
import type { Neighbours } from './neighbours.ts'

/**
 * The kinds whose entries are published only if a node follows their actor. Entries of other kinds
 * are few, and gateways rely on some of them without a query after they have followed an actor.
 */
export const reportedKinds: ReadonlySet<Kind> = new Set<Kind>(['run', 'session'])

/** Number of bits in a report, which are 172 characters of base64. */
const BITS = 1024
/** Milliseconds between two reports of a node. */
const REPORT_INTERVAL_MS = 2000
/** Milliseconds after which a report no longer counts. Several repetitions may be lost. */
const RECENT_MS = 5 * REPORT_INTERVAL_MS
/**
 * Milliseconds after which a report is deleted. Until then, its number prevents that an older
 * report, which arrives late, replaces it.
 */
const OBSOLETE_MS = 6 * RECENT_MS
/**
 * Milliseconds for which a bit stays set after its last follower has left. Clients that often open
 * short streams therefore cause few reports.
 */
const LINGER_MS = 5000
/**
 * Number of bits in all reports above which most entries are assumed to be followed. With so many
 * bits, one of eight entries without followers is published.
 */
const MANY_BITS = BITS / 8
/** Milliseconds for which the result of the search for missing reports is used again. */
const SEARCH_INTERVAL_MS = 100

/** What one node follows. */
export interface InterestReport {
  readonly node: string
  /** Distinguishes processes that use the same node id one after the other. */
  readonly instance: string
  /** Increases with every report of an instance. */
  readonly number: number
  /** The bits of everything that the node follows, in base64. */
  readonly bits: string
}

const bitOf = (subject: string): number => hashOf(subject) % BITS
const isSet = (bits: Uint8Array, bit: number): boolean =>
  (((bits[bit >> 3] ?? 0) >> (bit & 7)) & 1) === 1
const set = (bits: Uint8Array, bit: number): void => {
  bits[bit >> 3] = (bits[bit >> 3] ?? 0) | (1 << (bit & 7))
}

interface InterestParts {
  readonly node: string
  readonly instance: string
  readonly clock: Pick<Clock, 'elapsed' | 'later'>
  /** Returns the ids of the other nodes that own shards. */
  owners(): readonly string[]
  /** Sends a report to a node. Resolves when the node has it, or cannot be reached. */
  report(node: string, report: InterestReport): Promise<unknown>
}

/** The interest of this node. */
export class OwnInterest {
  readonly #parts: InterestParts
  /** Number of followers by bit. */
  readonly #followers = new Uint32Array(BITS)
  /** When the last follower of a bit left, in monotonic milliseconds. */
  readonly #left = new Float64Array(BITS)
  #bits = new Uint8Array(BITS / 8)
  #number = 0
  /** Whether a bit was set after the last report. */
  #changed = false
  /** The last report that owners may not have yet. */
  #reporting: Promise<void> | undefined
  #cancel = () => {}

  constructor(parts: InterestParts) {
    this.#parts = parts
  }

  /** Reports periodically, until the returned function is called. */
  start(): () => Promise<void> {
    const repeat = () => {
      this.#cancel = this.#parts.clock.later(REPORT_INTERVAL_MS, () => {
        this.#forget()
        void this.#report()
        repeat()
      })
    }
    repeat()
    return async () => this.#cancel()
  }

  /** Follows a subject, until the returned function is called. */
  follow(subject: string): () => void {
    const bit = bitOf(subject)
    this.#followers[bit] = (this.#followers[bit] ?? 0) + 1
    if (!isSet(this.#bits, bit)) {
      set(this.#bits, bit)
      this.#changed = true
      // Several subjects that are followed in one turn are reported together.
      queueMicrotask(() => void this.settled())
    }
    let followed = true
    return () => {
      if (!followed) return
      followed = false
      this.#followers[bit] = (this.#followers[bit] ?? 1) - 1
      this.#left[bit] = this.#parts.clock.elapsed()
    }
  }

  /**
   * Returns a promise that resolves when the owners have the reports of everything that is
   * followed, or cannot be reached; undefined if they already have them.
   */
  settled(): Promise<void> | undefined {
    if (this.#changed && this.#parts.owners().length === 0) this.#changed = false
    if (this.#changed) {
      const reporting = this.#report().then(() => {
        if (this.#reporting === reporting) this.#reporting = undefined
      })
      this.#reporting = reporting
    }
    return this.#reporting
  }

  async #report(): Promise<void> {
    this.#changed = false
    const { node, instance, owners, report } = this.#parts
    const bits = Buffer.from(this.#bits).toString('base64')
    const made: InterestReport = { node, instance, number: ++this.#number, bits }
    await Promise.all(owners().map((owner) => report(owner, made).catch(() => {})))
  }
  /** Clears the bits that have had no follower for `LINGER_MS`. */
  #forget(): void {
    const since = this.#parts.clock.elapsed() - LINGER_MS
    const bits = new Uint8Array(BITS / 8)
    for (let bit = 0; bit < BITS; bit++) {
      const followed = (this.#followers[bit] ?? 0) > 0
      if (isSet(this.#bits, bit) && (followed || (this.#left[bit] ?? 0) > since)) set(bits, bit)
    }
    this.#bits = bits
  }
}

/** The interest of the other nodes, from their reports. */
export class InterestOfOthers {
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #followers: () => readonly string[]
  readonly #reports = new Map<string, { readonly at: number; readonly report: InterestReport }>()
  /** The bits of all reports. */
  #bits = new Uint8Array(BITS / 8)
  #count = 0
  #joined = Number.NEGATIVE_INFINITY
  #searched = Number.NEGATIVE_INFINITY
  #missing = true

  /** @param followers returns the ids of the other live nodes that may follow actors. */
  constructor(clock: Pick<Clock, 'elapsed'>, followers: () => readonly string[]) {
    this.#clock = clock
    this.#followers = followers
  }

  /** Stores a report, unless it is older than the stored one of the same process. */
  note(report: InterestReport): void {
    const known = this.#reports.get(report.node)?.report
    if (known?.instance === report.instance && known.number > report.number) return
    this.#reports.set(report.node, { at: this.#clock.elapsed(), report })
    this.#searched = Number.NEGATIVE_INFINITY
    if (known?.bits !== report.bits) this.#combine()
  }
  /**
   * Records that a node has joined, or may have joined unnoticed. Every actor is then considered
   * followed until the membership of that node must have been read.
   */
  joined(): void {
    this.#joined = this.#clock.elapsed()
  }
  /** Whether another node may follow a subject. */
  wants(subject: string): boolean {
    return isSet(this.#bits, bitOf(subject)) || !this.#complete()
  }
  /** Whether other nodes may follow so much that most entries are published. */
  wantsMuch(): boolean {
    return this.#count > MANY_BITS || !this.#complete()
  }

  /** Whether there is a recent report of each node that may follow actors. */
  #complete(): boolean {
    const now = this.#clock.elapsed()
    if (now - this.#joined < LEASE_DURATION_MS) return false
    if (now - this.#searched >= SEARCH_INTERVAL_MS) {
      this.#searched = now
      this.#missing = !this.#followers().every((node) => {
        const known = this.#reports.get(node)
        return known !== undefined && now - known.at < RECENT_MS
      })
    }
    return !this.#missing
  }
  #combine(): void {
    const now = this.#clock.elapsed()
    const bits = new Uint8Array(BITS / 8)
    for (const [node, { at, report }] of this.#reports) {
      if (now - at >= OBSOLETE_MS) {
        this.#reports.delete(node)
        continue
      }
      const reported = Buffer.from(report.bits, 'base64')
      for (let i = 0; i < bits.length; i++) bits[i] = (bits[i] ?? 0) | (reported[i] ?? 0)
    }
    this.#bits = bits
    this.#count = 0
    for (let bit = 0; bit < BITS; bit++) if (isSet(bits, bit)) this.#count++
  }
}

/** The interest of a node, and that of the others. */
export interface Interest {
  readonly own: OwnInterest
  readonly others: InterestOfOthers
}
/**
 * Creates the interest of a node and of the others.
 * @param node id of the node.
 * @param instance distinguishes this process from others with the same id.
 */
export function openInterest(
  node: string,
  instance: string,
  clock: Pick<Clock, 'elapsed' | 'later'>,
  {
    membership,
    neighbours,
  }: {
    readonly membership: Pick<Membership, 'members'>
    readonly neighbours: Pick<Neighbours, 'report'>
  },
): Interest {
  const withRole = (role: 'shards' | 'gateway' | 'executor') =>
    membership.members(role).flatMap(({ id }) => (id === node ? [] : [id]))
  return {
    own: new OwnInterest({
      node,
      instance,
      clock,
      owners: () => withRole('shards'),
      report: (id, report) => neighbours.report(id, report),
    }),
    others: new InterestOfOthers(clock, () => [...withRole('gateway'), ...withRole('executor')]),
  }
}
