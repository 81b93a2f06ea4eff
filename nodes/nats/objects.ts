/**
 * Writes and reads files of the object store as streams. The format is that of NATS object stores
 * (nats-architecture-and-design, ADR-20), so the client library can read, list and delete the
 * files. The library itself stores one chunk at a time, buffers without limit while it reads, and
 * cannot read a range.
 *
 * Invariants:
 * O1. A file is visible only after all of its chunks are stored. A write that fails removes the
 *     chunks that it has stored. If that fails too, the sweep of the node removes them
 *     (`../roles/sweep.ts`).
 * O2. A write has at most `WINDOW` chunks in flight, and a read fetches at most `AHEAD_BYTES` at a
 *     time. Memory therefore does not depend on the size of the file. All writes of a process share
 *     `MAX_WRITING_BYTES`, and all reads `MAX_READING_BYTES`, which bounds the bytes between the
 *     process and the servers. These bytes never wait for a client, so a slow client delays no
 *     other transfer.
 * O3. No reader receives all bytes of a damaged file. Every read checks the size of each chunk. A
 *     complete read withholds the last chunk until the digest of the file matches.
 * O4. All chunks are in buffers of one pool. Each transfer uses one buffer beyond those in flight:
 *     the chunk that a write collects, or that a client receives.
 */

import { createHash, type Hash } from 'node:crypto'
import type { ObjectInfo, ObjectStore } from '@nats-io/obj'
import { headers } from '@nats-io/transport-node'
import { type BufferPool, createBufferPool } from '../../gateway/files/buffer-pool.ts'
import { createSemaphore, type Semaphore } from '../../gateway/files/semaphore.ts'
import type { FileDigest } from '../../gateway/ports.ts'
import { type Chunk, type Chunks, openChunks } from './chunks.ts'
import type { Nats } from './server/connect.ts'

/** Size in bytes of all chunks except the last. It must be below the servers' `max_payload`. */
const CHUNK_BYTES = 262_144
/** Maximum number of chunks of a write that are in flight. */
const WINDOW = 4
/** Maximum number of bytes of one fetch. */
const AHEAD_BYTES = 4 * CHUNK_BYTES
/**
 * Maximum total number of bytes that the writes of a process have in flight. The servers drop a
 * connection with more than 64 MB of pending data.
 */
const MAX_WRITING_BYTES = 4 * 2 ** 20
/** Maximum total number of bytes that the reads of a process have in flight. */
const MAX_READING_BYTES = 4 * 2 ** 20
/** Maximum number of bytes of buffers that a process keeps while no transfer uses them. */
const MAX_BUFFERED_BYTES = 8 * 2 ** 20
/** Maximum number of consecutive failed fetches that a read tolerates. */
const MAX_FAILURES = 3
/**
 * The sequence of every `STRIDE`-th chunk is stored with the file, so that a read of a range can
 * begin shortly before the range.
 */
const STRIDE = 16
/** Milliseconds to wait for the acknowledgement of a chunk. */
const TIMEOUT_MS = 10_000
/** Milliseconds without a chunk after which a reader checks whether the file still exists. */
const SILENCE_MS = 3000
const DIGEST = 'SHA-256='

/** The state that the transfers of a process share: limits on the bytes in flight, and buffers. */
export interface Transferring {
  readonly pool: BufferPool
  readonly writing: Semaphore
  readonly reading: Semaphore
  /** Number of reads in progress. */
  readers: number
}
export const noTransfers = (): Transferring => ({
  pool: createBufferPool(CHUNK_BYTES, MAX_BUFFERED_BYTES),
  writing: createSemaphore(MAX_WRITING_BYTES),
  reading: createSemaphore(MAX_READING_BYTES),
  readers: 0,
})

/** Returns the subject of a file's metadata. */
export const metaSubject = (bucket: string, name: string): string =>
  `$O.${bucket}.M.${Buffer.from(name).toString('base64').replaceAll('+', '-').replaceAll('/', '_')}`
/** Returns the subject of the chunks of a file. @param id `nuid` of the file's metadata. */
export const chunkSubject = (bucket: string, id: string): string => `$O.${bucket}.C.${id}`

/**
 * Whether the digest of a file's bytes is the one in its metadata. ADR-20 does not specify whether
 * the digest is padded.
 */
export const hasDigest = ({ digest }: ObjectInfo, hash: Hash): boolean =>
  digest.startsWith(DIGEST + hash.digest('base64url'))

/**
 * Regroups bytes into chunks of `CHUNK_BYTES`. The last chunk may be shorter. Each chunk is in the
 * first `length` bytes of a pooled buffer, which the caller must return to the pool.
 */
async function* regrouped(
  source: AsyncIterable<Uint8Array>,
  pool: BufferPool,
): AsyncGenerator<{ readonly buffer: Buffer; readonly length: number }, void> {
  let buffer: Buffer | undefined
  let length = 0
  try {
    for await (const bytes of source)
      for (let at = 0; at < bytes.length; ) {
        buffer ??= pool.take()
        const part = bytes.subarray(at, at + CHUNK_BYTES - length)
        buffer.set(part, length)
        length += part.length
        at += part.length
        if (length < CHUNK_BYTES) continue
        const whole = { buffer, length }
        buffer = undefined
        length = 0
        yield whole
      }
    if (!buffer) return
    const last = { buffer, length }
    buffer = undefined
    yield last
  } finally {
    if (buffer) pool.give(buffer)
  }
}

/** A file to be written. `id` is a new id for its chunks. */
interface NewObject {
  readonly bucket: string
  readonly name: string
  readonly id: string
}
/**
 * Stores a file under a new name.
 * @throws the error of `source`, or an error when the servers do not acknowledge a chunk.
 */
