/**
 * A timer wheel for a very large number of tasks: one timer runs all tasks that are due at about
 * the same time. A timer for each task would cost about 400 bytes (measured with Node 20), and an
 * idle worker has up to three tasks.
 *
 * Invariant: a task is never run before the requested time, and is due at most `STEP_MS` after it.
 */
import type { World } from '../ports.ts'

/** Duration of a step in milliseconds. All tasks that are due in the same step run in one round. */
const STEP_MS = 250

/** The tasks of one step. A removed task leaves an empty place. */
interface Round {
  readonly tasks: (Task | undefined)[]
  /** Number of tasks that are not removed. */
  size: number
  readonly end: () => void
}
/** A task that runs once each time it is added. Only the wheel changes `round` and `place`. */
export interface Task {
  due(): void
  round?: Round | undefined
  /** Index of the task in its round. */
  place?: number | undefined
}

export class TimerWheel {
  readonly #world: Pick<World, 'monotonic' | 'later'>
  /** The rounds by their time, in steps of the monotonic time. */
  readonly #slots = new Map<number, Round>()

  constructor(world: Pick<World, 'monotonic' | 'later'>) {
    this.#world = world
  }
  /**
   * Schedules a task to run after a number of milliseconds. A previous schedule of the task is
   * cancelled.
   */
  add(ms: number, task: Task): void {
    this.remove(task)
    const at = Math.ceil((this.#world.monotonic() + ms) / STEP_MS)
    const round = this.#slots.get(at) ?? this.#open(at)
    task.round = round
    task.place = round.tasks.push(task) - 1
    round.size++
  }
  /** Cancels a task. Does nothing if it is not scheduled. */
  remove(task: Task): void {
    const { round, place } = task
    if (!round || place === undefined) return
    task.round = undefined
    round.tasks[place] = undefined
    if (--round.size === 0) round.end()
  }
  #open(at: number): Round {
    const cancel = this.#world.later(at * STEP_MS - this.#world.monotonic(), () => {
      this.#slots.delete(at)
      for (const task of round.tasks) {
        if (!task) continue
        round.size--
        task.round = undefined
        task.due()
      }
    })
    const round: Round = {
      tasks: [],
      size: 0,
      end: () => {
        cancel()
        if (this.#slots.get(at) === round) this.#slots.delete(at)
      },
    }
    this.#slots.set(at, round)
    return round
  }
}
