/**
 * Answers requests for embeddings. The numbers of running and of waiting requests are bounded.
 * Further requests fail with `busy`. Search queries and rows have separate bounds, so rows that are
 * embedded in the background do not delay queries.
 */
import { createSemaphore } from '../../../gateway/files/semaphore.ts'
import type { Log } from '../../../gateway/ports.ts'
import {
  type EmbeddingAnswer,
  type EmbeddingRequest,
  semanticLimits,
} from '../../../protocol/tables/semantic.ts'
import { ExecutorFault } from '../faults.ts'

/**
 * Embeds texts. Returns one vector for each text, in the same order.
 * @throws ExecutorFault when the provider fails.
 */
export type EmbedTexts = (
  texts: readonly string[],
  signal: AbortSignal,
) => Promise<readonly (readonly number[])[]>

/** Maximum numbers of requests in progress and of waiting requests, for each purpose. */
const SLOTS = { query: { running: 4, waiting: 64 }, rows: { running: 4, waiting: 16 } } as const

interface Service {
  /** Id of the configured model. */
  readonly model: string
  readonly embed: EmbedTexts
  readonly log: Log
}
/** Answers requests for embeddings. `stop` aborts running requests and refuses later requests. */
interface EmbeddingService {
  answer(request: EmbeddingRequest): Promise<EmbeddingAnswer>
  stop(): void
}

export function createEmbeddingService({ model, embed, log }: Service): EmbeddingService {
  const abort = new AbortController()
  const slots = { query: createSlots(SLOTS.query), rows: createSlots(SLOTS.rows) }
  return {
    answer: async (request) => {
      if (abort.signal.aborted) return { failed: 'stopped', message: 'The executor is stopping.' }
      if (request.model !== model)
        return {
          failed: 'model_unavailable',
          message: `The executor has the embedding model ${model}, not ${request.model}.`,
        }
      if (request.texts.length > semanticLimits.batch)
        return { failed: 'provider_refused', refused: true, message: 'There are too many texts.' }
      const slot = await slots[request.purpose]()
      if (!slot) return { failed: 'busy', message: 'Too many requests wait for embeddings.' }
      try {
        return { vectors: encoded(await embed(request.texts, abort.signal), request.texts.length) }
      } catch (error) {
        if (!(error instanceof ExecutorFault)) throw error
        const { is, message, retry_after } = error
        log.warn({ event: 'embedding_failed', fault: is, reason: message }, 'embedding failed')
        return {
          failed: is,
          message,
          ...(is === 'provider_refused' && { refused: true }),
          ...(retry_after > 0 && { retry_after }),
        }
      } finally {
        slot()
      }
    },
    stop: () => abort.abort(),
  }
}

/**
 * Returns a function that acquires a slot. Slots are granted in the order of the calls. The
 * returned function resolves with a function that releases the slot, or with undefined if too many
 * calls are waiting already.
 */
function createSlots({ running, waiting }: { readonly running: number; readonly waiting: number }) {
  const turns = createSemaphore(running)
  let taken = 0
  return async (): Promise<(() => void) | undefined> => {
    if (taken >= running + waiting) return undefined
    taken++
    const release = await turns.acquire(1)
    return () => {
      taken--
      release()
    }
  }
}

/**
 * Normalizes vectors to length 1, and encodes them in base64. Zero vectors are not normalized.
 * @throws ExecutorFault when the provider did not return one vector for each text, all with the
 *   same number of dimensions.
 */
function encoded(vectors: readonly (readonly number[])[], count: number): string[] {
  const dimensions = vectors[0]?.length ?? 0
  const valid = (vector: readonly number[]) =>
    vector.length === dimensions && vector.every((value) => Number.isFinite(value))
  if (vectors.length !== count || dimensions === 0 || !vectors.every(valid))
    throw new ExecutorFault('invalid_response', 'The provider returned invalid embeddings.')
  return vectors.map((vector) => {
    const length = Math.hypot(...vector) || 1
    const bytes = Buffer.alloc(4 * dimensions)
    for (const [index, value] of vector.entries()) bytes.writeFloatLE(value / length, 4 * index)
    return bytes.toString('base64')
  })
}
