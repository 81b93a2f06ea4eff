/**
 * The facts about rows that travel with a command. Rows are stored in views, so the gateway reads
 * what a command needs to know about the rows with its identities and ids. The table's actor decides
 * with these facts and its own window of recent changes, or asks for later facts.
 */
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { TableFacts } from '../../../protocol/tables/events.ts'
import { type Call, type Edge, scopeId } from '../../call.ts'
import type { World } from '../../ports.ts'

/** Maximum number of tables whose identity columns a gateway remembers. */
const REMEMBERED = 10_000
/**
 * The identity columns of tables, by id. They never change, and a command for a table that has been
 * deleted is refused by the table's actor.
 */
const identityColumns = new WeakMap<World, Map<string, string>>()

/**
 * The name of the identity column of the table that a call names. Refused with `not_found` when
 * there is no such table in the project.
 */
export async function identityColumn(edge: Edge, call: Call): Promise<string | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const { id = '' } = call.slots
  const known = identityColumns.get(world) ?? new Map<string, string>()
  identityColumns.set(world, known)
  const key = `${project}/${id}`
  const remembered = known.get(key)
  if (remembered !== undefined) return remembered
  const table = await world.ask({ project, kind: 'table', id }, 'definition', {})
  if (table === null) return refuse('not_found')
  if (isRefusal(table)) return table
  const { identity_column } = table.schema
  known.set(key, identity_column)
  for (const oldest of known.keys()) {
    if (known.size <= REMEMBERED) break
    known.delete(oldest)
  }
  return identity_column
}

/** Which rows a command is about, and whether their data is needed. */
export interface RowsAsked {
  readonly identities: readonly string[]
  readonly row_ids: readonly string[]
  readonly content: boolean
}

/**
 * Reads facts from the view. Reads that wait while another read of the same table is in flight are
 * sent together, because a message to a view costs more than the lookup of a row.
 * @param fresh whether the view first applies everything that was committed before. Otherwise it
 *   answers at once, because the table's actor usually knows what the view has not applied yet.
 */
export function readFacts(
  edge: Edge,
  call: Call,
  asked: RowsAsked,
  fresh: boolean,
): Promise<TableFacts | Refusal> {
  const { world } = edge
  const project = scopeId(edge, call)
  const { id = '' } = call.slots
  const known = readers.get(world) ?? new Map<string, FactReader>()
  readers.set(world, known)
  const key = `${project}/${id} ${asked.content} ${fresh}`
  const reader =
    known.get(key) ??
    new FactReader(
      asked.content,
      (all) => world.view(project, 'table_facts', { id, ...all }, fresh ? undefined : 0),
      () => known.delete(key),
    )
  known.set(key, reader)
  return reader.read(asked)
}

/** The reads in progress, by table, content and freshness. */
const readers = new WeakMap<World, Map<string, FactReader>>()
/** Maximum number of rows of one read for several commands, with and without their data. */
const MAX_TOGETHER = { content: 32, names: 1000 } as const

interface Reading {
  readonly asked: RowsAsked
  readonly done: (facts: TableFacts | Refusal) => void
  readonly failed: (error: unknown) => void
}
const countOf = ({ identities, row_ids }: RowsAsked): number => identities.length + row_ids.length

/**
 * The reads of one table. At most one is in flight, and those that arrive meanwhile form the next
 * one, so each begins after its command has arrived. A reader without reads has ended.
 */
class FactReader {
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
/** Returns the function that selects the facts for one of several commands. */
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
