/**
 * Snapshots and checkpoints in one KV bucket per partition. The first byte of a value indicates
 * what follows: the data itself or, for large data, the name of an object in the object store. Each
 * object name is used only once, so every key refers to complete data, and a crash between the two
 * writes leaves the previous value.
 */
import { nuid } from '@nats-io/transport-node'
import { names, token } from '../../../protocol/subjects.ts'
import type { Snapshots } from '../../host/ports.ts'
import { createBlobs } from '../blobs.ts'
import { errorText, isWrongSequence } from '../failures.ts'
import { createLeaderStepDown } from '../leader-stepdown.ts'
import { type Nats, REQUEST_TIMEOUT_MS, WRITE_TIMEOUT_MS } from '../server/connect.ts'
import { isMarker, newest } from './newest.ts'
import { onlyAfter } from './publish.ts'

/** Bytes above which a value is stored in the object store. */
const MAX_INLINE_BYTES = 256 * 1024
/** First byte of a value that contains the data itself. */
const INLINE = Buffer.of(0)
/** First byte of a value that contains the name of an object. */
const REFERENCE = Buffer.of(1)

/**
 * Creates the snapshot store of all partitions. Its functions throw when the servers do not answer.
 */
export function createSnapshots(nats: Nats): Snapshots {
  const blobs = createBlobs(nats)
  const stepDown = createLeaderStepDown(nats)
  const streamOf = (partition: number): string => nats.space.stream(`KV_${names.state(partition)}`)
  const subjectOf = (partition: number, key: string): string =>
    nats.space.storedKey(names.state(partition), token(key))
  /** Names of the objects with large values, by key, as last read or written. */
  const objects = new Map<string, string>()
  const place = (partition: number, key: string) => `${partition}/${key}`
  /**
   * Deletes an object to which its key no longer refers. An object that remains after a failure
   * only wastes space.
   */
  const forsake = (at: string, object: string | undefined): void => {
    if (object === undefined) return
    if (objects.get(at) === object) objects.delete(at)
    blobs
      .delete(object)
      .catch((error: unknown) =>
        nats.log.debug(
          { event: 'snapshot_deletion_failed', object, reason: errorText(error) },
          'old snapshot not deleted',
        ),
      )
  }

  return {
    get: async (partition, key) => {
      for (let attempt = 0; attempt < 3; attempt++) {
        const entry = await newest(
          nats,
          streamOf(partition),
          subjectOf(partition, key),
          REQUEST_TIMEOUT_MS,
        )
        if (!entry || isMarker(entry)) return undefined
        const data = entry.data.subarray(1)
        if (entry.data[0] === INLINE[0]) return { data, revision: entry.sequence }
        const object = new TextDecoder().decode(data)
        objects.set(place(partition, key), object)
        const found = await blobs.get(object)
        // A missing object means that the key was replaced between the two reads, so the key is
        // read again.
        if (found) return { data: found, revision: entry.sequence }
      }
      return undefined
    },
    put: async (partition, key, data, revision) => {
      const at = place(partition, key)
      const previous = objects.get(at)
      const write = async (value: Uint8Array): Promise<number | undefined> => {
        try {
          return await nats.publish(
            nats.space.publishedKey(names.state(partition), token(key)),
            value,
            revision === undefined ? undefined : onlyAfter(revision),
            WRITE_TIMEOUT_MS,
          )
        } catch (error) {
          if (!isWrongSequence(error)) throw error
          const [stream, subject] = [streamOf(partition), subjectOf(partition, key)]
          if (
            revision === undefined ||
            ((await newest(nats, stream, subject, REQUEST_TIMEOUT_MS))?.sequence ?? 0) !== revision
          )
            return undefined
          // No conflict is reported, because the caller would then read the key and repeat the same
          // write immediately.
          stepDown(stream, subject)
          throw error
        }
      }
      if (data.length <= MAX_INLINE_BYTES) {
        const stored = await write(Buffer.concat([INLINE, data]))
        if (stored !== undefined) forsake(at, previous)
        return stored
      }
      const object = `snapshot/${at}/${nuid.next()}`
      await blobs.put(object, data)
      const stored = await write(Buffer.concat([REFERENCE, Buffer.from(object)]))
      if (stored === undefined) {
        forsake(at, object)
        return undefined
      }
      objects.set(at, object)
      forsake(at, previous)
      return stored
    },
    delete: async (partition, key) => {
      // Unlike a deletion, a purge leaves no delete marker.
      await nats.manager.streams.purge(streamOf(partition), {
        filter: subjectOf(partition, key),
      })
      const at = place(partition, key)
      forsake(at, objects.get(at))
    },
  }
}
