/** Large values in the object store. A name is written once: whoever reads it gets what was put, or nothing. */
import { type ObjectStore, Objm } from '@nats-io/obj'
import { names } from '../../protocol/subjects.ts'
import type { Blobs } from '../host/ports.ts'
import type { Nats } from './connect.ts'

export interface DeletableBlobs extends Blobs {
  /** Remove a value; unknown names are no error. */
  delete(name: string): Promise<void>
}

/** The values of the installation. Throws when the servers do not answer, or a value is damaged. */
export function createBlobs(nats: Nats): DeletableBlobs {
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
      if (await at.info(name)) await at.delete(name)
    },
  }
}
