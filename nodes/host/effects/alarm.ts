/** Wakes the actors of a shard at their deadlines by sending them the command `wake`. */
import type { Command, Kind } from '../../../protocol/entry.ts'
import { GATE_CHECK_MS } from '../durability/write-gate.ts'
import { type ActorInstance, addressOf } from '../memory/actor-instance.ts'
import type { Shard } from '../shard.ts'

export class Alarm {
  readonly #shard: Shard
  #timer: { readonly at: number; readonly cancel: () => void } | undefined
  #counter = 0

  constructor(shard: Shard) {
    this.#shard = shard
  }
  /** Updates the deadline of an actor. The caller calls `arm` afterwards. */
  note(cell: ActorInstance): void {
    this.#shard.deadlines.set(cell.key, cell.actor.deadline?.(cell.state as never))
  }
  /** Sets the timer to the earliest deadline. */
  arm(): void {
    const {
      deadlines,
      deps: { clock },
      open,
    } = this.#shard
    const next = deadlines.next()
    if (next === undefined || !open || (this.#timer && this.#timer.at <= next)) return
    this.#timer?.cancel()
    const wait = Math.min(Math.max(0, next - clock.now()), 3_600_000)
    this.#timer = { at: next, cancel: clock.later(wait, () => this.#ring()) }
  }
  stop(): void {
    this.#timer?.cancel()
  }
  #ring(): void {
    const {
      deadlines,
      deps: { clock },
    } = this.#shard
    if (this.#shard.gate.closed()) {
      this.#timer = { at: 0, cancel: clock.later(GATE_CHECK_MS, () => this.#ring()) }
      return
    }
    this.#timer = undefined
    const now = clock.now()
    for (const key of deadlines.due(now)) void this.#wake(key, now)
    this.arm()
  }
  async #wake(key: string, now: number): Promise<void> {
    const {
      cells,
      deadlines,
      epoch,
      deps: { quarantine, clock, node },
    } = this.#shard
    const pause = quarantine?.remaining(key, clock.elapsed()) ?? 0
    if (pause > 0) {
      deadlines.set(key, now + pause)
      return
    }
    const { kind, project, id } = addressOf(key)
    const address = { project, kind: kind as Kind, id }
    const before = cells.loaded(address)?.prev
    const command: Command = {
      ...address,
      command_id: `w:${epoch}.${this.#counter++}`,
      name: 'wake',
      input: {},
      origin: {
        at: now,
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: node },
      },
    }
    if ('reply' in (await this.#shard.submit(command))) quarantine?.release(key)
    this.#shard.task(() => {
      const cell = cells.loaded(address)
      const at = cell?.actor.deadline?.(cell.state as never)
      // An actor that did nothing and whose deadline is still in the past would be woken in a busy
      // loop, so it is woken again one second later.
      if (cell)
        deadlines.set(
          key,
          at !== undefined && at <= now && cell.prev === before ? clock.now() + 1000 : at,
        )
      this.arm()
    })
  }
}
