/**
 * Fetches the chunks of one file of the object store into buffers of a pool.
 *
 * Invariants:
 * K1. A chunk is copied as soon as it arrives, so that the client library's buffer, which is larger
 *     than the message, becomes garbage immediately.
 * K2. Chunks are returned in order and without gaps. Otherwise the fetch fails, and the caller
 *     opens the chunks again at the next sequence.
 */
import type { JsMsg } from '@nats-io/jetstream'
import type { BufferPool } from '../../gateway/files/buffer-pool.ts'
import { addReader } from './journal/pull.ts'
import type { Nats } from './server/connect.ts'

/** The bytes of one chunk. They are valid until `release`, which must be called once. */
export interface Chunk {
  /** Sequence in the stream. */
  readonly seq: number
  readonly data: Buffer
  release(): void
}
export interface Chunks {
  /**
   * Returns the next chunks: as many as requested, or fewer if not all of them arrive within `idle`
   * milliseconds.
   * @throws Error when a chunk was lost, or the servers do not answer.
   */
  fetch(count: number, idle: number): Promise<Chunk[]>
  close(): void
}

/**
 * Prepares to fetch the chunks with the given subject, beginning with the sequence `from`.
 * @throws Error when the servers do not answer.
 */
export async function openChunks(
  nats: Nats,
  stream: string,
  subject: string,
  from: number,
  pool: BufferPool,
): Promise<Chunks> {
  const name = await addReader(nats, stream, from, subject)
  const close = () => void nats.manager.consumers.delete(stream, name).catch(() => {})
  const consumer = await nats.streams.consumers.get(stream, name).catch((error: unknown) => {
    close()
    throw error
  })
  let delivered = 0
  return {
    fetch: async (count, idle) => {
      const chunks: Chunk[] = []
      try {
        const messages = await consumer.fetch({ max_messages: count, expires: idle })
        for await (const message of messages) {
          if (message.info.deliverySequence !== ++delivered)
            throw new Error(`a delivery of ${stream} was lost after message ${message.seq}`)
          chunks.push(copyOf(message, pool))
        }
        return chunks
      } catch (error) {
        for (const { release } of chunks) release()
        throw error
      }
    },
    close,
  }
}

function copyOf({ data, seq }: JsMsg, pool: BufferPool): Chunk {
  // Only files that another program wrote have chunks that are larger than the buffers of the pool.
  if (data.length > pool.size) return { seq, data: Buffer.from(data), release: () => {} }
  const buffer = pool.take()
  buffer.set(data)
  return { seq, data: buffer.subarray(0, data.length), release: () => pool.give(buffer) }
}
