/**
 * Calls of listeners in this process. A failure of a handler is logged and counts as no answer
 * (B3 of `bus.ts`).
 */
import type { Log } from '../../../gateway/ports.ts'
import { type Limited, Overdue } from '../journal/overdue.ts'
import type { Listener } from './listeners.ts'

export class LocalCalls {
  readonly #log: Log
  readonly #overdue = new Overdue<Limited>()

  constructor(log: Log) {
    this.#log = log
  }
  /** Calls a listener, and returns its answer or a promise of it. */
  call(listener: Listener, message: unknown, subject: string): unknown {
    try {
      const answer = listener.handler(message, subject)
      return answer instanceof Promise
        ? answer.catch((error: unknown) => this.#report(error, subject))
        : answer
    } catch (error) {
      return this.#report(error, subject)
    }
  }
  #report(error: unknown, subject: string): undefined {
    this.#log.error({ event: 'listener_failed', subject, error }, 'message listener failed')
  }
  /**
   * Calls listeners one after the other, beginning at the index `from`, until one answers. Returns
   * the answer or a promise of it. The answer is undefined if no listener answers.
   */
  first(all: readonly Listener[], message: unknown, subject: string, from = 0): unknown {
    for (let i = from; i < all.length; i++) {
      const answer = this.call(all[i] as Listener, message, subject)
      if (answer instanceof Promise)
        return answer.then((value) =>
          value === undefined ? this.first(all, message, subject, i + 1) : value,
        )
      if (answer !== undefined) return answer
    }
    return undefined
  }
  /**
   * Calls `done` with the first answer of the listeners, or with undefined when none answers within
   * `timeout` milliseconds. The listeners are called in a microtask.
   */
  ask(
    all: readonly Listener[],
    message: unknown,
    subject: string,
    timeout: number,
    done: (answer: unknown) => void,
  ): void {
    queueMicrotask(() => {
      const answer = this.first(all, message, subject)
      if (!(answer instanceof Promise)) return done(answer)
      const number = this.#overdue.add({
        until: performance.now() + timeout,
        over: () => done(undefined),
      })
      void answer.then((value) => {
        if (this.#overdue.take(number)) done(value)
      })
    })
  }
}
