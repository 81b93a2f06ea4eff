/**
 * Queries to the views of partitions. A query is repeated until it is answered or time has passed.
 *
 * Invariants:
 * Q1. Any view of the partition may receive a query. After one that was not answered in time,
 *     queries are addressed to live nodes for a while, because NATS also delivers to a node that
 *     stands still, as long as it is connected.
 * Q2. A repeat after a timeout goes to another node, if there is one.
 */
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
/** Milliseconds for which queries are addressed to live nodes after a timeout (Q1). */
const ADDRESSED_MS = 10_000

interface Parts {
  readonly node: string
  readonly bus: Pick<Bus, 'request'>
  readonly clock: Clock
  /** Time limit of a query in milliseconds. */
  readonly deadline: number
  /** Returns the ids of the live nodes with views. */
  nodes(): readonly string[]
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
  /** The time until which queries are addressed to nodes (`Clock.elapsed`). */
  #addressedUntil = Number.NEGATIVE_INFINITY
  /** The number of choices of a node, which take turns. */
  #choices = 0

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
    let node = clock.elapsed() < this.#addressedUntil ? this.#choose() : undefined
    for (let attempt = 0; ; attempt++) {
      const left = until - clock.elapsed()
      if (left <= 0) return refuse('service_unavailable', { retry_after: 1 })
      const to = node === undefined ? subjects.view(partition) : subjects.viewOf(partition, node)
      const answer = await bus.request(to, message, Math.min(left, timeout))
      if (typeof answer === 'object') return answer.answer
      if (answer === 'timeout') {
        timeout *= 2
        this.#addressedUntil = clock.elapsed() + ADDRESSED_MS
        node = this.#choose(node)
      } else node = undefined
      await sleep(clock, backoffMs(attempt, RETRY))
    }
  }

  /**
   * Chooses a live node for a query. Returns undefined when there is no live node.
   * @param except the node that did not answer, which is chosen only if it is the only one.
   */
  #choose(except?: string): string | undefined {
    const nodes = this.#parts.nodes()
    const others = nodes.filter((node) => node !== except)
    const choices = others.length > 0 ? others : nodes
    return choices[this.#choices++ % choices.length]
  }
}
