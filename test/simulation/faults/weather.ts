/**
 * The kinds of faults. Each seed selects some of them. Each kind has a separate random stream, so
 * switching one off, for example to shrink a failing seed, does not affect the others.
 */
import { type Dice, fork } from './dice.ts'

const faultKinds = [
  'kill',
  'pause',
  'cut',
  'delay',
  'loss',
  'duplicate',
  'reorder',
  'append',
  'late',
  'disk',
  'wipe',
  'tail',
  'state',
  'registry',
  'amnesia',
  'skew',
  'drift',
  'jump',
  'workers',
  'socket',
] as const
/**
 * A kind of fault.
 * - kill: processes die during any external call or stop gracefully, and are started again.
 * - pause: processes are suspended for up to 6 s, which is longer than a lease.
 * - cut: machines lose their connection to the servers and to each other.
 * - delay, loss, duplicate, reorder: messages between nodes are late, lost, repeated or reordered.
 * - append: appends get no answer, whether they were stored or not.
 * - late: appends are stored after their timeout.
 * - disk: the journal is slow.
 * - wipe: all snapshots are lost.
 * - tail: a server restarts. Its newest snapshots are lost, and so is the registry, which is only
 *   in memory.
 * - state: operations on snapshots are slow, or get no answer.
 * - registry: operations on the registry are slow, or get no answer.
 * - amnesia: the registry loses everything.
 * - skew, drift, jump: clocks differ, run at different speeds, or jump to another time.
 * - workers: workers misbehave.
 * - socket: connections of workers break while both ends are alive, and frames in flight are lost.
 *   The workers resume their sessions.
 */
export type FaultKind = (typeof faultKinds)[number]

export class Weather {
  readonly kinds: ReadonlySet<FaultKind>
  /** Whether all faults are switched off. */
  calm = false
  readonly #dice = new Map<FaultKind, Dice>()
  readonly #usual: Dice

  constructor(seed: number, off: ReadonlySet<FaultKind>) {
    const dice = fork(seed, 'weather')
    const likely = dice.between(0.1, 0.6)
    this.kinds = new Set(faultKinds.filter((kind) => dice.chance(likely) && !off.has(kind)))
    for (const kind of faultKinds) this.#dice.set(kind, fork(seed, `fault/${kind}`))
    this.#usual = fork(seed, 'delays')
  }
  dice(kind: FaultKind): Dice {
    return this.#dice.get(kind) as Dice
  }
  /** Decides at random whether a fault of this kind occurs now. */
  strikes(kind: FaultKind, chance: number): boolean {
    return !this.calm && this.kinds.has(kind) && this.dice(kind).chance(chance)
  }
  /** Returns the travel time of a message to another machine or to the servers, in milliseconds. */
  travel(): number {
    const dice = this.#usual
    const usual = dice.chance(0.05) ? dice.between(3, 25) : dice.between(0.1, 1.5)
    return this.strikes('delay', 0.03) ? usual + this.dice('delay').between(50, 900) : usual
  }
  /** Returns the number of milliseconds until an append is on disk. */
  sync(): number {
    return this.strikes('disk', 0.1)
      ? this.dice('disk').between(100, 2500)
      : this.#usual.between(0.2, 4)
  }
}
