/**
 * Semantic and hybrid search: requests for embeddings, the text of a row that is embedded, and the
 * pure rules for combining results. An embedding is a vector that an embedding model computes from
 * a text. The vectors of texts with a similar meaning have a small cosine distance.
 */
import type { JsonObject } from '../common.ts'
import type { Refusal } from '../errors.ts'
import { cutText } from '../rules/cut-text.ts'
import type { SearchRows, TableRow } from './schema.ts'
import { textsOf } from './search.ts'

/**
 * Limits of semantic and hybrid search. `window`: the maximum number of rows in each of the lists
 * that hybrid search combines, and in its result. `examined`: the maximum number of rows that
 * hybrid search compares because they contain a word of the query. `batch` and `characters`: the
 * maximum number of texts in a request for embeddings, and their maximum total length.
 * `unused_days`: the number of days without a search after which the vectors of a table are
 * deleted.
 */
export const semanticLimits = {
  window: 100,
  examined: 2000,
  batch: 32,
  characters: 200_000,
  unused_days: 30,
} as const

/** A request for the embeddings of some texts. `model` is the id of the embedding model. */
export interface EmbeddingRequest {
  readonly model: string
  /** Queries take precedence over rows, which are embedded in the background. */
  readonly purpose: 'query' | 'rows'
  readonly texts: readonly string[]
}
/**
 * The reason why texts could not be embedded. `refused`: the provider did not accept these texts;
 * other texts may succeed. `retry_after`: milliseconds to wait, as requested by the provider.
 */
export interface EmbeddingFailure {
  readonly failed: string
  readonly message: string
  readonly refused?: boolean
  readonly retry_after?: number
}
/**
 * The vectors of the texts, in order: 32-bit floating-point numbers, little-endian, in base64. Each
 * vector has the length 1.
 */
export type EmbeddingAnswer = { readonly vectors: readonly string[] } | EmbeddingFailure
export const isFailure = (answer: EmbeddingAnswer): answer is EmbeddingFailure => 'failed' in answer

/** The internal queries of views for semantic and hybrid search. */
export interface SemanticQueries {
  /**
   * A page of a semantic or hybrid search. The first search of a table starts the embedding of its
   * rows. Without `vector`, the query only reports whether the rows are embedded.
   */
  table_semantic: {
    input: Pick<SearchRows, 'query' | 'filter' | 'limit'> & {
      readonly id: string
      readonly mode: 'semantic' | 'hybrid'
      /** The id of the embedding model. */
      readonly model: string
      /** The vector of the query, as in `EmbeddingAnswer`. */
      readonly vector?: string
      /** The position after which the page begins. */
      readonly after?: readonly (string | number | null)[]
      /** The change to the table up to which rows must be embedded; absent: the last change. */
      readonly through?: number
      /** Whether to count the rows if some of them are not embedded yet. */
      readonly count?: boolean
    }
    reply:
      | {
          readonly items: readonly TableRow[]
          readonly position?: readonly (string | number | null)[]
        }
      | SemanticProgress
      | Refusal
  }
}
/**
 * The progress of embedding a table. `ready`: all rows that existed at the change `through` are
 * embedded. `fault`: the reason why the last attempt to embed rows failed. The counts of rows are
 * present if they were requested.
 */
export interface SemanticProgress {
  readonly ready: boolean
  readonly through: number
  readonly rows?: number
  readonly indexed_rows?: number
  readonly fault?: string
}

/**
 * Returns the text of a row for embedding: one line for each column with texts, sorted by column
 * name. Texts nested in objects and arrays are included. Other values, such as numbers and
 * booleans, are omitted, so changing them requires no new embedding.
 * @param data the visible data.
 * @param max maximum number of characters.
 */
export function embeddedText(data: JsonObject, max: number): string {
  const lines: string[] = []
  for (const name of Object.keys(data).sort()) {
    const texts = textsOf(data[name])
    if (texts.length > 0) lines.push(`${name}: ${texts.join(' ')}`)
  }
  return cutText(lines.join('\n'), max)
}

const K = 60
/**
 * Combines lists of ids, best first, by reciprocal rank fusion (Cormack, Clarke, Büttcher 2009).
 * The score of an id is the sum of 1 / (60 + rank) over the lists that contain it, with ranks from
 * 1. Returns the ids sorted by score (descending), then by id.
 */
export function fuse(...lists: readonly (readonly string[])[]): string[] {
  const scores = new Map<string, number>()
  for (const list of lists)
    for (const [index, id] of list.entries())
      scores.set(id, (scores.get(id) ?? 0) + 1 / (K + index + 1))
  return [...scores].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).map(([id]) => id)
}

/**
 * Returns the number of distinct query tokens that equal a token of the row (`exact`), and the
 * number of query tokens that are only a prefix of a token (`begun`). Returns undefined if both
 * numbers are 0.
 */
export function anyHits(
  query: readonly string[],
  row: readonly string[],
): { readonly exact: number; readonly begun: number } | undefined {
  const words = new Set(row)
  let [exact, begun] = [0, 0]
  for (const token of new Set(query)) {
    if (words.has(token)) exact++
    else if (row.some((word) => word.startsWith(token))) begun++
  }
  return exact + begun > 0 ? { exact, begun } : undefined
}
