/**
 * The queries of a view that are in progress. A gateway repeats a request that is not answered in
 * time. The repeated request gets the answer to the first request, so a slow query is executed only
 * once.
 */
import type { Question } from './view.ts'

export interface PendingQueries {
  /** Answers a query. If the same query is already in progress, waits for its answer. */
  ask(question: Question): Promise<unknown>
  /** Resolves when all queries in progress have ended. */
  ended(): Promise<void>
}

/**
 * Creates the set of pending queries of a view.
 * @param ask answers a query.
 */
export function createPendingQueries(
  ask: (question: Question) => Promise<unknown>,
): PendingQueries {
  const pending = new Map<string | symbol, Promise<unknown>>()
  return {
    ask(question) {
      const id = question.id ?? Symbol()
      const answer = pending.get(id) ?? ask(question).finally(() => void pending.delete(id))
      pending.set(id, answer)
      return answer
    },
    async ended() {
      await Promise.allSettled(pending.values())
    },
  }
}
