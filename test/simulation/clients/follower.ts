/**
 * A follower of a run or a session. It accepts live entries that continue from its position, and
 * otherwise reads the journal, as a gateway would query a view. Invariant: it accepts every entry
 * exactly once and in order.
 */
import { lastCursor, type PlacedEntry, placeEntries } from '../../../protocol/entry.ts'
import type { Machine } from '../machines/machine.ts'
import type { Simulation } from '../simulation.ts'

export class Follower {
  /** The id of a run or a session. */
  readonly run: string
  readonly kind: 'run' | 'session'
  /** Cursors of the accepted entries, in order. */
  readonly seen: number[] = []
  readonly #sim: Simulation
  readonly project: string
  #last = 0
  #machine: Machine | undefined

  constructor(sim: Simulation, project: string, run: string, kind: 'run' | 'session' = 'run') {
    this.#sim = sim
    this.project = project
    this.run = run
    this.kind = kind
  }
  /** Starts following, through a random machine that is up. Tries again later if none is up. */
  begin(): void {
    const machine = this.#sim.dice.pick(this.#sim.up())
    if (!machine) return void this.#sim.timeline.after(200, () => this.begin())
    this.#machine = machine
    machine.enter(() => {
      machine.world.live(this.project, this.kind, this.run, (place) => this.#hear(place))
      this.catchUp()
    })
  }
  disconnected(machine: Machine): void {
    if (this.#machine === machine)
      this.#sim.timeline.after(this.#sim.dice.between(0, 300), () => this.begin())
  }
  #hear(place: PlacedEntry): void {
    this.#sim.records.live.push(place)
    if (place.entry.prev === this.#last) this.#take(place)
    else if (place.cursor > this.#last) this.catchUp()
  }
  /** Reads the journal from the current position. */
  catchUp(): void {
    const { journal } = this.#sim
    for (const message of journal.messages) {
      if (message.sequence * 1000 + 999 <= this.#last) continue
      for (const place of placeEntries(message.sequence, journal.envelope(message)))
        if (place.entry.id === this.run && place.cursor > this.#last) this.#take(place)
    }
  }
  #take(place: PlacedEntry): void {
    this.seen.push(place.cursor)
    this.#last = lastCursor(place)
  }
}
