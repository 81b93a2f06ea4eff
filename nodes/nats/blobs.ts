/** Large values in the object store. A name is written once: whoever reads it gets what was put, or nothing. */
import { type ObjectStore, Objm } from '@nats-io/obj'
import { names } from '../../protocol/subjects.ts'
import type { Blobs } from '../host/ports.ts'
import type { Nats } from './connect.ts'

const STREAM = `OBJ_${names.blobs}`
/** Subject of what is known of a value, as object stores of NATS spell it (nats-architecture-and-design, ADR-20). */
const aboutOf = (name: string): string => `$O.${names.blobs}.M.${Buffer.from(name).toString('base64').replaceAll('+', '-').replaceAll('/', '_')}`

/** The values of the installation. Throws when the servers do not answer, or a value is damaged. */
export function createBlobs(nats: Nats): Blobs {
  let opened: Promise<ObjectStore> | undefined
  const store = () => {
    opened ??= new Objm(nats.streams).open(names.blobs)
    // A store that could not be opened is opened again by the next caller.
    opened.catch(() => void (opened = undefined))
    return opened
  }
  return {
    put: async (name, data) => {
      await (await store()).putBlob({ name }, data)
    },
    get: async (name) => (await (await store()).getBlob(name)) ?? undefined,
    delete: async (name) => {
      const at = await store()
      if (!(await at.info(name))) return
      await at.delete(name)
      // Nothing needs to know that there once was one.
      await nats.manager.streams.purge(STREAM, { filter: aboutOf(name) })
    },
  }
}

/**
 * Remove pieces of values whose writer died before the value had a name. Gives how many values that were.
 * @param age milliseconds that a piece must be old: a younger one may be of a value that is being written.
 */
export async function sweepPieces(nats: Nats, now: number, age: number): Promise<number> {
  const { manager } = nats
  const prefix = `$O.${names.blobs}.C.`
  const { state } = await manager.streams.info(STREAM, { subjects_filter: `${prefix}*` })
  const found = Object.keys(state.subjects ?? {})
  if (found.length === 0) return 0
  const known = new Set((await (await new Objm(nats.streams).open(names.blobs)).list()).map(({ nuid }) => `${prefix}${nuid}`))
  let swept = 0
  for (const subject of found.filter((one) => !known.has(one))) {
    const last = await manager.streams.getMessage(STREAM, { last_by_subj: subject })
    if (!last || now - last.time.getTime() < age) continue
    await manager.streams.purge(STREAM, { filter: subject })
    swept++
  }
  return swept
}
