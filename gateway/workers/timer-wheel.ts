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

interface Round {
  readonly tasks: Set<Task>
  readonly end: () => void
}
/** A task that runs once each time it is added. Only the wheel changes `round`. */
export interface Task {
  due(): void
  round?: Round | undefined
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
    task.round = this.#slots.get(at) ?? this.#open(at)
    task.round.tasks.add(task)
  }
  /** Cancels a task. Does nothing if it is not scheduled. */
  remove(task: Task): void {
    const { round } = task
    task.round = undefined
    if (round?.tasks.delete(task) && round.tasks.size === 0) round.end()
  }
  #open(at: number): Round {
    const tasks = new Set<Task>()
    const cancel = this.#world.later(at * STEP_MS - this.#world.monotonic(), () => {
      this.#slots.delete(at)
      for (const task of tasks) {
        tasks.delete(task)
        task.round = undefined
        task.due()
      }
    })
    const round: Round = {
      tasks,
      end: () => {
        cancel()
        this.#slots.delete(at)
      },
    }
    this.#slots.set(at, round)
    return round
  }
}
