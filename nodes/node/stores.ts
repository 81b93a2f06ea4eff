/**
 * Opens the stores of a node: the streams and the records of the installation, the journal with the
 * watch over its storage, the snapshots, and the files.
 */
import type { Files } from '../../gateway/ports.ts'
import { names } from '../../protocol/subjects.ts'
import type { Blobs, Journal, Snapshots } from '../host/ports.ts'
import { createBlobs } from '../nats/blobs.ts'
import { createJournal } from '../nats/journal/journal.ts'
import { createRegistry } from '../nats/journal/registry.ts'
import { createSnapshots } from '../nats/journal/snapshots.ts'
import { accountUse } from '../nats/server/account.ts'
import { ensureConfig, provision } from '../nats/server/provision.ts'
import { retryOperation } from '../nats/server/retry-operation.ts'
import { settleLocation } from '../s3/location.ts'
import { openFiles } from '../s3/open-files.ts'
import type { FileList } from '../storage/file-list.ts'
import { type Installed, install, requireOwnInstallation } from '../storage/installation.ts'
import { type EmbeddedStore, type StorageWatch, watchStorage } from '../storage/watch.ts'
import { systemClock } from '../system.ts'
import type { NodeContext } from './context.ts'

export interface Stores {
  readonly installed: Installed
  readonly journal: Journal
  /** Detects when the journal will no longer be able to accept entries. */
  readonly watch: StorageWatch
  readonly snapshots: Snapshots
  /** The object store of NATS. */
  readonly blobs: Blobs
  readonly files: Files & FileList
}

/**
 * Opens the stores.
 * @param embedded the NATS server that this process runs; undefined when the servers run elsewhere.
 * @throws StartFault when the data belongs to another installation, or the files are elsewhere.
 */
export async function openStores(
  node: NodeContext,
  embedded: EmbeddedStore | undefined,
): Promise<Stores> {
  const { config, nats } = node
  const installed = await openInstallation(node)
  const { journal, watch } = await openJournal(node, embedded)
  const snapshots = createSnapshots(nats)
  const blobs = createBlobs(nats)
  const files = await openFiles(config.bucket, blobs, node.onStop)
  // Nodes with other roles may not store files.
  if (config.roles.includes('shards') || config.roles.includes('gateway'))
    await retryOperation(nats, 'the place of the files', () =>
      settleLocation(config.bucket, blobs, files, installed.organization),
    )
  return { installed, journal, watch, snapshots, blobs, files }
}

/** Creates the streams and the records of the installation that do not exist yet. */
async function openInstallation({ config, nats }: NodeContext): Promise<Installed> {
  const { partitions, shards, replicas } = config
  const registry = createRegistry(nats, names.config)
  const owner = { rootKey: config.root_key, keyPrefix: config.key_prefix, data: config.data }
  const retry = <T>(run: () => Promise<T>) => retryOperation(nats, 'the installation', run)
  // A start with another prefix creates no streams.
  await ensureConfig(nats, replicas)
  await retry(() => requireOwnInstallation(registry, owner))
  await provision(nats, { partitions, shards, replicas })
  return await retry(() => install(registry, owner))
}

async function openJournal(
  { config, nats, log, metrics, onStop }: NodeContext,
  embedded: EmbeddedStore | undefined,
): Promise<Pick<Stores, 'journal' | 'watch'>> {
  const journal = createJournal(nats, {
    appended: (seconds, bytes) => {
      metrics.append(seconds, bytes)
      watch.stored(bytes)
    },
    doubted: metrics.doubted,
    refused: (reason) => watch.refused(reason),
  })
  const watch: StorageWatch = await watchStorage({
    partitions: config.partitions,
    journal,
    clock: systemClock,
    log,
    metrics,
    account: () => accountUse(nats),
    ...(embedded && { embedded }),
  })
  onStop(async () => watch.stop())
  return { journal, watch }
}
