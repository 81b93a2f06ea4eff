/**
 * Cleans up the object store periodically, beginning soon after the node starts: removes the chunks
 * of values whose writer died, and files that no artifact needs any longer. Several nodes may
 * remove chunks concurrently. Only the owner of the first shard examines files, page by page.
 */
import type { Files, World } from '../../gateway/ports.ts'
import type { Clock } from '../host/ports.ts'
import { sweepChunks } from '../nats/blobs.ts'
import type { Nats } from '../nats/server/connect.ts'
import type { FileList } from '../storage/file-list.ts'
import { sweepArtifacts } from '../storage/sweep-artifacts.ts'

/** Milliseconds from the start of the node until the first sweep. */
const FIRST_SWEEP_MS = 120_000
/** Milliseconds from the end of a sweep until the next one. */
const SWEEP_EVERY_MS = 6 * 3_600_000
/** Milliseconds between two pages of files within one sweep. */
const PAGE_EVERY_MS = 60_000
/** Minimum age in milliseconds of chunks and files that are removed. */
const MIN_AGE_MS = 3_600_000
/** Maximum number of files per page. */
const PAGE = 1000

/** The owner of this shard examines the files of artifacts. */
const FIRST_SHARD = '0.0'

/**
 * The parts of a node that a sweep uses. `host` returns the names of the shards that the node owns.
 */
interface Swept {
  readonly nats: Nats
  readonly files: Files & FileList
  readonly world: World
  readonly clock: Clock
  readonly host: { owned(): readonly string[] }
}

/** Starts sweeping. Returns a function that stops the sweeps. */
export function startSweeping(swept: Swept): () => Promise<void> {
  const { nats, files, world, clock, host } = swept
  const { log } = world
  const failed = (err: unknown): undefined => {
    log.warn({ event: 'object_store_sweep_failed', err }, 'object store sweep failed')
  }
  const chunks = async (): Promise<undefined> => {
    const values = await sweepChunks(nats, clock.now(), MIN_AGE_MS)
    if (values > 0)
      log.info(
        { event: 'object_store_swept', values },
        'incomplete values removed from the object store',
      )
  }
  const page = async (after: string | undefined): Promise<string | undefined> => {
    if (!host.owned().includes(FIRST_SHARD)) return undefined
    const sweep = { files, world, limit: PAGE, minAge: MIN_AGE_MS }
    const { removed, next } = await sweepArtifacts(sweep, after)
    if (removed > 0)
      log.info({ event: 'artifacts_swept', files: removed }, 'files without an artifact removed')
    return next
  }
  const stops = [
    repeat(clock, () => chunks().catch(failed)),
    repeat(clock, (after) => page(after).catch(failed)),
  ]
  return async () => {
    for (const stop of stops) await stop()
  }
}

/**
 * Calls `run` repeatedly, each time after the previous call has ended. If a call returns a
 * position, the next call follows `PAGE_EVERY_MS` later and receives the position. Otherwise, it
 * follows `SWEEP_EVERY_MS` later.
 */
function repeat(
  clock: Clock,
  run: (after: string | undefined) => Promise<string | undefined>,
): () => Promise<void> {
  let stopped = false
  let cancel = () => {}
  let running: Promise<void> = Promise.resolve()
  const plan = (ms: number, after?: string) => {
    if (!stopped)
      cancel = clock.later(ms, () => {
        running = run(after).then((next) =>
          plan(next === undefined ? SWEEP_EVERY_MS : PAGE_EVERY_MS, next),
        )
      })
  }
  plan(FIRST_SWEEP_MS)
  return async () => {
    stopped = true
    cancel()
    await running
  }
}
