/**
 * Takes a backup of a running system.
 *
 * Invariants:
 * B1. The backup contains everything that was acknowledged before it began. Each journal in it is a
 *     prefix of the original journal.
 * B2. Large values are copied after the journals. The backup therefore contains every value to
 *     which a copied envelope refers, except values that were erased.
 * B3. Definitions of the resolver are included, because they cannot be derived from the journals.
 * B4. Snapshots, views, log lines and node leases are left out. The copy of the object store is
 *     complete, so it contains large snapshots, which a restore deletes.
 * B5. Every journal begins with its first entry. Without snapshots, a journal whose beginning was
 *     deleted could not be replayed.
 */
import { names } from '../../protocol/subjects.ts'
import { createBlobs } from '../nats/blobs.ts'
import { codeOf, codes, errorText } from '../nats/failures.ts'
import { snapshotStream } from '../nats/journal/copy.ts'
import { createJournal } from '../nats/journal/journal.ts'
import { createRegistry } from '../nats/journal/registry.ts'
import type { Nats } from '../nats/server/connect.ts'
import { type Layout, RESTORING } from '../nats/server/provision.ts'
import { ELECTION_TIMEOUT_MS, retryOperation } from '../nats/server/retry-operation.ts'
import { StartFault } from '../process/fault.ts'
import { version } from '../version.ts'
import { type ArchiveWriter, writeArchive } from './archive.ts'
import { hasCrossingEffect } from './crossing.ts'
import { MANIFEST, type Manifest, type StreamCopy } from './manifest.ts'

/**
 * Receives the progress of each part: `begin` with its approximate size in bytes (0 when unknown),
 * `moved` for bytes that were processed, and `end`.
 */
export interface Progress {
  begin(what: string, about: number): void
  moved(bytes: number): void
  end(summary: string): void
}
/** The maximum number of attempts to obtain consistent copies of all journals. */
const MAX_ATTEMPTS = 5

/**
 * Takes a backup.
 * @throws StartFault with advice when there is no complete installation, the path is in use, a
 *   journal lacks its beginning, a stream cannot be copied, or no attempt produced consistent
 *   copies.
 */
export async function takeBackup(nats: Nats, to: string, progress: Progress): Promise<Manifest> {
  const registry = createRegistry(nats, names.config)
  const list = () =>
    registry.list('').catch((error: unknown) => {
      if (codeOf(error) !== codes.streamNotFound) throw error
      throw new StartFault(
        'There is no installation of Baton on these NATS servers. Check the addresses in BATON_NATS.',
      )
    })
  const records = await retryOperation(nats, 'A backup', list, ELECTION_TIMEOUT_MS)
  const layout = records.find(({ key }) => key === 'layout')
  if (records.some(({ key }) => key === RESTORING))
    throw new StartFault(
      'A restore into these NATS servers has not finished, ' +
        'so there is no complete installation to back up. Finish the restore first.',
    )
  if (!layout || !records.some(({ key }) => key === 'installation'))
    throw new StartFault(
      'There is no complete installation of Baton on these NATS servers. Start a node first.',
    )
  for (let attempt = 1; ; attempt++) {
    const archive = await writeArchive(to)
    try {
      const manifest = await copy(
        nats,
        archive,
        JSON.parse(layout.value) as Layout,
        records,
        progress,
      )
      if (manifest) {
        await archive.finish()
        return manifest
      }
      if (attempt >= MAX_ATTEMPTS)
        throw new StartFault(
          'The partitions exchanged messages during every copy attempt. ' +
            'Try again when fewer handles are being changed.',
        )
    } catch (error) {
      await archive.abandon()
      throw error
    }
    await archive.abandon()
  }
}

/**
 * Copies everything once. Returns undefined when the copies of the partitions are inconsistent with
 * each other.
 */
async function copy(
  nats: Nats,
  archive: ArchiveWriter,
  layout: Layout,
  records: readonly { key: string; value: string }[],
  progress: Progress,
): Promise<Manifest | undefined> {
  const created_at = new Date().toISOString()
  const file = 'installation.json'
  const installation = await archive.add(file, [
    Buffer.from(JSON.stringify(Object.fromEntries(records.map(({ key, value }) => [key, value])))),
  ])
  const journal = createJournal(nats)
  const partitions = Array.from({ length: layout.partitions }, (_, partition) => partition)
  const before = await Promise.all(partitions.map((partition) => journal.position(partition)))
  const streams: StreamCopy[] = []
  for (const partition of partitions) {
    const copied = await copyStream(nats, archive, names.journal(partition), progress)
    requireBeginning(copied)
    streams.push(copied)
  }
  if (layout.partitions > 1) {
    const copies = partitions.map((partition) => ({
      partition,
      from: before[partition]?.last ?? 0,
      last: streams[partition]?.state.last_seq ?? 0,
    }))
    if (await hasCrossingEffect(journal, createBlobs(nats), layout.shards, copies)) return undefined
  }
  const definitions = `KV_${names.definitions}`
  if (await hasStream(nats, definitions))
    streams.push(await copyStream(nats, archive, definitions, progress))
  streams.push(await copyStream(nats, archive, `OBJ_${names.blobs}`, progress))
  const manifest: Manifest = {
    format: 1,
    created_at,
    baton: version,
    nats_server: nats.version,
    ...layout,
    ...(nats.space.prefix !== '' && { prefix: nats.space.prefix }),
    installation: { file, ...installation },
    streams,
  }
  await archive.add(MANIFEST, [Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`)])
  return manifest
}

/** @throws StartFault when the beginning of a journal was deleted. */
function requireBeginning({ stream, state: { first_seq, last_seq } }: StreamCopy): void {
  if (first_seq <= 1 || last_seq === 0) return
  throw new StartFault(
    `${stream} begins at ${first_seq}, because its beginning was removed. ` +
      'A backup contains no snapshots, so it could not be restored. ' +
      'Stop all nodes and NATS servers, and copy the data folders of the NATS servers instead.',
  )
}
/**
 * Returns whether the servers have the stream. Installations of older releases may lack some
 * streams.
 */
const hasStream = ({ manager, space }: Nats, name: string): Promise<boolean> =>
  manager.streams.info(space.stream(name)).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) !== codes.streamNotFound) throw error
      return false
    },
  )
async function copyStream(
  nats: Nats,
  archive: ArchiveWriter,
  stream: string,
  progress: Progress,
): Promise<StreamCopy> {
  try {
    const { config, state, chunks } = await snapshotStream(nats, stream)
    progress.begin(stream, state.bytes)
    const file = `${stream}.tar.s2`
    const written = await archive.add(file, counted(chunks, progress))
    const { messages, bytes, first_seq, last_seq } = state
    progress.end(`${messages} messages, ${first_seq} to ${last_seq}`)
    return { stream, config, state: { messages, bytes, first_seq, last_seq }, file, ...written }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC')
      throw new StartFault(
        'There is no space left for the backup. Choose a location with more space.',
      )
    throw new StartFault(
      `${stream} could not be copied: ${errorText(error)}. Check the NATS servers (\`/readyz\` ` +
        'of a node reports what is unavailable) and try again.',
    )
  }
}
async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  progress: Progress,
): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of chunks) {
    progress.moved(chunk.length)
    yield chunk
  }
}
