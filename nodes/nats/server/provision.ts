/**
 * Creates missing streams and buckets, and raises the number of replicas of existing ones. The
 * numbers of partitions and shards are fixed when the installation is created, because they
 * determine where each id is stored.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import {
  DiscardPolicy,
  PersistMode,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
} from '@nats-io/jetstream'
import { Objm } from '@nats-io/obj'
import { nanos } from '@nats-io/transport-node'
import { names, subjects } from '../../../protocol/subjects.ts'
import { StartFault } from '../../process/fault.ts'
import { codeOf, codes } from '../failures.ts'
import { createRegistry } from '../journal/registry.ts'
import type { Nats } from './connect.ts'
import type { Namespace } from './namespace.ts'
import { RETRY_TIMEOUT_MS, retryOperation } from './retry-operation.ts'

/**
 * The sizes of an installation. They are fixed when it is created, except that `replicas` may be
 * raised later.
 */
export interface Layout {
  readonly partitions: number
  readonly shards: number
  readonly replicas: number
}
type Configured = Partial<StreamConfig> & { readonly name: string }

/**
 * Duplicate window of the streams, in nanoseconds. It is only an extra safeguard: actors recognize
 * repeated commands themselves.
 */
const DUPLICATES = nanos(120_000)

/**
 * Returns the compression of a stream on disk. Replicated streams are not compressed. When a
 * replica of nats-server 2.15.1 restarts after a kill, it truncates its log to the last applied
 * entry. It then fails at a compressed block ("s2: corrupt input") and never catches up.
 */
export const compressionOf = (replicas: number): StoreCompression =>
  replicas > 1 ? StoreCompression.None : StoreCompression.S2

const journalConfig = (space: Namespace, partition: number, replicas: number): Configured => ({
  name: space.stream(names.journal(partition)),
  subjects: [space.subject(subjects.journals(partition))],
  storage: StorageType.File,
  retention: RetentionPolicy.Limits,
  discard: DiscardPolicy.New,
  num_replicas: replicas,
  duplicate_window: DUPLICATES,
  max_msgs: -1,
  max_bytes: -1,
  max_age: 0,
  compression: compressionOf(replicas),
  deny_delete: false,
  allow_direct: false,
})
/**
 * Returns the configuration of a KV bucket with one value per key. Reads go to the leader
 * (`allow_direct: false`).
 * @param first the first revision that the bucket assigns. It is set for a bucket in memory, which
 *   is empty after a restart and must not reuse a revision.
 */
const bucketConfig = (
  bucket: string,
  storage: StorageType,
  replicas: number,
  first?: number,
): Configured => ({
  name: `KV_${bucket}`,
  subjects: [`$KV.${bucket}.>`],
  storage,
  retention: RetentionPolicy.Limits,
  discard: DiscardPolicy.New,
  num_replicas: replicas,
  max_msgs_per_subject: 1,
  max_msgs: -1,
  max_bytes: -1,
  max_age: 0,
  ...(storage === StorageType.File && { compression: compressionOf(replicas) }),
  allow_rollup_hdrs: true,
  deny_delete: true,
  allow_direct: false,
  duplicate_window: DUPLICATES,
  ...(first !== undefined && { first_seq: first }),
})

/**
 * Returns the configuration of a snapshot bucket. Snapshots are a cache: if a crash loses the
 * newest messages of their stream, including checkpoints, a replay restores the state. Messages of
 * an unreplicated stream are therefore acknowledged before they are on disk (measured on a busy
 * disk: 12,900 writes/s, against 500 with fsync). Replicated streams do not support this mode.
 */
const stateConfig = (space: Namespace, partition: number, replicas: number): Configured => ({
  ...bucketConfig(space.bucket(names.state(partition)), StorageType.File, replicas),
  ...(replicas === 1 && { persist_mode: PersistMode.Async }),
})

/**
 * Creates a stream when it is absent. Otherwise raises its number of replicas and adapts its
 * compression and its limits, if needed. Stored blocks keep their compression. The new setting
 * applies to blocks that are filled later. Several processes may call this function at the same
 * time.
 */
