/** Reads the content of the NATS object store from its stream. */

import type { Access } from '../../../nodes/nats/server/access.ts'
import { connectNats, type Nats } from '../../../nodes/nats/server/connect.ts'
import { names } from '../../../protocol/subjects.ts'
import { silentLog } from '../../support/memory.ts'

/** Size in bytes of every chunk of a file except the last. */
const CHUNK_BYTES = 262_144

export const connectTo = (access: Access): Promise<Nats> =>
  connectNats({ access, name: 'test', log: silentLog, role: 'test' })
const subjectsOf = async (nats: Nats, kind: 'C' | 'M'): Promise<Readonly<Record<string, number>>> =>
  (
    await nats.manager.streams.info(`OBJ_${names.blobs}`, {
      subjects_filter: `$O.${names.blobs}.${kind}.*`,
    })
  ).state.subjects ?? {}
/** Returns the names of all stored artifact files. */
export const storedFiles = async (nats: Nats): Promise<string[]> =>
  Object.keys(await subjectsOf(nats, 'M'))
    .map((subject) => Buffer.from(String(subject.split('.').at(-1)), 'base64url').toString())
    .filter((name) => name.startsWith('artifacts/'))
/** Counts the chunks of all stored values, including artifacts. */
export const storedChunks = async (nats: Nats): Promise<number> =>
  Object.values(await subjectsOf(nats, 'C')).reduce((sum, count) => sum + count, 0)
export const chunksOf = (size: number): number => Math.ceil(size / CHUNK_BYTES)
export const artifactOf = (name: string): string => String(name.split('/')[2])
