/**
 * Uploads of files whose size is not known at the beginning. A file is sent in parts while its bytes
 * arrive (`files.ts`, S2 and S4).
 */
import { createHash } from 'node:crypto'
import { AbortMultipartUploadCommand, type S3Client } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { createSemaphore } from '../../gateway/files/semaphore.ts'
import type { FileDigest } from '../../gateway/ports.ts'
import { type Send, SilentStore } from './sending.ts'

/**
 * Size of a part of an upload in bytes. S3 accepts a smaller part only as the last one (Amazon S3
 * User Guide, "multipart upload limits"). An upload buffers up to two parts.
 */
const PART_BYTES = 5 * 2 ** 20
/** Maximum number of bytes that all uploads buffer. Further uploads wait. */
const MAX_BUFFERED_BYTES = 16 * PART_BYTES

/** Uploads a file. `gone` is aborted when the result is no longer needed. */
export type UploadFile = (
  object: { readonly Bucket: string; readonly Key: string },
  bytes: AsyncIterable<Uint8Array>,
  gone: AbortSignal | undefined,
) => Promise<FileDigest>

/** Creates the function that uploads files. All of its uploads share the buffers. */
export function createUploads(client: S3Client, send: Send): UploadFile {
  const buffered = createSemaphore(MAX_BUFFERED_BYTES)
  /** Rejects the uploads that wait for buffers. */
  const waiting = new Set<(error: SilentStore) => void>()
  const acquireBuffers = async (): Promise<() => void> => {
    const granted = buffered.acquire(2 * PART_BYTES)
    const { failed, fail } = failure()
    waiting.add(fail)
    try {
      return await Promise.race([granted, failed])
    } catch (error) {
      void granted.then((release) => release())
      throw error
    } finally {
      waiting.delete(fail)
    }
  }
  return async (object, bytes, gone) => {
    const release = await acquireBuffers()
    const source = digested(bytes)
    const { failed, fail } = failure()
    const silent = (error: unknown): never => {
      if (error instanceof SilentStore) for (const one of [fail, ...waiting]) one(error)
      throw error
    }
    const upload = new Upload({
      client: Object.assign(Object.create(client) as S3Client, {
        // Without a client, only the deletion of the parts is still sent.
        send: (command: Parameters<Send>[0]) =>
          send(command, command instanceof AbortMultipartUploadCommand ? undefined : gone).catch(
            silent,
          ),
      }),
      params: { ...object, Body: ReadableStream.from(source.chunks) },
      partSize: PART_BYTES,
      queueSize: 1,
    })
    try {
      // If the upload fails, the library deletes its parts.
      await Promise.race([upload.done(), failed])
    } catch (error) {
      // If the deletion of the parts failed, the error is that of the deletion.
      const fault = source.fault()
      throw fault ? fault.error : gone?.aborted ? gone.reason : error
    } finally {
      release()
    }
    return source.digest()
  }
}

/** Returns a promise that is rejected when `fail` is called, and otherwise stays pending. */
function failure(): {
  readonly failed: Promise<never>
  readonly fail: (error: SilentStore) => void
} {
  let fail = (_: SilentStore): void => {}
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  return { failed, fail }
}

interface Digested {
  readonly chunks: AsyncGenerator<Uint8Array, void>
  /** Returns the error with which the source of the bytes ended, if it failed. */
  fault(): { readonly error: unknown } | undefined
  /** Returns the size and the hash of all bytes, after they have been read. */
  digest(): FileDigest
}
function digested(bytes: AsyncIterable<Uint8Array>): Digested {
  const hash = createHash('sha256')
  let size_bytes = 0
  let fault: { readonly error: unknown } | undefined
  async function* chunks(): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of bytes) {
        hash.update(chunk)
        size_bytes += chunk.length
        // The chunk is copied, because it is valid only until the next one is requested, and the
        // library collects the chunks of a part.
        yield Buffer.from(chunk)
      }
    } catch (error) {
      fault = { error }
      throw error
    }
  }
  return {
    chunks: chunks(),
    fault: () => fault,
    digest: () => ({ size_bytes, sha256: hash.digest('hex') }),
  }
}
