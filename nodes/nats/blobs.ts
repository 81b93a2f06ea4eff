/** Large values in the object store. A name is written once: whoever reads it gets what was put, or nothing. */
import { type ObjectStore, Objm, setSha256Backend } from '@nats-io/obj'
import { setTimeout as sleep } from 'node:timers/promises'
import { names } from '../../protocol/subjects.ts'
import type { Blobs } from '../host/ports.ts'
import type { Nats } from './server/connect.ts'

/** Subject of what is known of a value, as object stores of NATS spell it (nats-architecture-and-design, ADR-20). */
const aboutOf = (bucket: string, name: string): string =>
  `$O.${bucket}.M.${Buffer.from(name).toString('base64').replaceAll('+', '-').replaceAll('/', '_')}`

/** The values of the installation. Throws when the servers do not answer, or a value is damaged. */
export function createBlobs(nats: Nats): Blobs {
  // Else each piece is hashed in JavaScript: 3 to 5 % of the time of a shard node whose queues are long.
  setSha256Backend('native')
  const bucket = nats.space.bucket(names.blobs)
  let opened: Promise<ObjectStore> | undefined
  const store = () => {
    opened ??= new Objm(nats.streams).open(bucket)
    // A store that could not be opened is opened again by the next caller.
    opened.catch(() => void (opened = undefined))
    return opened
  }
  return {
    put: async (name, data) => {
      await (await store()).putBlob({ name }, data)
    },
    get: async (name) => read(await store(), name),
    delete: async (name) => {
      const at = await store()
      if (!(await at.info(name))) return
      await at.delete(name)
      // Nothing needs to know that there once was one.
      await nats.manager.streams.purge(`OBJ_${bucket}`, { filter: aboutOf(bucket, name) })
    },
  }
}

/** Milliseconds without a piece after which it is looked whether there still are any. */
const SILENCE = 1000

/** The bytes of a value; undefined when there is none, also when it is erased while it is read: the store would wait for its pieces for ever. */
async function read(at: ObjectStore, name: string): Promise<Uint8Array | undefined> {
  const found = await at.get(name)
  if (!found) return undefined
  const reader = found.data.getReader()
  const pieces: Uint8Array[] = []
  for (let next = reader.read(); ; ) {
    const silence = new AbortController()
    const came = await Promise.race([
      next,
      sleep(SILENCE, undefined, { signal: silence.signal }).catch(() => undefined),
    ]).finally(() => silence.abort())
    if (came === undefined) {
      const now = await at.info(name)
      if (now && !now.deleted && now.nuid === found.info.nuid) continue
      void reader.cancel().catch(() => {})
      return undefined
    }
    if (came.done) break
    pieces.push(came.value)
    next = reader.read()
  }
  const damage = await found.error
  if (damage) throw damage
  return Buffer.concat(pieces)
}

/**
 * Remove pieces of values whose writer died before the value had a name. Gives how many values that were.
 * @param age milliseconds that a piece must be old: a younger one may be of a value that is being written.
 */
export async function sweepPieces(nats: Nats, now: number, age: number): Promise<number> {
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
