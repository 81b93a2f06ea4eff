/**
 * What has to be done now and then for each of very many connections: all that is due about the same time is done by one
 * timer. A timer for each costs some 400 bytes (measured with Node 20), and each idle worker would need three.
 *
 * Invariant: a task is done no earlier than asked for, and at most `STEP` later.
 */
import type { World } from '../ports.ts'

/** Milliseconds that are one round. */
const STEP_MS = 250

interface Round {
  readonly tasks: Set<Task>
  readonly end: () => void
}
/** Something to be done later; it waits for one time only. `round` belongs to the wheel. */
export interface Task {
  due(): void
  round?: Round | undefined
}

export class TimerWheel {
  readonly #world: Pick<World, 'now' | 'later'>
  /** By the number of steps since 1970. */
  readonly #rounds = new Map<number, Round>()

  constructor(world: Pick<World, 'now' | 'later'>) {
    this.#world = world
  }
  /** Have a task done in so many milliseconds, instead of whenever it was to be done. */
  add(ms: number, task: Task): void {
    this.remove(task)
    const at = Math.ceil((this.#world.now() + ms) / STEP_MS)
    task.round = this.#rounds.get(at) ?? this.#open(at)
    task.round.tasks.add(task)
  }
  /** It need not be done any more. */
  remove(task: Task): void {
    const { round } = task
    task.round = undefined
    if (round?.tasks.delete(task) && round.tasks.size === 0) round.end()
  }
  #open(at: number): Round {
    const tasks = new Set<Task>()
    const cancel = this.#world.later(at * STEP_MS - this.#world.now(), () => {
      this.#rounds.delete(at)
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
        this.#rounds.delete(at)
      },
    }
    this.#rounds.set(at, round)
    return round
  }
}