export async function ensureStream({ manager, log }: Nats, config: Configured): Promise<void> {
  const found = await manager.streams.info(config.name).catch((error: unknown) => {
    if (codeOf(error) === codes.streamNotFound) return undefined
    throw error
  })
  if (!found) {
    await manager.streams.add(config)
    log.info(
      { event: 'stream_created', stream: config.name, replicas: config.num_replicas },
      'stream created',
    )
    return
  }
  const { num_replicas: before, compression = StoreCompression.None } = found.config
  const replicas = Math.max(before, config.num_replicas ?? 1)
  const { max_age, max_bytes, max_msgs_per_subject } = { ...found.config, ...config }
  const wanted = {
    num_replicas: replicas,
    compression: config.compression === undefined ? compression : compressionOf(replicas),
    max_age,
    max_bytes,
    max_msgs_per_subject,
  }
  const differs = (Object.keys(wanted) as (keyof typeof wanted)[]).some(
    (name) => wanted[name] !== { ...found.config, compression }[name],
  )
  if (!differs) return
  if (replicas > before && found.config.persist_mode === PersistMode.Async) {
    // A replicated stream cannot use asynchronous persistence, and the mode of a stream cannot
    // change. A stream with this mode contains only a cache, so it is recreated.
    await manager.streams.delete(config.name)
    await manager.streams.add(config)
  } else await manager.streams.update(config.name, { ...found.config, ...wanted })
  log.info(
    { event: 'stream_updated', stream: config.name, replicas, compression: wanted.compression },
    'stream updated',
  )
}

/**
 * Creates the lease bucket when it is absent. It is in memory, so a restart of all servers deletes
 * it.
 */
export const ensureCluster = (nats: Nats, replicas: number): Promise<void> =>
  ensureStream(
    nats,
    bucketConfig(nats.space.bucket(names.cluster), StorageType.Memory, replicas, Date.now()),
  )

/**
 * Key of the config bucket that marks a running or interrupted restore. No node may start on a
 * partial set of streams.
 */
export const RESTORING = 'restoring'
/**
 * Creates the bucket of the installation's records when it is absent.
 * @throws StartFault when the servers do not provide it in time.
 */
export const ensureConfig = (
  nats: Nats,
  replicas: number,
  within = RETRY_TIMEOUT_MS,
): Promise<void> =>
  retryOperation(
    nats,
    `KV_${names.config}`,
    () =>
      ensureStream(nats, bucketConfig(nats.space.bucket(names.config), StorageType.File, replicas)),
    within,
  )

/**
 * Stores the layout, or compares it with the stored one and raises the stored number of replicas.
 * @throws StartFault when a restore has not finished, or the stored layout or the journals do not
 *   permit `wanted`.
 */
async function settleLayout(nats: Nats, wanted: Layout): Promise<void> {
  const registry = createRegistry(nats, names.config)
  if (await registry.get(RESTORING))
    throw new StartFault(
      'A restore into these NATS servers has not finished. ' +
        'Wait for it; if it was interrupted, repeat it with `baton restore --again`.',
    )
  const found = await registry.get('layout')
  if (!found) {
    if ((await registry.put('layout', JSON.stringify(wanted), 0)) === undefined)
      await settleLayout(nats, wanted)
    return
  }
  const stored = JSON.parse(found.value) as Layout
  for (const field of ['partitions', 'shards'] as const) {
    const kept = stored[field]
    if (kept === wanted[field]) continue
    throw new StartFault(
      `This installation was created with ${kept} ${field}; that cannot change. ` +
        `Set BATON_${field.toUpperCase()}=${kept}, or start on an empty store.`,
    )
  }
  if (wanted.replicas < stored.replicas) {
    throw new StartFault(
      `This installation has ${stored.replicas} replicas; ` +
        `their number can be raised but not lowered. Set BATON_REPLICAS=${stored.replicas}.`,
    )
  }
  if (wanted.replicas > stored.replicas) await requireBeginnings(nats, stored.partitions)
  if (
    wanted.replicas > stored.replicas &&
    (await registry.put('layout', JSON.stringify(wanted), found.revision)) === undefined
  )
    await settleLayout(nats, wanted)
}

/**
 * Checks that every journal begins with its first entry. Snapshots of an unreplicated stream cannot
 * be replicated (`ensureStream`), so they are derived from the journal again.
 * @throws StartFault when the beginning of a journal was removed.
 */
