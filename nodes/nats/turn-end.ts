/**
 * Orders the work at the end of a turn of the event loop. The work that other processes wait for
 * comes first: commands are decided, then messages leave, then the rest is done.
 *
 * Invariants:
 * T1. Functions of one kind run in the order in which they were passed.
 * T2. Messages that are sent while commands are decided, also in microtasks, leave in the same turn.
 *     Node.js runs the microtasks of one callback of `setImmediate` before it calls the next one.
 * T3. Deferred work runs at the end of the turn. If responses to messages of this turn are expected,
 *     it runs at the end of the next turn. A command that arrives in that turn, in response to a
 *     message of this turn, is therefore decided and sent before the deferred work.
 */
import type { TurnEnd } from '../host/ports.ts'

/** The end of a turn, including its messages. */
export interface SendingTurnEnd extends TurnEnd {
  /** Calls `run`, which sends a message, together with the other messages of this turn. */
  send(run: () => void): void
  /**
   * Returns a promise that resolves at the end of the next turn; undefined if no responses are
   * expected, so that nothing has to come first.
   */
  responses(): Promise<void> | undefined
}

/** Creates the phases at the end of each turn. */
export function createTurnEnd(): SendingTurnEnd {
  const [deciding, sending] = [createQueue(), createQueue()]
  /** What runs at the end of this turn. */
  let due: (() => void)[] = []
  /** What runs at the end of the next turn. */
  let deferred: (() => void)[] = []
  let responsesExpected = false
  let scheduled = false

  const finish = (): void => {
    scheduled = responsesExpected = false
    const all = due
    due = deferred
    deferred = []
    for (const run of all) run()
    if (deciding.size() + sending.size() + due.length > 0) schedule()
  }
  const schedule = (): void => {
    if (scheduled) return
    scheduled = true
    setImmediate(deciding.run)
    setImmediate(sending.run)
    setImmediate(finish)
  }
  const isLater = () => responsesExpected || deferred.length > 0
  return {
    decide(run) {
      deciding.add(run)
      schedule()
    },
    send(run) {
      sending.add(run)
      schedule()
    },
    expectResponses() {
      responsesExpected = true
      schedule()
    },
    defer(run) {
      if (isLater()) deferred.push(run)
      else due.push(run)
      schedule()
    },
    responses: () =>
      isLater() ? new Promise<void>((done) => void deferred.push(done)) : undefined,
  }
}

/** Creates a list of functions. `run` empties the list and then calls the functions. */
function createQueue() {
  let waiting: (() => void)[] = []
  return {
    add: (run: () => void): void => void waiting.push(run),
    size: (): number => waiting.length,
    run: (): void => {
      const all = waiting
      waiting = []
      for (const run of all) run()
    },
  }
}
