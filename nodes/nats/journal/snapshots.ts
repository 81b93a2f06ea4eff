/**
 * Snapshots and checkpoints in a KV bucket per partition. The first byte of a value says where the data is: here, or, when
 * it is large, in the object store under a name that is used once. So whatever a key holds is complete, and a crash
 * between the two writes leaves the previous value.
 */
import { nuid } from '@nats-io/transport-node'
import { names, token } from '../../../protocol/subjects.ts'
import type { Snapshots } from '../../host/ports.ts'
import { createBlobs } from '../blobs.ts'
import { QUESTION, STORING, type Nats } from '../server/connect.ts'
import { isWrongSequence, sentence } from '../failures.ts'
import { isMarker, newest } from './newest.ts'
import { onlyAfter } from './publish.ts'
import { createLeaderStepDown } from '../leader-stepdown.ts'

/** Bytes above which a value goes to the object store. */
const LARGE = 256 * 1024
/** First bytes of a value. */
const HERE = Buffer.of(0)
const ELSEWHERE = Buffer.of(1)

/** The snapshots of all partitions. Functions throw when the servers do not answer. */
export function createSnapshots(nats: Nats): Snapshots {
  const blobs = createBlobs(nats)
  const relief = createLeaderStepDown(nats)
  const streamOf = (partition: number): string => nats.space.stream(`KV_${names.state(partition)}`)
  const subjectOf = (partition: number, key: string): string =>
    nats.space.storedKey(names.state(partition), token(key))
  /** Object that a key refers to, of the keys whose value was seen to be large. */
  const objects = new Map<string, string>()
  const place = (partition: number, key: string) => `${partition}/${key}`
  /** The key's value moved away from this object. An object that stays because of a failure costs only space. */
  const forsake = (at: string, object: string | undefined): void => {
    if (object === undefined) return
    if (objects.get(at) === object) objects.delete(at)
    blobs
      .delete(object)
      .catch((error: unknown) =>
        nats.log.debug(
          { object, reason: sentence(error) },
          'an old snapshot stays in the object store',
        ),
      )
  }

  return {
    get: async (partition, key) => {
      for (let attempt = 0; attempt < 3; attempt++) {
        const entry = await newest(nats, streamOf(partition), subjectOf(partition, key), QUESTION)
        if (!entry || isMarker(entry)) return undefined
        const data = entry.data.subarray(1)
        if (entry.data[0] === HERE[0]) return { data, revision: entry.sequence }
        const object = new TextDecoder().decode(data)
        objects.set(place(partition, key), object)
        const found = await blobs.get(object)
        // Absent: the key was replaced between the two reads, so it is read again.
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
            STORING,
          )
        } catch (error) {
          if (!isWrongSequence(error)) throw error
          const [stream, subject] = [streamOf(partition), subjectOf(partition, key)]
          if (
            revision === undefined ||
            ((await newest(nats, stream, subject, QUESTION))?.sequence ?? 0) !== revision
          )
            return undefined
          // Who took this for a conflict would read, and try the same again at once.
          relief(stream, subject)
          throw error
        }
      }
      if (data.length <= LARGE) {
        const stored = await write(Buffer.concat([HERE, data]))
        if (stored !== undefined) forsake(at, previous)
        return stored
      }
      const object = `snapshot/${at}/${nuid.next()}`
      await blobs.put(object, data)
      const stored = await write(Buffer.concat([ELSEWHERE, Buffer.from(object)]))
      if (stored === undefined) {
        forsake(at, object)
        return undefined
      }
      objects.set(at, object)
      forsake(at, previous)
      return stored
    },
    delete: async (partition, key) => {
      // A purge instead of a delete marker: ended actors leave nothing behind.
      await nats.manager.streams.purge(streamOf(partition), {
        filter: subjectOf(partition, key),
      })
      const at = place(partition, key)
      forsake(at, objects.get(at))
    },
  }
}
