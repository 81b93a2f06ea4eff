/**
 * Claims jobs.
 *
 * Invariants:
 * C1. At most one claim is outstanding.
 * C2. A claim that receives no response in time ends the connection.
 * C3. While slots are free and no claim is outstanding, every call to `want` sends a claim, and a
 *     timer calls `want` every 10 s.
 */
import type { Cancel, Clock } from './ports.ts'

/**
 * Timing of claims, in milliseconds. `again` is the interval of periodic claims, `giveUp` the
 * minimum timeout of a claim, and `repeat` the age up to which an unanswered claim is repeated.
 */
const claimTiming = { again: 10_000, giveUp: 30_000, repeat: 30_000 } as const

export interface ClaimsWorld {
  readonly clock: Clock
  /** Slots to claim; 0 if no jobs may be claimed now. */
  slots(): number
  send(message_id: string, slots: number): void
  /** Called when the response does not arrive in time. */
  giveUp(): void
}
interface Claim {
  readonly message_id: string
  readonly at: number
}

export class Claims {
  readonly #world: ClaimsWorld
  #outstanding: Claim | undefined
  /**
   * A claim whose response was lost with its connection. A repeat with the same id returns the same
   * jobs.
   */
  #unanswered: Claim | undefined
  #limit: Cancel = () => {}
  #tick: Cancel = () => {}
  #giveUp: number = claimTiming.giveUp
  constructor(world: ClaimsWorld) {
    this.#world = world
  }

  /**
   * Starts claiming after a registration.
   * @param cadence interval of heartbeats, in seconds.
   * @param same whether the worker's earlier session continues.
   */
  begin(cadence: number, same: boolean): void {
    this.#giveUp = Math.max(claimTiming.giveUp, 2 * cadence * 1000)
    if (!same) this.#unanswered = undefined
    this.#later()
    this.want()
  }
  /** Sends a claim if none is outstanding and slots are free. */
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
  /** Handles a response or an error. Returns whether it belongs to the outstanding claim. */
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
  /** Stops claiming, because the connection is lost or no more jobs are accepted. */
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
