/**
 * Requests embeddings from the executors, because only they have access to providers. The vectors
 * of recent queries are cached. The pages of one search are therefore ranked by the same vector,
 * and a repeated search needs no request.
 */

import { subjects } from '../../protocol/subjects.ts'
import {
  type EmbeddingAnswer,
  type EmbeddingRequest,
  isFailure,
} from '../../protocol/tables/semantic.ts'
import type { Bus } from '../host/ports.ts'
import type { EmbeddingSettings } from '../models.ts'

/**
 * Timeout in milliseconds of a request to the executors for the embeddings of rows. It exceeds
 * `TIMEOUT_MS`.
 */
const REQUEST_TIMEOUT_MS = 35_000
/** Milliseconds for which a search waits for the vector of its query. */
const QUERY_TIMEOUT_MS = 8000
/** Milliseconds after which an executor abandons a request to a provider. */
export const TIMEOUT_MS = 30_000
/** Maximum number of queries whose vectors are cached. */
const MAX_CACHED = 500

/** Requests the embeddings of the texts of rows. */
export type EmbedRows = (texts: readonly string[]) => Promise<EmbeddingAnswer>
export interface Embedder {
  /** Id of the embedding model. */
  readonly model: string
  /** Maximum number of characters of a row that are embedded. */
  readonly max_characters: number
  readonly rows: EmbedRows
  /** Requests the embedding of a query, unless its vector is cached. */
  query(text: string): Promise<EmbeddingAnswer>
}

/** Creates the client of the executors for an embedding model. */
export function createEmbedder(
  bus: Pick<Bus, 'request'>,
  { id: model, max_characters }: Pick<EmbeddingSettings, 'id' | 'max_characters'>,
): Embedder {
  const known = new Map<string, EmbeddingAnswer>()
  const ask = async (
    purpose: EmbeddingRequest['purpose'],
    texts: readonly string[],
    timeout: number,
  ): Promise<EmbeddingAnswer> => {
    const request: EmbeddingRequest = { model, purpose, texts }
    const reply = await bus.request(subjects.embed, request, timeout)
    if (typeof reply === 'object' && reply.answer) return reply.answer as EmbeddingAnswer
    return {
      failed: reply === 'no_responders' ? 'no_executor' : 'no_answer',
      message: 'No executor has answered the request for embeddings.',
    }
  }
  return {
    model,
    max_characters,
    rows: (texts) => ask('rows', texts, REQUEST_TIMEOUT_MS),
    query: async (text) => {
      const found = known.get(text)
      if (found) {
        known.delete(text)
        known.set(text, found)
        return found
      }
      const answer = await ask('query', [text], QUERY_TIMEOUT_MS)
      if (isFailure(answer)) return answer
      known.set(text, answer)
      const [oldest] = known.keys()
      if (known.size > MAX_CACHED && oldest !== undefined) known.delete(oldest)
      return answer
    },
  }
}
