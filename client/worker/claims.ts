/**
 * Asking for jobs. Invariants: at most one claim is outstanding; a claim without an answer gives the connection up; while
 * slots are free, a claim goes out at every occasion and at least every 10 s.
 */
import type { Cancel, Clock } from './ports.ts'

/** Milliseconds: between claims that nothing else caused; the least wait for an answer; how old a claim may be to be repeated. */
const claimTiming = { again: 10_000, giveUp: 30_000, repeat: 30_000 } as const

export interface ClaimsWorld {
  readonly clock: Clock
  /** Slots to ask for; 0 when nothing may be claimed now. */
  slots(): number
  send(message_id: string, slots: number): void
  /** No answer came in time. */
  giveUp(): void
}
interface Claim {
  readonly message_id: string
  readonly at: number
}

export class Claims {
  readonly #world: ClaimsWorld
  #outstanding: Claim | undefined
  /** A claim whose answer was lost with its connection: repeated under its id, it gets the same jobs. */
  #unanswered: Claim | undefined
  #limit: Cancel = () => {}
  #tick: Cancel = () => {}
  #giveUp: number = claimTiming.giveUp
  constructor(world: ClaimsWorld) {
    this.#world = world
  }

  /** The worker is registered. @param cadence of heartbeats, in seconds. @param same whether its earlier session goes on. */
  begin(cadence: number, same: boolean): void {
    this.#giveUp = Math.max(claimTiming.giveUp, 2 * cadence * 1000)
    if (!same) this.#unanswered = undefined
    this.#later()
    this.want()
  }
  /** An occasion to claim. */
  want(): void {
    const slots = this.#world.slots()
    if (this.#outstanding || slots <= 0) return
    const { clock } = this.#world
    const lost = this.#unanswered
    const claim =
      lost && clock.now() - lost.at < claimTiming.repeat
        ? lost
        : { message_id: `msg_${clock.unique()}`, at: clock.now() }
    this.#unanswered = undefined
    this.#outstanding = claim
    this.#limit = clock.after(this.#giveUp, () => this.#world.giveUp())
    this.#world.send(claim.message_id, slots)
  }
  /** An answer or an error came. Whether it was to the outstanding claim. */
  answered(message_id: string | undefined): boolean {
    if (
      !this.#outstanding ||
      (message_id !== undefined && message_id !== this.#outstanding.message_id)
    )
      return false
    this.#outstanding = undefined
    this.#limit()
    return true
  }
  /** The connection is gone, or nothing is wanted any more. */
  end(): void {
    this.#unanswered = this.#outstanding
    this.#outstanding = undefined
    this.#limit()
    this.#tick()
  }

  #later(): void {
    this.#tick()
    this.#tick = this.#world.clock.after(claimTiming.again, () => {
      this.#later()
      this.want()
    })
  }
}
