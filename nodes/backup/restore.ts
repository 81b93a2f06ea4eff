/**
 * Restores a backup into NATS servers that contain no data of Baton.
 *
 * Invariants:
 * R1. Nothing is written before the whole backup has been read and compared with its manifest.
 * R2. Until the restore is complete, a mark in the installation's bucket keeps nodes from starting.
 *     The records that define the installation are written last.
 * R3. Sequences stay unchanged, so cursors held by clients and effects remembered by actors remain
 *     valid.
 */
import { names } from '../../protocol/subjects.ts'
import type { Registry } from '../host/ports.ts'
import { codeOf, codes, errorText } from '../nats/failures.ts'
import {
  baseStreams,
  deleteStream,
  dropSnapshotObjects,
  restoreStream,
} from '../nats/journal/copy.ts'
import { createRegistry } from '../nats/journal/registry.ts'
import type { Nats } from '../nats/server/connect.ts'
import { ensureConfig, RESTORING } from '../nats/server/provision.ts'
import { ELECTION_TIMEOUT_MS, retryOperation } from '../nats/server/retry-operation.ts'
import { StartFault } from '../process/fault.ts'
import type { Installation } from '../storage/installation.ts'
import { readArchive } from './archive.ts'
import type { Progress } from './backup.ts'
import { type Manifest, readManifest, type StreamCopy, textOf, verify } from './manifest.ts'

export interface RestoreOptions {
  /** The number of replicas of each stream. If undefined, the number in the backup applies. */
  readonly replicas: number | undefined
  /** Whether to delete the leftovers of an interrupted restore first. */
  readonly again: boolean
}

/**
 * Restores a backup. Resolves when every replica has all the data.
 * @throws StartFault with advice when the restore is impossible or fails.
 */
export async function restoreBackup(
  nats: Nats,
  from: string,
  { replicas, again }: RestoreOptions,
  progress: Progress,
): Promise<Manifest & Pick<Installation, 'root_hash'>> {
  const archive = await readArchive(from)
  const manifest = await readManifest(archive, from)
  progress.begin(
    'checking',
    manifest.streams.reduce((sum, { bytes }) => sum + bytes, 0),
  )
  await verify(archive, manifest, (bytes) => progress.moved(bytes))
  progress.end(`complete, taken ${manifest.created_at} with Baton ${manifest.baton}`)
  const { prefix = '' } = manifest
  if (prefix !== nats.space.prefix)
    throw new StartFault(
      'The backup was taken ' +
        (prefix === ''
          ? 'without a prefix: unset BATON_NATS_PREFIX'
          : `under the prefix ${prefix}: set BATON_NATS_PREFIX=${prefix}`) +
        '.',
    )
  const copies = replicas ?? manifest.replicas
  const registry = createRegistry(nats, names.config)

  // Servers that have just started may still be electing a leader, so failed operations are
  // repeated.
  await retryOperation(nats, 'A restore', () => empty(nats, again), ELECTION_TIMEOUT_MS)
  await ensureConfig(nats, copies, ELECTION_TIMEOUT_MS)
  const began = new Date().toISOString()
  await retryOperation(nats, 'A restore', () => mark(registry, began), ELECTION_TIMEOUT_MS)
  for (const stream of manifest.streams) {
    progress.begin(stream.stream, stream.bytes)
    try {
      const state = await restoreStream(
        nats,
        stream.stream,
        stream,
        archive.read(stream.file),
        copies,
        (bytes) => progress.moved(bytes),
      )
      compare(stream, state)
      progress.end(`${state.messages} messages, ${state.first_seq} to ${state.last_seq}`)
    } catch (error) {
      if (error instanceof StartFault) throw error
      throw new StartFault(
        `${stream.stream} could not be restored: ${errorText(error)}. ` +
          'Check that all NATS servers are running and have free space, ' +
          `and that there are at least ${copies} of them; then repeat with --again.`,
      )
    }
  }
  await dropSnapshotObjects(nats)
  const records = JSON.parse(await textOf(archive, manifest.installation.file)) as Record<
    string,
    string
  >
  records['layout'] = JSON.stringify({
    partitions: manifest.partitions,
    shards: manifest.shards,
    replicas: copies,
  })
  for (const [key, value] of Object.entries(records)) await registry.put(key, value, 0)
  await registry.delete(RESTORING)
  const { root_hash } = JSON.parse(records['installation'] ?? '{}') as Partial<Installation>
  return { ...manifest, replicas: copies, root_hash: root_hash ?? '' }
}

/**
 * Marks a restore as in progress.
 * @param began start time of this restore, the same for all attempts to set the mark.
 * @throws StartFault when another restore is in progress.
 */
async function mark(registry: Registry, began: string): Promise<void> {
  if ((await registry.put(RESTORING, began, 0)) !== undefined) return
  // An earlier attempt may have stored the mark, although its answer was lost.
  if ((await registry.get(RESTORING))?.value !== began)
    throw new StartFault(
      'Another restore into these NATS servers is in progress. Wait until it has finished.',
    )
}

/**
 * Makes sure that the servers contain no data of Baton. With `again`, deletes the leftovers of an
 * interrupted restore.
 * @throws StartFault when the servers contain an installation, or leftovers and `again` is false.
 */
async function empty(nats: Nats, again: boolean): Promise<void> {
  const found = await baseStreams(nats)
  if (found.length === 0) return
  const unfinished = await createRegistry(nats, names.config)
    .get(RESTORING)
    .catch((error: unknown) => {
      if (codeOf(error) !== codes.streamNotFound) throw error
      return undefined
    })
  if (!unfinished) {
    const nodes = found.includes(`KV_${names.cluster}`)
      ? ' Nodes are running on it, or were until a moment ago.'
      : ''
    throw new StartFault(
      `These NATS servers already contain an installation of Baton (${found.join(', ')}).` +
        `${nodes} Restore into empty servers, or, if its data is not needed, ` +
        'stop all nodes and delete these streams first.',
    )
  }
  if (!again)
    throw new StartFault(
      `A restore that started at ${unfinished.value} has not finished. ` +
        'If it is no longer running, repeat with --again, which first deletes what it left.',
    )
  // The mark is deleted last, so that an interrupted deletion can be repeated.
  for (const name of found.filter((stream) => stream !== `KV_${names.config}`))
    await deleteStream(nats, name)
  await deleteStream(nats, `KV_${names.config}`)
}

/**
 * Returns the first sequence of a stream. For an empty stream, returns the sequence of the next
 * message, because servers report 0 as the first sequence if nothing was ever stored.
 */
const firstOf = ({ messages, first_seq, last_seq }: StreamCopy['state']): number =>
  messages === 0 ? last_seq + 1 : first_seq

/**
 * Compares a restored stream with the manifest. The copy of a stream may contain slightly more than
 * the manifest states, but never less.
 * @throws StartFault when the stream lacks messages or begins elsewhere.
 */
function compare({ stream, state }: StreamCopy, restored: StreamCopy['state']): void {
  if (
    firstOf(restored) === firstOf(state) &&
    restored.last_seq >= state.last_seq &&
    restored.messages >= state.messages
  )
    return
  const contentText = ({ messages, first_seq, last_seq }: StreamCopy['state']) =>
    `${messages} messages from ${first_seq} to ${last_seq}`
  throw new StartFault(
    `${stream} was restored with ${contentText(restored)}, but the backup has ${contentText(state)}. ` +
      'Repeat with --again; if that does not help, use another backup.',
  )
}
