/**
 * The streams and buckets, created when absent and otherwise left as they are. How many partitions and shards there are is
 * decided once, when the installation is created: ids are placed by these numbers.
 */
import {
  DiscardPolicy,
  PersistMode,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
} from '@nats-io/jetstream'
import { Objm } from '@nats-io/obj'
import { ClosedConnectionError, nanos } from '@nats-io/transport-node'
import { setTimeout as sleep } from 'node:timers/promises'
import { names, subjects } from '../../../protocol/subjects.ts'
import { StartFault } from '../../process/fault.ts'
import type { Nats } from './connect.ts'
import { codeOf, codes, forbidden, sentence } from '../failures.ts'
import type { Namespace } from './namespace.ts'
import { createRegistry } from '../journal/registry.ts'

/** What is fixed at creation; `replicas` may be raised later. */
export interface Layout {
  readonly partitions: number
  readonly shards: number
  readonly replicas: number
}
type Configured = Partial<StreamConfig> & { readonly name: string }

/** Duplicates are recognised for this long; a helper only, the actors remember their commands. */
const DUPLICATES = nanos(120_000)

/**
 * How a stream on disk is compressed. Replicated ones are not: a replica of nats-server 2.15.1 that is killed cuts its log back
 * to the last applied entry when it starts, fails at a compressed block ("s2: corrupt input"), and never catches up.
 */
const compressionOf = (replicas: number): StoreCompression =>
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
 * A bucket as KV clients know it, with one value per key. Reads go to the leader (`allow_direct: false`).
 * @param first first revision; a bucket in memory comes back empty, and must not give out a revision twice.
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
 * Snapshots are a cache: their stream loses its newest part as a whole, checkpoint included, so they need not be on disk
 * before they are acknowledged. One server can be told so (measured with fsync: 500 against 12,900 writes/s on a busy
 * disk); a replicated stream cannot.
 */
const stateConfig = (space: Namespace, partition: number, replicas: number): Configured => ({
  ...bucketConfig(space.bucket(names.state(partition)), StorageType.File, replicas),
  ...(replicas === 1 && { persist_mode: PersistMode.Async }),
})

/**
 * Create a stream when it is absent; raise its replicas and switch its compression when they differ. What is stored stays as
 * it is: compression holds for blocks that are filled from then on. Safe to run in many processes at once.
 */
async function ensureStream({ manager, log }: Nats, config: Configured): Promise<void> {
  const found = await manager.streams.info(config.name).catch((error: unknown) => {
    if (codeOf(error) === codes.streamNotFound) return undefined
    throw error
  })
  if (!found) {
    await manager.streams.add(config)
    log.info({ stream: config.name, replicas: config.num_replicas }, 'created')
    return
  }
  const { num_replicas: before, compression = StoreCompression.None } = found.config
  const replicas = Math.max(before, config.num_replicas ?? 1)
  const wanted = {
    num_replicas: replicas,
    compression: config.compression === undefined ? compression : compressionOf(replicas),
  }
  if (replicas === before && wanted.compression === compression) return
  if (replicas > before && found.config.persist_mode === PersistMode.Async) {
    // A replicated stream cannot write lazily, and the mode cannot change; what it holds is a cache.
    await manager.streams.delete(config.name)
    await manager.streams.add(config)
  } else await manager.streams.update(config.name, { ...found.config, ...wanted })
  log.info({ stream: config.name, replicas, compression: wanted.compression }, 'stream updated')
}

/** The bucket of leases, which is kept in memory: it is gone after a restart of all servers, and made again. */
export const ensureCluster = (nats: Nats, replicas: number): Promise<void> =>
  ensureStream(
    nats,
    bucketConfig(nats.space.bucket(names.cluster), StorageType.Memory, replicas, Date.now()),
  )