async function requireBeginnings({ manager, space }: Nats, partitions: number): Promise<void> {
  for (let partition = 0; partition < partitions; partition++) {
    const stream = space.stream(names.journal(partition))
    const { first_seq, last_seq } = (await manager.streams.info(stream)).state
    if (first_seq > 1 && last_seq > 0)
      throw new StartFault(
        `The number of replicas cannot be raised, because the beginning of ${stream} was removed: ` +
          `it begins at ${first_seq}. The snapshots cannot be replicated or rebuilt.`,
      )
  }
}

/**
 * Checks that an existing installation has its journals, its large values and its identity. None of
 * them is recreated: nats-server also omits a stream that it cannot read, and an empty stream would
 * then replace this stream.
 * @throws StartFault when one of them is missing.
 */
async function requireContents(nats: Nats, partitions: number): Promise<void> {
  const journals = Array.from({ length: partitions }, (_, partition) => names.journal(partition))
  // The identity is stored before the first entry, so it is read after the journals.
  const written = await firstWritten(nats, journals)
  if (!(await createRegistry(nats, names.config).get('installation'))) {
    if (written === undefined) return
    throw new StartFault(
      `The NATS servers contain ${nats.space.stream(written)}, the journal of an installation, ` +
        `but not its identity, which KV_${nats.space.bucket(names.config)} contained. ${RESTORE}`,
    )
  }
  for (const name of [...journals, `OBJ_${names.blobs}`]) {
    const stream = nats.space.stream(name)
    if (await isMissing(nats, stream, LOOKS)) {
      const what = name === `OBJ_${names.blobs}` ? 'the large values and files' : 'a journal'
      throw new StartFault(
        `The NATS servers lack ${stream}, ${what} of this installation. ${RESTORE}`,
      )
    }
  }
}
const RESTORE =
  'The logs of the NATS servers contain the reason, usually a damaged file. ' +
  'Restore the last backup into empty servers, or, in a cluster, ' +
  "restore the server's folder from another server."

/** Returns the first of the streams that has ever stored a message. */
async function firstWritten(nats: Nats, streams: readonly string[]): Promise<string | undefined> {
  for (const name of streams) {
    const found = await nats.manager.streams
      .info(nats.space.stream(name))
      .catch((error: unknown) => {
        if (codeOf(error) !== codes.streamNotFound) throw error
        return undefined
      })
    if (found && found.state.last_seq > 0) return name
  }
  return undefined
}
/**
 * Number of checks, half a second apart, before a stream counts as missing. A server that has just
 * joined or restored may not list the stream yet.
 */
const LOOKS = 8
async function isMissing(nats: Nats, stream: string, looks: number): Promise<boolean> {
  for (let look = 1; ; look++) {
    try {
      await nats.manager.streams.info(stream)
      return false
    } catch (error) {
      if (codeOf(error) !== codes.streamNotFound) throw error
      if (look >= looks) return true
      await sleep(500)
    }
  }
}

/**
 * Makes sure that all streams and buckets of the installation exist.
 * @param within milliseconds for which the creation of each one is retried; 60 s by default.
 * @throws StartFault when a restore has not finished, the stored layout does not permit `layout`,
 *   stored data is missing (`requireContents`), or the servers do not provide a stream in time.
 */
export async function provision(
  nats: Nats,
  layout: Layout,
  within = RETRY_TIMEOUT_MS,
): Promise<void> {
  const { partitions, replicas } = layout
  const make = (config: Configured) =>
    retryOperation(nats, config.name, () => ensureStream(nats, config), within)
  await ensureConfig(nats, replicas, within)
  await retryOperation(nats, 'the stored layout', () => settleLayout(nats, layout), within)
  await retryOperation(nats, 'the journals', () => requireContents(nats, partitions), within)
  for (let partition = 0; partition < partitions; partition++) {
    await make(journalConfig(nats.space, partition, replicas))
    await make(stateConfig(nats.space, partition, replicas))
  }
  await make(bucketConfig(nats.space.bucket(names.definitions), StorageType.File, replicas))
  await retryOperation(nats, names.cluster, () => ensureCluster(nats, replicas), within)
  await retryOperation(
    nats,
    names.blobs,
    async () => {
      await new Objm(nats.streams).create(nats.space.bucket(names.blobs), {
        storage: StorageType.File,
        replicas,
        compression: compressionOf(replicas) === StoreCompression.S2,
      })
      await ensureStream(nats, {
        name: nats.space.stream(`OBJ_${names.blobs}`),
        num_replicas: replicas,
        compression: compressionOf(replicas),
      })
    },
    within,
  )
}
