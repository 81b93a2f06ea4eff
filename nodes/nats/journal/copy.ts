/**
 * Exports and restores whole streams with the server's own snapshots. Sequences, subjects, headers
 * and times stay unchanged. A snapshot is a prefix of its stream and contains at least everything
 * that was acknowledged before the snapshot was requested.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { StreamConfig, StreamInfo, StreamState } from '@nats-io/jetstream'
import { Objm } from '@nats-io/obj'
import { names } from '../../../protocol/subjects.ts'
import { StartFault } from '../../process/fault.ts'
import type { Nats } from '../server/connect.ts'

/** Configuration and state of a stream, as a backup stores them. */
export interface Copied {
  readonly config: Readonly<Record<string, unknown>>
  readonly state: {
    readonly messages: number
    readonly bytes: number
    readonly first_seq: number
    readonly last_seq: number
  }
}
interface ApiAnswer {
  readonly error?: { readonly code: number; readonly description: string }
}

/** Size in bytes of the chunks in which a snapshot is transferred. */
const CHUNK_BYTES = 256 * 1024
/** Maximum number of chunks in flight during a restore. */
const MAX_IN_FLIGHT = 16
/** Milliseconds within which the server must begin a snapshot or a restore. */
const BEGIN_TIMEOUT_MS = 60_000
/** Milliseconds within which the next chunk, or its acknowledgement, must arrive. */
const CHUNK_TIMEOUT_MS = 60_000
/** Milliseconds within which a restored stream must become ready. */
const READY_TIMEOUT_MS = 600_000

async function ask<T>(
  { connection, space }: Nats,
  operation: string,
  body: unknown,
  timeout: number,
): Promise<T> {
  const answer = JSON.parse(
    (
      await connection.request(`${space.api}.${operation}`, JSON.stringify(body), { timeout })
    ).string(),
  ) as T & ApiAnswer
  if (answer.error) throw new Error(`${answer.error.description} (${answer.error.code})`)
  return answer
}

/**
 * Returns the names of the installation's streams on these servers, sorted and without the prefix.
 */
export async function baseStreams({ manager, space }: Nats): Promise<string[]> {
  const found: string[] = []
  for await (const stream of manager.streams.names()) {
    const name = space.plainStream(stream)
    if (
      name !== undefined &&
      (/^(JOURNAL_\d+|KV_STATE_\d+)$/.test(name) ||
        [names.config, names.cluster, names.definitions].some(
          (bucket) => name === `KV_${bucket}`,
        ) ||
        name === `OBJ_${names.blobs}` ||
        name === names.logs)
    )
      found.push(name)
  }
  return found.sort()
}
export const deleteStream = async ({ manager, space }: Nats, name: string): Promise<void> =>
  void (await manager.streams.delete(space.stream(name)))

/**
 * Requests the snapshot of a stream. Returns the stream's configuration, its state at the start of
 * the snapshot, and the bytes of the snapshot. The bytes can be read once, and may include later
 * messages. The server checks the integrity of the data that it reads.
 * @throws Error when the stream is absent or damaged. Reading the bytes throws when the server
 *   aborts or stops sending.
 */
export async function snapshotStream(
  nats: Nats,
  stream: string,
): Promise<Copied & { readonly chunks: AsyncIterable<Uint8Array> }> {
  const { connection, space } = nats
  const inbox = space.newInbox()
  const subscription = connection.subscribe(inbox)
  let asked: Copied
  try {
    asked = await ask<Copied>(
      nats,
      `STREAM.SNAPSHOT.${space.stream(stream)}`,
      { deliver_subject: inbox, no_consumers: true, chunk_size: CHUNK_BYTES, jsck: true },
      BEGIN_TIMEOUT_MS,
    )
  } catch (error) {
    subscription.unsubscribe()
    throw error
  }
  async function* read(): AsyncGenerator<Uint8Array, void> {
    let silent = false
    const bite = () => {
      silent = true
      subscription.unsubscribe()
    }
    let timer = setTimeout(bite, CHUNK_TIMEOUT_MS)
    try {
      for await (const message of subscription) {
        clearTimeout(timer)
        if (message.data.length === 0) {
          const { code = 204, description = '' } = message.headers ?? {}
          if (code >= 400) throw new Error(`the server aborted the copy: ${code} ${description}`)
          return
        }
        message.respond()
        yield message.data
        timer = setTimeout(bite, CHUNK_TIMEOUT_MS)
      }
      throw new Error(
        silent
          ? `the server sent nothing for ${CHUNK_TIMEOUT_MS / 1000} s`
          : 'the connection ended',
      )
    } finally {
      clearTimeout(timer)
      subscription.unsubscribe()
    }
  }
  return { config: asked.config, state: asked.state, chunks: read() }
}