/** Milliseconds that a node waits for each thing while the servers elect. */
const WITHIN = 60_000
/** The same for a command that somebody waits for. */
export const ELECTING = 30_000
/** Do something again while the servers elect a leader or lack peers. @param within milliseconds; then a Fault says what to check. */
export async function patiently<T>(
  nats: Pick<Nats, 'log'>,
  what: string,
  run: () => Promise<T>,
  within = WITHIN,
): Promise<T> {
  const started = Date.now()
  let told = started
  for (let attempt = 0; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (error instanceof StartFault || error instanceof ClosedConnectionError) throw error
      const missing = forbidden(error)
      if (missing) throw missing
      if (codeOf(error) === codes.notEnabledForAccount)
        throw new StartFault(
          'JetStream is not enabled for the NATS account of this process: give that account JetStream limits.',
        )
      const now = Date.now()
      if (now - started > within) {
        const check =
          'Check that all NATS servers of the cluster run, that they have JetStream and space, and that there are as many as BATON_REPLICAS.'
        throw new StartFault(`${what} cannot be set up: ${sentence(error)}. ${check}`)
      }
      if (now - told > 3000) {
        told = now
        nats.log.info({ what, reason: sentence(error) }, 'waiting for the NATS cluster')
      }
      await sleep(Math.min(100 * 2 ** attempt, 1000))
    }
  }
}

/** Key of the installation's bucket that stands for a restore under way: nothing must start on half of the streams. */
export const RESTORING = 'restoring'
/** The bucket of the installation's records; made when absent. @throws StartFault when the servers do not provide it in time. */
export const ensureConfig = (nats: Nats, replicas: number, within: number): Promise<void> =>
  patiently(
    nats,
    `KV_${names.config}`,
    () =>
      ensureStream(nats, bucketConfig(nats.space.bucket(names.config), StorageType.File, replicas)),
    within,
  )

/** Store the layout, or compare it with the stored one. */
async function settleLayout(nats: Nats, wanted: Layout): Promise<void> {
  const registry = createRegistry(nats, names.config)
  if (await registry.get(RESTORING))
    throw new StartFault(
      'A restore into these NATS servers has not finished. Wait for it; if it was broken off, repeat it with `baton restore --again`.',
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
      `This installation was created with ${kept} ${field}; that cannot change. Set BATON_${field.toUpperCase()}=${kept}, or start on an empty store.`,
    )
  }
  if (wanted.replicas < stored.replicas) {
    throw new StartFault(
      `This installation keeps ${stored.replicas} replicas; they can be raised but not lowered. Set BATON_REPLICAS=${stored.replicas}.`,
    )
  }
  if (
    wanted.replicas > stored.replicas &&
    (await registry.put('layout', JSON.stringify(wanted), found.revision)) === undefined
  )
    await settleLayout(nats, wanted)
}

/**
 * A journal of an installation that exists is never created again: nats-server leaves out a stream that it cannot read, and an
 * empty one in its place would be taken for the truth.
 * @throws StartFault when one is missing.
 */
async function requireJournals(nats: Nats, partitions: number): Promise<void> {
  if (!(await createRegistry(nats, names.config).get('installation'))) return
  for (let partition = 0; partition < partitions; partition++) {
    const stream = nats.space.stream(names.journal(partition))
    if (await isMissing(nats, stream, LOOKS))
      throw new StartFault(
        `The NATS servers do not have ${stream}, the journal of this installation. Their log says why; the usual reason is a damaged file. Restore the last backup into empty servers, or, in a cluster, the server's folder from another one.`,
      )
  }
}
/** Looks at a stream that is not found, half a second apart: a server that has just joined or restored may not know it yet. */
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
 * Make sure that everything exists.
 * @param within milliseconds to wait for each thing while the servers elect; 60 s by default.
 * @throws StartFault when the layout differs from the stored one, or the servers do not provide in time.
 */
export async function provision(nats: Nats, layout: Layout, within = WITHIN): Promise<void> {
  const { partitions, replicas } = layout
  const make = (config: Configured) =>
    patiently(nats, config.name, () => ensureStream(nats, config), within)
  await ensureConfig(nats, replicas, within)
  await patiently(nats, 'the stored layout', () => settleLayout(nats, layout), within)
  await patiently(nats, 'the journals', () => requireJournals(nats, partitions), within)
  for (let partition = 0; partition < partitions; partition++) {
    await make(journalConfig(nats.space, partition, replicas))
    await make(stateConfig(nats.space, partition, replicas))
  }
  await patiently(nats, names.cluster, () => ensureCluster(nats, replicas), within)
  await patiently(
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
