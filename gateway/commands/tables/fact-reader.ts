/** Batches the reads of facts for concurrent commands about one table. */
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { TableFacts } from '../../../protocol/tables/events.ts'
import type { RowsAsked } from './facts.ts'

/** Maximum number of rows in a batch: `content` if their data is read, otherwise `names`. */
const MAX_TOGETHER = { content: 32, names: 1000 } as const

interface Reading {
  readonly asked: RowsAsked
  readonly done: (facts: TableFacts | Refusal) => void
  readonly failed: (error: unknown) => void
}
const countOf = ({ identities, row_ids }: RowsAsked): number => identities.length + row_ids.length

/**
 * Reads facts about one table, with at most one read in flight. A request that arrives during a
 * read waits for a later read, so that it never gets facts that were read before it arrived. Calls
 * `over` when no request is left.
 */
export class FactReader {
  readonly #content: boolean
  readonly #ask: (asked: RowsAsked) => Promise<TableFacts | Refusal>
  readonly #over: () => void
  #waiting: Reading[] = []
  #busy = false

  constructor(
    content: boolean,
    ask: (asked: RowsAsked) => Promise<TableFacts | Refusal>,
    over: () => void,
  ) {
    this.#content = content
    this.#ask = ask
    this.#over = over
  }
  read(asked: RowsAsked): Promise<TableFacts | Refusal> {
    return new Promise((done, failed) => {
      this.#waiting.push({ asked, done, failed })
      if (!this.#busy) void this.#run()
    })
  }
  async #run(): Promise<void> {
    this.#busy = true
    while (this.#waiting.length > 0) {
      const some = this.#next()
      try {
        const facts = await this.#ask({
          identities: [...new Set(some.flatMap(({ asked }) => asked.identities))],
          row_ids: [...new Set(some.flatMap(({ asked }) => asked.row_ids))],
          content: this.#content,
        })
        const only = factsFor(facts)
        for (const { asked, done } of some) done(only(asked))
      } catch (error) {
        for (const { failed } of some) failed(error)
      }
    }
    this.#over()
  }
  #next(): Reading[] {
    const most = this.#content ? MAX_TOGETHER.content : MAX_TOGETHER.names
    let count = 0
    let rows = 0
    for (const { asked } of this.#waiting) {
      rows += countOf(asked)
      if (count > 0 && rows > most) break
      count++
    }
    return this.#waiting.splice(0, count)
  }
}
/** Returns a function that selects the facts of one command from those read for several. */
function factsFor(facts: TableFacts | Refusal): (asked: RowsAsked) => TableFacts | Refusal {
  if (isRefusal(facts) || facts.rows.length === 0) return () => facts
  const { through, rows } = facts
  const byId = new Map(rows.map((row) => [row.id, row]))
  const byIdentity = new Map(rows.map((row) => [row.identity, row]))
  return ({ identities, row_ids }) => ({
    through,
    rows: [
      ...new Set([
        ...row_ids.flatMap((id) => byId.get(id) ?? []),
        ...identities.flatMap((identity) => byIdentity.get(identity) ?? []),
      ]),
    ],
  })
}
