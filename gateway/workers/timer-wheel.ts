/**
 * Periodic tasks for a very large number of connections: one timer runs all tasks that are due at
 * about the same time. A separate timer per task costs some 400 bytes (measured with Node 20), and
 * each idle worker would need three.
 *
 * Invariant: a task runs no earlier than requested, and at most `STEP_MS` later.
 */
import type { World } from '../ports.ts'

/** The length of one round in milliseconds. */
const STEP_MS = 250

interface Round {
  readonly tasks: Set<Task>
  readonly end: () => void
}
/** A task to run later; it is scheduled for one time only. The wheel owns `round`. */
export interface Task {
  due(): void
  round?: Round | undefined
}

export class TimerWheel {
  readonly #world: Pick<World, 'now' | 'later'>
  /** Rounds by the number of steps since 1970. */
  readonly #slots = new Map<number, Round>()

  constructor(world: Pick<World, 'now' | 'later'>) {
    this.#world = world
  }
  /** Schedules a task in this many milliseconds, in place of any earlier schedule. */
  add(ms: number, task: Task): void {
    this.remove(task)
    const at = Math.ceil((this.#world.now() + ms) / STEP_MS)
    task.round = this.#slots.get(at) ?? this.#open(at)
    task.round.tasks.add(task)
  }
  /** Cancels a task. */
  remove(task: Task): void {
    const { round } = task
    task.round = undefined
    if (round?.tasks.delete(task) && round.tasks.size === 0) round.end()
  }
  #open(at: number): Round {
    const tasks = new Set<Task>()
    const cancel = this.#world.later(at * STEP_MS - this.#world.now(), () => {
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