/**
 * Creates a stream from its snapshot, with the given number of replicas. Resolves when every
 * replica has the whole stream.
 * @param sent receives the size in bytes of each chunk that the server has accepted.
 * @throws StartFault when some replicas do not have the whole stream in time.
 * @throws Error when the server rejects the snapshot or does not answer.
 */
export async function restoreStream(
  nats: Nats,
  stream: string,
  copied: Copied,
  chunks: AsyncIterable<Uint8Array>,
  replicas: number,
  sent: (bytes: number) => void,
): Promise<StreamState> {
  // Placement and metadata describe the old servers and do not apply to the new ones.
  const { placement: _, metadata: __, ...config } = copied.config
  const wanted = { ...config, num_replicas: replicas } as unknown as StreamConfig
  const { deliver_subject: subject } = await ask<{ deliver_subject: string }>(
    nats,
    `STREAM.RESTORE.${nats.space.stream(stream)}`,
    { config: wanted, state: copied.state },
    BEGIN_TIMEOUT_MS,
  )
  const flying: Promise<void>[] = []
  const send = async (chunk: Uint8Array): Promise<void> => {
    const answer = await nats.connection.request(subject, chunk, { timeout: CHUNK_TIMEOUT_MS })
    const refused =
      answer.data.length > 0 ? (JSON.parse(answer.string()) as ApiAnswer).error : undefined
    if (refused) throw new Error(refused.description)
    sent(chunk.length)
  }
  for await (const chunk of chunks) {
    const flight = send(chunk)
    // The promise is awaited later. Until then a failure must not count as an unhandled rejection.
    flight.catch(() => {})
    flying.push(flight)
    if (flying.length >= MAX_IN_FLIGHT) await flying.shift()
  }
  await Promise.all(flying)
  const done = JSON.parse(
    (await nats.connection.request(subject, '', { timeout: READY_TIMEOUT_MS })).string(),
  ) as ApiAnswer
  if (done.error) throw new Error(`${done.error.description} (${done.error.code})`)
  return inStep(nats, stream, replicas)
}

/**
 * Waits until all replicas have the whole stream, and returns the stream's state.
 * @throws StartFault after `READY_TIMEOUT_MS`.
 */
async function inStep(
  { manager, space }: Nats,
  stream: string,
  replicas: number,
): Promise<StreamState> {
  for (const end = performance.now() + READY_TIMEOUT_MS; ; await sleep(100)) {
    const info: StreamInfo | undefined = await manager.streams
      .info(space.stream(stream))
      .catch(() => undefined)
    const followers = info?.cluster?.replicas ?? []
    if (
      info &&
      (replicas === 1 ||
        (followers.length === replicas - 1 &&
          followers.every(({ current, lag }) => current && !lag)))
    )
      return info.state
    if (performance.now() > end)
      throw new StartFault(
        `${stream} was restored, but not all of its ${replicas} replicas have it. ` +
          `Check the NATS servers, then see \`nats stream info ${stream}\`.`,
      )
  }
}

/**
 * Deletes the large snapshots of actors from the object store. Only the snapshot buckets refer to
 * them, and a backup does not contain these buckets.
 */
export async function dropSnapshotObjects(nats: Nats): Promise<void> {
  const store = await new Objm(nats.streams).open(nats.space.bucket(names.blobs))
  for (const { name } of await store.list())
    if (name.startsWith('snapshot/')) await store.delete(name)
}
