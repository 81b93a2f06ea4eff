/**
 * Files in a bucket of an S3-compatible store. Each file is an object whose key is the prefix
 * followed by the name of the file. Bytes are streamed in both directions.
 *
 * Invariants:
 * S1. A reader gets a complete file or nothing: S3 shows an object only when its upload is complete
 *     (Amazon S3 User Guide, "data consistency model").
 * S2. A failed write leaves neither an object nor parts of one, provided that the store answers. The
 *     bucket's rule `AbortIncompleteMultipartUpload` deletes the parts of an upload whose process
 *     died, or whose deletion failed.
 * S3. A read yields exactly the requested bytes or fails, even if the store ignores the range.
 * S4. If the store does not answer, every operation fails after a limited time (`sending.ts`), and
 *     so does every upload that waits for buffers. An upload then does not wait for the deletion of
 *     its parts.
 */
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
} from '@aws-sdk/client-s3'
import type { Files } from '../../gateway/ports.ts'
import type { FileList } from '../storage/file-list.ts'
import { type Body, createSend, responseBytes, TIMEOUTS_MS, type Timeouts } from './sending.ts'
import { createUploads } from './upload.ts'

/** Where files are stored. Credentials come from the environment of the process. */
export interface Bucket {
  readonly bucket: string
  /** Prefix of all keys; empty for none. */
  readonly prefix: string
  /** Address of the store. The default is that of Amazon S3. */
  readonly endpoint?: string
  readonly region: string
}
/** Maximum number of keys that S3 lists in one response. */
const MAX_KEYS = 1000
/**
 * Maximum number of connections to the store. A download occupies a connection until its client has
 * read everything. With the default of 50, 50 slow clients would block all other transfers.
 */
const MAX_SOCKETS = 1000
/** Maximum time in milliseconds in which a connection to the store is established. */
const CONNECTION_MS = 5000

/** A store of files in S3. */
export interface S3Files extends Files, FileList {
  /**
   * Checks the connection to the store.
   * @throws Error when the bucket cannot be reached with the credentials.
   */
  check(): Promise<void>
  /** Ends all operations in progress. */
  close(): void
}

/**
 * Opens a store.
 * @param config additional options of the client, such as credentials in tests.
 * @param timeouts how long to wait for the store.
 */
export function openS3(
  location: Bucket,
  config: S3ClientConfig = {},
  timeouts: Timeouts = TIMEOUTS_MS,
): S3Files {
  const { bucket: Bucket, prefix } = location
  const client = createClient(location, config)
  const closed = new AbortController()
  const send = createSend(client, timeouts, closed.signal)
  const upload = createUploads(client, send)
  const at = (name: string) => ({ Bucket, Key: `${prefix}${name}` })
  const get = async (name: string, range?: string) => {
    try {
      const { Body, ContentRange } = await send(
        new GetObjectCommand({ ...at(name), ...(range !== undefined && { Range: range }) }),
      )
      return Body && { body: Body as Body, from: Number(/\d+/.exec(ContentRange ?? '')?.[0] ?? 0) }
    } catch (error) {
      if (error instanceof NoSuchKey) return undefined
      throw error
    }
  }
  return {
    put: async (name, bytes) => {
      await send(new PutObjectCommand({ ...at(name), Body: bytes }))
    },
    get: async (name) => {
      const found = await get(name)
      if (!found) return undefined
      const chunks: Uint8Array[] = []
      for await (const chunk of responseBytes(found.body, timeouts.silence)) chunks.push(chunk)
      return Buffer.concat(chunks)
    },
    write: (name, bytes, gone) => upload(at(name), bytes, gone),
    read: async (name, start, end) => {
      const found = await get(name, start < end ? `bytes=${start}-${end - 1}` : undefined)
      if (!found) return undefined
      const { body, from } = found
      if (start < end) return between(body, timeouts.silence, start - from, end - from)
      body.destroy()
      return nothing()
    },
    delete: async (name) => {
      await send(new DeleteObjectCommand(at(name)))
    },
    list: async (start, after, limit) => {
      const MaxKeys = Math.min(limit, MAX_KEYS)
      const { Contents = [] } = await send(
        new ListObjectsV2Command({
          Bucket,
          Prefix: `${prefix}${start}`,
          MaxKeys,
          ...(after !== undefined && { StartAfter: `${prefix}${after}` }),
        }),
      )
      const files = Contents.map(({ Key = '', LastModified }) => ({
        name: Key.slice(prefix.length),
        at: LastModified?.getTime() ?? Number.POSITIVE_INFINITY,
      }))
      const next = files.length === MaxKeys ? files.at(-1)?.name : undefined
      return { files, ...(next !== undefined && { next }) }
    },
    check: async () => {
      await send(new HeadBucketCommand({ Bucket }))
    },
    close: () => {
      closed.abort(new Error('the store of files is closed'))
      client.destroy()
    },
  }
}

function createClient({ region, endpoint }: Bucket, config: S3ClientConfig): S3Client {
  return new S3Client({
    region,
    // Stores other than Amazon S3 may not provide a host name per bucket, so the bucket is named in
    // the path.
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    // The client adds checksums only where they are required, because some stores do not support
    // them in trailers. The service checks SHA-256 itself.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // With this header, the client would wait 6 s for a store that does not answer before it sends
    // the body, and would open a connection for each part.
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: CONNECTION_MS,
      httpAgent: { maxSockets: MAX_SOCKETS },
      httpsAgent: { maxSockets: MAX_SOCKETS },
    },
    ...config,
  })
}

async function* nothing(): AsyncGenerator<Uint8Array, void> {}
/**
 * Yields the bytes of a body from `start` (inclusive) to `end` (exclusive). The rest is not read.
 * @throws Error when the body ends earlier, or begins later.
 */
async function* between(
  body: Body,
  silence: number,
  start: number,
  end: number,
): AsyncGenerator<Uint8Array, void> {
  let at = 0
  if (start >= 0)
    for await (const chunk of responseBytes(body, silence)) {
      const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end - at))
      at += chunk.length
      if (part.length > 0) yield part
      if (at >= end) return
    }
  body.destroy()
  throw new Error(`the store sent ${at} bytes instead of the bytes from ${start} to ${end}`)
}
