/**
 * Large values and files in the object store. Callers never store different contents under one
 * name, so a reader gets either the complete value or nothing.
 */

import { type ObjectInfo, type ObjectStore, Objm, setSha256Backend } from '@nats-io/obj'
import { nuid } from '@nats-io/transport-node'
import type { Files } from '../../gateway/ports.ts'
import { names } from '../../protocol/subjects.ts'
import type { Blobs } from '../host/ports.ts'
import type { FileList, ListedFile } from '../storage/file-list.ts'
import { pull } from './journal/pull.ts'
import { metaSubject, noTransfers, readObject, writeObject } from './objects.ts'
import type { Nats } from './server/connect.ts'
import { readValue, writeValue } from './values.ts'

/**
 * Creates the store of the installation's large values and files. Its functions throw when the
 * servers do not answer or a value is damaged.
 */
export function createBlobs(nats: Nats): Blobs & Files & FileList {
  // With the default implementation, each chunk is hashed in JavaScript, which takes 3 to 5 % of
  // the time of a shard node with long queues.
  setSha256Backend('native')
  const bucket = nats.space.bucket(names.blobs)
  const shared = noTransfers()
  let opened: Promise<ObjectStore> | undefined
  const store = () => {
    opened ??= new Objm(nats.streams).open(bucket)
    // After a failure, the next caller opens the store again.
    opened.catch(() => void (opened = undefined))
    return opened
  }
  return {
    put: async (name, data) => {
      await writeValue(await store(), name, data)
    },
    get: async (name) => readValue(nats, await store(), bucket, name),
    write: (name, bytes) => writeObject(nats, { bucket, name, id: nuid.next() }, bytes, shared),
    read: async (name, start, end) => {
      const at = await store()
      const info = await at.info(name)
      return info && !info.deleted
        ? readObject(nats, { store: at, bucket, info }, { start, end }, shared)
        : undefined
    },
    delete: async (name) => {
      const at = await store()
      if (!(await at.info(name))) return
      await at.delete(name)
      // The deletion leaves a delete marker, which is not needed.
      await nats.manager.streams.purge(`OBJ_${bucket}`, { filter: metaSubject(bucket, name) })
    },
    list: (prefix, after, limit) => listFiles(nats, bucket, prefix, after, limit),
  }
}

/**
 * Implements `FileList.list`. A position is a sequence of the stream. Values whose names have
 * another prefix count toward the limit.
 */
async function listFiles(
  nats: Nats,
  bucket: string,
  prefix: string,
  after: string | undefined,
  limit: number,
): ReturnType<FileList['list']> {
  const from = Number(after ?? 0) + 1
  const subject = `$O.${bucket}.M.*`
  const files: ListedFile[] = []
  const reading = await pull(nats, `OBJ_${bucket}`, from, { subject, idle: SILENCE_MS })
  try {
    let read = 0
    for await (const message of reading.messages) {
      if (!message) break
      const { name, deleted } = message.json<ObjectInfo>()
      if (!deleted && name.startsWith(prefix)) files.push({ name, at: message.time.getTime() })
      if (message.info.pending === 0) break
      if (++read >= limit) return { files, next: String(message.seq) }
    }
    return { files }
  } finally {
    reading.close()
  }
}

/** Milliseconds without a message after which a list counts as complete. */
const SILENCE_MS = 1000

/**
 * Deletes chunks of values whose writer died before it stored the value's metadata. Returns the
 * number of such values.
 * @param now Unix milliseconds.
 * @param age minimum milliseconds since the last chunk of such a value was stored. The writer of a
 *   more recent value may not have finished yet.
 */
export async function sweepChunks(nats: Nats, now: number, age: number): Promise<number> {
  const { manager, space } = nats
  const bucket = space.bucket(names.blobs)
  const stream = `OBJ_${bucket}`
  const prefix = `$O.${bucket}.C.`
  const { state } = await manager.streams.info(stream, { subjects_filter: `${prefix}*` })
  const found = Object.keys(state.subjects ?? {})
  if (found.length === 0) return 0
  const known = new Set(
    (await (await new Objm(nats.streams).open(bucket)).list()).map(
      ({ nuid }) => `${prefix}${nuid}`,
    ),
  )
  let swept = 0
  for (const subject of found.filter((one) => !known.has(one))) {
    const last = await manager.streams.getMessage(stream, { last_by_subj: subject })
    if (!last || now - last.time.getTime() < age) continue
    await manager.streams.purge(stream, { filter: subject })
    swept++
  }
  return swept
}
