/**
 * An embedding model and an indexer under the control of a test: requests wait until the test
 * answers them, and timers fire only when the test advances the time.
 */
import { createHash } from 'node:crypto'
import type { EmbeddingAnswer } from '../../../../../protocol/tables/semantic.ts'
import type { Store } from '../../../../../views/store.ts'
import { VectorCache } from '../../../../../views/tables/tables/vectors/cache.ts'
import { VectorIndexer } from '../../../../../views/tables/tables/vectors/indexer.ts'

export const MODEL = 'test/model'
/** Vectors with clearly different angles. Several texts have the same vector. */
const directions = Array.from({ length: 7 }, (_, i) => [
  Math.cos((i * i + i) / 16),
  Math.sin((i * i + i) / 16),
  i % 2,
])
export function numbersOf(text: string): readonly number[] {
  const at = createHash('sha256').update(text).digest().readUInt16BE(0) % directions.length
  return directions[at] as readonly number[]
}
export const encode = (numbers: readonly number[]): string =>
  Buffer.from(new Float32Array(numbers).buffer).toString('base64')
export const vectorOf = (text: string): string => encode(numbersOf(text))
/** Returns the cosine distance of two vectors, computed by its definition. */
export function distance(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, i) => sum + value * (y[i] as number), 0)
  return 1 - dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}

type Answering = (texts: readonly string[]) => EmbeddingAnswer | Promise<EmbeddingAnswer>
export const answering: Answering = (texts) => ({ vectors: texts.map(vectorOf) })

/** An indexer of a store. Tests may replace `answer`. */
export class Indexing {
  readonly requests: (readonly string[])[] = []
  readonly alarms: Error[] = []
  readonly timers = new Map<() => void, number>()
  readonly cache: VectorCache
  readonly indexer: VectorIndexer
  answer: Answering = answering
  now = 0
  constructor(store: Store, cache = VectorCache.open(':memory:'), max_characters = 1000) {
    this.cache = cache
    this.indexer = new VectorIndexer(
      { model: MODEL, max_characters },
      {
        view: {
          read: (run) => run(store),
          change: (run) => store.db.transaction(() => run(store))(),
        },
        cache,
        embed: async (texts) => {
          this.requests.push(texts)
          return this.answer(texts)
        },
        now: () => this.now,
        elapsed: () => this.now,
        later: (ms, run) => {
          this.timers.set(run, this.now + ms)
          return () => this.timers.delete(run)
        },
        alarm: (error) => this.alarms.push(error),
      },
    )
  }
  texts(): readonly string[] {
    return this.requests.flat()
  }
  /**
   * Wakes the indexer, advances the time and fires the due timers. After each timer, the indexer
   * runs until it waits for another timer or an answer.
   */
  async pass(ms: number): Promise<void> {
    this.indexer.wake()
    const end = this.now + ms
    for (;;) {
      const [next] = [...this.timers].sort(([, a], [, b]) => a - b)
      if (!next || next[1] > end) break
      this.timers.delete(next[0])
      this.now = Math.max(this.now, next[1])
      next[0]()
      await settled()
    }
    this.now = end
  }
}
/** Resolves after pending promises and immediate callbacks have run. */
async function settled(): Promise<void> {
  for (let i = 0; i < 60; i++) await new Promise<void>((resolve) => setImmediate(resolve))
}
