/**
 * Starts an installation of one tree in a new data folder, and measures the processor time of its
 * threads and its stored bytes.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import type { Nats } from '../../nodes/nats/server/connect.ts'
import { startBaton, type Target } from '../support/baton.ts'
import { connectTo } from '../support/journal.ts'
import { startSplit } from '../support/split.ts'
import type { Probes } from './probes.ts'
import type { Tree } from './trees.ts'

/** The roles of each process besides the gateway in an installation with separate processes. */
const SEPARATE = ['shards', 'views,executor']

/** The amount of data that an installation has stored. */
export interface Stored {
  /** Bytes of the journals. */
  readonly journal: number
  /** Number of messages of the journals. */
  readonly messages: number
  /** Bytes of the view files, excluding free pages. */
  readonly views: number
  /** Bytes of snapshots and checkpoints, including those in the object store. */
  readonly state: number
  /** Number of keys of snapshots and checkpoints. */
  readonly keys: number
  /** Sum of the last sequences of the journals and snapshot buckets. */
  readonly sequence: number
}
export interface Installation extends Target {
  /** Process ids of the program's processes by role; `server` if one process has all roles. */
  readonly processes: ReadonlyMap<string, number>
  readonly nats: number
  stored(): Promise<Stored>
  stop(): Promise<void>
}

async function start({ program }: Tree, separate: boolean, { node, settings }: Probes) {
  if (separate) {
    const split = await startSplit({ sync: 'always', roles: SEPARATE, program, node, settings })
    return { ...split, processes: split.nodes, views: join(split.data, 'views', 'views') }
  }
  const server = await startBaton({ sync: 'always', program, node, settings })
  return {
    ...server,
    processes: new Map([['server', server.processes.server[0] ?? 0]]),
    nats: server.processes.store[0] ?? 0,
    views: join(server.data, 'views'),
  }
}

/**
 * Starts a tree whose journal has the setting `fsync always`.
 * @param separate whether shards, views and gateway are separate processes.
 */
export async function startInstallation(
  tree: Tree,
  separate: boolean,
  probes: Probes,
): Promise<Installation> {
  const { port, key, data, processes, nats, views, stop } = await start(tree, separate, probes)
  const connection = await connectTo(data)
  return {
    port,
    key,
    processes,
    nats,
    stored: async () => ({ ...(await streamsOf(connection)), views: viewBytes(views) }),
    stop: async () => {
      await connection.close()
      await stop()
    },
  }
}

async function streamsOf(nats: Nats): Promise<Omit<Stored, 'views'>> {
  const sums = { journal: 0, messages: 0, state: 0, keys: 0, sequence: 0 }
  for await (const { config, state } of nats.manager.streams.list()) {
    const journal = config.name.includes('JOURNAL_')
    const snapshots = config.name.includes('KV_STATE_')
    if (journal) sums.journal += state.bytes
    if (journal) sums.messages += state.messages
    // The object store contains the large snapshots.
    if (snapshots || config.name.includes('OBJ_BLOBS')) sums.state += state.bytes
    if (snapshots) sums.keys += state.messages
    if (journal || snapshots) sums.sequence += state.last_seq
  }
  return sums
}
/** Returns the total size in bytes of the used pages of all view files in a folder. */
function viewBytes(folder: string): number {
  let bytes = 0
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.sqlite'))) {
    const db = new Database(join(folder, name), { readonly: true })
    const read = (pragma: string) => Number(db.pragma(pragma, { simple: true }))
    bytes += (read('page_count') - read('freelist_count')) * read('page_size')
    db.close()
  }
  return bytes
}

/**
 * Returns the processor time of each thread of a process in µs, by Linux thread id. Threads that
 * have ended are omitted. If a thread ends during the call, the threads after it are omitted, too.
 */
export function threadTimes(pid: number): Map<number, number> {
  const times = new Map<number, number>()
  try {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const text = readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'latin1')
      times.set(Number(task), Number(text.split(' ')[0]) / 1000)
    }
  } catch {
    // A thread or the process has ended.
  }
  return times
}
