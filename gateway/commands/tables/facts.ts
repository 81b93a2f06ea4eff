/**
 * Reads the facts about rows that commands contain. Rows are stored in views, so the gateway looks
 * up the rows with the identities and ids of a command. The table's actor decides with these facts
 * and its own window of recent changes, or requests later facts.
 */
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { TableFacts } from '../../../protocol/tables/events.ts'
import type { World } from '../../ports.ts'
import { FactReader } from './fact-reader.ts'

/** A table of a project, and the `world` through which it is read. The table need not exist. */
export interface TableAt {
  readonly world: Pick<World, 'ask' | 'view' | 'monotonic' | 'settings'>
  readonly project: string
  readonly id: string
  /**
   * Whether the request has an idempotency key. The request may then be a repeat that the actor of
   * a deleted table answers.
   */
  readonly keyed?: boolean
}

/** Maximum number of tables whose identity columns a gateway remembers. */
const MAX_CACHED = 10_000
/**
 * The identity columns of tables, by project and id. A remembered column is never wrong, because
 * the identity column of a table never changes, and the actor of a deleted table refuses every
 * command.
 */
const identityColumns = new WeakMap<TableAt['world'], Map<string, string>>()

/**
 * Returns the name of the identity column of a table, or `not_found` if the project has no such
 * table.
 */
export async function identityColumn({ world, project, id }: TableAt): Promise<string | Refusal> {
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
    if (known.size <= MAX_CACHED) break
    known.delete(oldest)
  }
  return identity_column
}

/** The rows that a command concerns, and whether their data is needed. */
export interface RowsAsked {
  readonly identities: readonly string[]
  readonly row_ids: readonly string[]
  readonly content: boolean
}

/**
 * Reads facts from the view. Concurrent reads of one table are batched, because a message to a view
 * costs more than the lookup of a row.
 * @param fresh whether the view first applies everything that was committed before. If not, the
 * view answers immediately. The table's actor usually knows the changes that the view then lacks.
 */
export function readFacts(
  { world, project, id }: TableAt,
  asked: RowsAsked,
  fresh: boolean,
): Promise<TableFacts | Refusal> {
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
const readers = new WeakMap<TableAt['world'], Map<string, FactReader>>()
