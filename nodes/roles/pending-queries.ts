/**
 * Answers the queries of a view that arrive over the bus. A gateway repeats a request that is not
 * answered in time. The repeated request gets the answer to the first request, so a slow query is
 * executed only once.
 */
import { subjects } from '../../protocol/subjects.ts'
import type { Bus } from '../host/ports.ts'
import type { Question, ServedView } from './view.ts'

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

/**
 * Starts answering the queries of a partition's view. The returned function stops this and resolves
 * when all queries in progress have ended. Each query has its own time limit.
 * @param node id of the node, which also answers the queries that are addressed to it.
 * @param within `process` if only queries of this process are answered.
 */
export function serveQueries(
  bus: Pick<Bus, 'subscribe'>,
  partition: number,
  view: Pick<ServedView, 'ask'>,
  node: string,
  within?: 'process',
): () => Promise<void> {
  const queries = createPendingQueries((question) => view.ask(question))
  const stops = [subjects.view(partition), subjects.viewOf(partition, node)].map((subject) =>
    bus.subscribe(
      subject,
      (message) => queries.ask(message as Question),
      subjects.viewGroup,
      within,
    ),
  )
  return async () => {
    for (const stop of stops) stop()
    await queries.ended()
  }
}
