/** Queries to the views of partitions. A query is repeated until it is answered or time has passed. */
import { backoffMs, sleep } from '../gateway/timing.ts'
import { refuse } from '../protocol/errors.ts'
import { extended } from '../protocol/rules/extended.ts'
import { subjects } from '../protocol/subjects.ts'
import type { OwnInterest } from './host/cluster/interest.ts'
import type { Bus, Clock } from './host/ports.ts'
import type { Question } from './roles/view.ts'

/** Milliseconds after which an unanswered query is repeated for the first time. */
const RETRY_AFTER_MS = 2000
/**
 * Initial and maximum backoff before a query that no view answered is repeated, in milliseconds.
 */
const RETRY = { first: 10, last: 250 } as const

interface Parts {
  readonly node: string
  readonly bus: Pick<Bus, 'request'>
  readonly clock: Clock
  /** Time limit of a query in milliseconds. */
  readonly deadline: number
  readonly interest?: Pick<OwnInterest, 'settled'>
}

export class ViewRequests {
  readonly #parts: Parts
  /**
   * Prefix of the ids of queries. The start time distinguishes the queries of this process from
   * those of an earlier process.
   */
  readonly #prefix: string
  #count = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#prefix = `${parts.node}/${parts.clock.now()}`
  }
  /** Sends a query to the view of a partition. Refused with `service_unavailable` at the deadline. */
  async send(partition: number, query: Omit<Question, 'id'>): Promise<unknown> {
    const { bus, clock, deadline, interest } = this.#parts
    const message: Question = extended(query, { id: `${this.#prefix}/${this.#count++}` })
    const until = clock.elapsed() + deadline
    const reports = interest?.settled()
    if (reports) await reports
    // After a timeout, the next attempt may take longer, because some queries read many rows.
    let timeout = RETRY_AFTER_MS
    for (let attempt = 0; ; attempt++) {
      const left = until - clock.elapsed()
      if (left <= 0) return refuse('service_unavailable', { retry_after: 1 })
      const answer = await bus.request(subjects.view(partition), message, Math.min(left, timeout))
      if (typeof answer === 'object') return answer.answer
      if (answer === 'timeout') timeout *= 2
      await sleep(clock, backoffMs(attempt, RETRY))
    }
  }
}
