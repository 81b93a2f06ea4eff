/**
 * Chooses the store of files: a bucket if one is set, otherwise the object store of NATS. Files that
 * were stored in NATS before the bucket was set are still read from there.
 */
import type { Files } from '../../gateway/ports.ts'
import { StartFault } from '../process/fault.ts'
import type { FileList } from '../storage/file-list.ts'
import type { Bucket, S3Files } from './files.ts'

/**
 * Opens the store of files. The S3 client is loaded only if a bucket is set.
 * @param blobs the object store of NATS.
 * @param onStop receives the function that closes the store.
 * @param open opens the store in the bucket.
 * @throws StartFault when the bucket cannot be reached.
 */
export async function openFiles(
  bucket: Bucket | undefined,
  blobs: Files & FileList,
  onStop: (stop: () => Promise<void>) => void,
  open = async (wanted: Bucket): Promise<S3Files> => (await import('./files.ts')).openS3(wanted),
): Promise<Files & FileList> {
  if (!bucket) return blobs
  const files = await open(bucket)
  onStop(async () => files.close())
  await files.check().catch((error: Error) => {
    throw new StartFault(
      `The bucket ${bucket.bucket} cannot be reached at ${bucket.endpoint ?? 'Amazon S3'} ` +
        `(${error.name}: ${error.message}). Correct BATON_ARTIFACTS, or the credentials ` +
        'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
    )
  })
  return withEarlier(files, blobs)
}

/** Names of files have a folder. Other objects describe the bucket itself. */
const isFile = (name: string): boolean => name.includes('/')

/**
 * Returns a store that writes to the bucket. A file that the bucket lacks is read from the earlier
 * store, and a deletion applies to both.
 */
function withEarlier(files: S3Files, earlier: Files): Files & FileList {
  return {
    put: (name, bytes) => files.put(name, bytes),
    write: (name, bytes, gone) => files.write(name, bytes, gone),
    list: (prefix, after, limit) => files.list(prefix, after, limit),
    get: async (name) =>
      (await files.get(name)) ?? (isFile(name) ? await earlier.get(name) : undefined),
    read: async (name, start, end) =>
      (await files.read(name, start, end)) ?? (await earlier.read(name, start, end)),
    delete: async (name) => {
      await Promise.all([files.delete(name), isFile(name) && earlier.delete(name)])
    },
  }
}
