/** Wakes the actors of a shard at their deadlines by sending them a `wake` command. */
import type { Command, Kind } from '../../../protocol/entry.ts'
import { GATE_CHECK_MS, type WriteGate } from '../durability/write-gate.ts'
import { type ActorInstance, addressOf } from '../memory/actor-instance.ts'
import type { ActorRequests, ScheduleTask, ShardContext } from '../shard-context.ts'
import type { Deadlines } from './deadlines.ts'

/**
 * Maximum number of milliseconds between two comparisons of the deadlines with the system clock. A
 * timer does not notice that the clock was set, or that the machine was suspended.
 */
const MAX_WAIT_MS = 10_000

interface AlarmParts {
  readonly deadlines: Deadlines
  /** While the gate is closed, no actor is woken. */
  readonly gate: Pick<WriteGate, 'closed'>
  /** Whether the shard is served. If it is not, no timer is set. */
  isOpen(): boolean
  readonly submit: ActorRequests['submit']
  readonly task: ScheduleTask
}

export class Alarm {
  readonly #context: ShardContext
  readonly #parts: AlarmParts
  #timer: { readonly at: number; readonly cancel: () => void } | undefined
  #counter = 0

  constructor(context: ShardContext, parts: AlarmParts) {
    this.#context = context
    this.#parts = parts
  }
  /** Updates the deadline of an actor. The caller calls `arm` afterwards. */
  note(instance: ActorInstance): void {
    this.#parts.deadlines.set(instance.key, instance.actor.deadline?.(instance.state as never))
  }
  /** Sets the timer to the earliest deadline. */
  arm(): void {
    const { clock } = this.#context.deps
    const next = this.#parts.deadlines.next()
    if (next === undefined || !this.#parts.isOpen() || (this.#timer && this.#timer.at <= next))
      return
    this.#timer?.cancel()
    const wait = Math.min(Math.max(0, next - clock.now()), MAX_WAIT_MS)
    this.#timer = { at: next, cancel: clock.later(wait, () => this.#ring()) }
  }
  stop(): void {
    this.#timer?.cancel()
  }
  #ring(): void {
    const { clock } = this.#context.deps
    const { deadlines, gate } = this.#parts
    if (gate.closed()) {
      this.#timer = { at: 0, cancel: clock.later(GATE_CHECK_MS, () => this.#ring()) }
      return
    }
    this.#timer = undefined
    const now = clock.now()
    for (const key of deadlines.due(now)) void this.#wake(key, now)
    this.arm()
  }
  async #wake(key: string, now: number): Promise<void> {
    const { instances, position, deps } = this.#context
    const { quarantine, clock, node } = deps
    const { deadlines, submit, task } = this.#parts
    const pause = quarantine?.remaining(key, clock.elapsed()) ?? 0
    if (pause > 0) {
      deadlines.set(key, now + pause)
      return
    }
    const { kind, project, id } = addressOf(key)
    const address = { project, kind: kind as Kind, id }
    const before = instances.loaded(address)?.prev
    const command: Command = {
      ...address,
      command_id: `w:${position.epoch}.${this.#counter++}`,
      name: 'wake',
      input: {},
      origin: {
        at: now,
        principal: { type: 'system', id: 'system' },
        credential: { type: 'internal', id: node },
      },
    }
    const isDecided = 'reply' in (await submit(command))
    task(() => {
      const instance = instances.loaded(address)
      // A wake that did nothing, for instance because all leases restarted with a new owner, does
      // not show that the actor has recovered.
      if (isDecided && instance && instance.prev !== before) quarantine?.release(key)
      const at = instance?.actor.deadline?.(instance.state as never)
      // If the actor did nothing, its deadline may still be in the past. A pause of one second
      // prevents a busy loop.
      if (instance)
        deadlines.set(
          key,
          at !== undefined && at <= now && instance.prev === before ? clock.now() + 1000 : at,
        )
      this.arm()
    })
  }
}