export async function writeObject(
  nats: Nats,
  { bucket, name, id }: NewObject,
  source: AsyncIterable<Uint8Array>,
  { writing, pool }: Transferring,
): Promise<FileDigest> {
  const hash = createHash('sha256')
  const sequences: number[] = []
  const flying = new Set<Promise<void>>()
  let failed: { readonly error: unknown } | undefined
  let [size, chunks] = [0, 0]
  const send = (buffer: Buffer, length: number, release: () => void) => {
    const index = chunks++
    const data = buffer.subarray(0, length)
    const sent = nats.publish(chunkSubject(bucket, id), data, undefined, TIMEOUT_MS).then(
      (sequence) => {
        if (index % STRIDE === 0) sequences[index / STRIDE] = sequence
        pool.give(buffer)
      },
      (error: unknown) => {
        failed ??= { error }
        // The buffer is not reused, because the client library may still refer to it and send its
        // content later.
        pool.drop()
      },
    )
    flying.add(sent)
    void sent.finally(() => {
      flying.delete(sent)
      release()
    })
  }
  try {
    for await (const { buffer, length } of regrouped(source, pool)) {
      hash.update(buffer.subarray(0, length))
      size += length
      send(buffer, length, await writing.acquire(length))
      if (flying.size >= WINDOW) await Promise.race(flying)
      if (failed) break
    }
    await Promise.all(flying)
    if (failed) throw failed.error
    const digest = hash.digest()
    const info = {
      bucket,
      nuid: id,
      name,
      description: '',
      size,
      chunks,
      options: { max_chunk_size: CHUNK_BYTES },
      metadata: { sequences: sequences.join() },
      mtime: new Date().toISOString(),
      digest: `${DIGEST}${digest.toString('base64').replaceAll('+', '-').replaceAll('/', '_')}`,
      deleted: false,
    }
    const rollup = headers()
    rollup.set('Nats-Rollup', 'sub')
    await nats.publish(
      metaSubject(bucket, name),
      Buffer.from(JSON.stringify(info)),
      rollup,
      TIMEOUT_MS,
    )
    return { size_bytes: size, sha256: digest.toString('hex') }
  } catch (error) {
    // The removal waits for chunks in flight, because chunks that arrive later would remain stored.
    await Promise.all(flying)
    const remove = (filter: string) => nats.manager.streams.purge(`OBJ_${bucket}`, { filter })
    await remove(metaSubject(bucket, name)).catch(() => {})
    await remove(chunkSubject(bucket, id)).catch(() => {})
    throw error
  }
}

/** A stored file, in the object store that is named `bucket`. */
interface StoredObject {
  readonly store: ObjectStore
  readonly bucket: string
  readonly info: ObjectInfo
}
/**
 * Reads the bytes from `start` (inclusive) to `end` (exclusive). A chunk is valid until the next
 * one is requested.
 * @throws Error when the servers do not answer, or the file is damaged or deleted during the read.
 */
export async function* readObject(
  nats: Nats,
  { store, bucket, info }: StoredObject,
  { start, end }: { readonly start: number; readonly end: number },
  shared: Transferring,
): AsyncGenerator<Uint8Array, void> {
  if (start >= end) return
  const size = info.options?.max_chunk_size ?? CHUNK_BYTES
  const sequences = (info.metadata?.['sequences'] ?? '').split(',').map(Number)
  const stride = Math.floor(Math.floor(start / size) / STRIDE)
  const from = sequences[stride]
  const hash = start === 0 && end === info.size ? createHash('sha256') : undefined
  let index = from === undefined ? 0 : stride * STRIDE
  const { pool } = shared
  const open = (sequence: number) =>
    openChunks(nats, `OBJ_${bucket}`, chunkSubject(bucket, info.nuid), sequence, pool)
  /** Fetches the next chunks. Each fetch gets fewer chunks while there are many readers. */
  const fetch = async (): Promise<Chunk[]> => {
    const share = Math.min(AHEAD_BYTES, MAX_READING_BYTES / shared.readers)
    const left = Math.ceil(end / size) - index
    const count = Math.max(1, Math.min(left, Math.floor(share / size)))
    const received = await shared.reading.acquire(count * size)
    try {
      chunks ??= await open(next)
      return await chunks.fetch(count, SILENCE_MS)
    } finally {
      received()
    }
  }
  let next = from ?? 1
  let chunks: Chunks | undefined
  let waiting: Chunk[] = []
  shared.readers++
  try {
    for (let errors = 0; ; ) {
      try {
        waiting = await fetch()
      } catch (error) {
        if (++errors > MAX_FAILURES) throw error
        chunks?.close()
        chunks = undefined
        continue
      }
      errors = 0
      if (waiting.length === 0) {
        const now = await store.info(info.name)
        if (!now || now.deleted || now.nuid !== info.nuid)
          throw new Error(`${info.name} was deleted while it was read`)
        // The consumer may be lost, so the next fetch opens a new one.
        chunks?.close()
        chunks = undefined
      }
      for (let chunk = waiting.shift(); chunk; chunk = waiting.shift())
        try {
          const { data } = chunk
          next = chunk.seq + 1
          const offset = index++ * size
          if (data.length !== Math.min(size, info.size - offset))
            throw new Error(`chunk ${index} of ${info.name} has ${data.length} bytes`)
          hash?.update(data)
          const last = offset + data.length >= end
          if (last && hash && !hasDigest(info, hash))
            throw new Error(`${info.name} does not match its digest`)
          if (offset + data.length > start)
            yield data.subarray(Math.max(0, start - offset), end - offset)
          if (last) return
        } finally {
          chunk.release()
        }
    }
  } finally {
    shared.readers--
    for (const { release } of waiting) release()
    chunks?.close()
  }
}
