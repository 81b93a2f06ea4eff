/**
 * The log lines of a run, as a sequence to follow. Gateways announce that they have stored lines,
 * and the lines are read from the store. The sequence ends when the run has ended.
 */
import { isRefusal } from '../../protocol/errors.ts'
import type { LogFilters } from '../../protocol/jobs/logs.ts'
import type { World } from '../ports.ts'
import type { Follower, Page } from '../streams/follow.ts'
import { MAX_WAIT_MS } from '../streams/follow.ts'
import type { Source } from '../streams/followers.ts'
import { frame } from '../streams/sse.ts'
import { endsRun } from '../streams/timeline.ts'
import { sleep } from '../timing.ts'
import { runStanding } from './query.ts'
import { readLog } from './read.ts'

/**
 * Maximum number of lines per page: `usual` by default, and `long` for followers that lag behind.
 */
const PAGE = { usual: 200, long: 1000 } as const
/**
 * Delay before another read, in milliseconds, if the replica that answered lacks announced lines.
 */
const PAUSE_MS = 50
/**
 * Milliseconds between the end of a run and the final check for its lines, so that late lines can
 * still arrive.
 */
const LATE_LINES_MS = 1000

/**
 * Returns the source of the log lines of a run. Its queries are refused with `not_found` when the
 * project has no such run.
 * @param given the filters. Other members are ignored.
 */
export function logSource(world: World, project: string, run: string, given: LogFilters): Source {
  const { step_key, job_id, level, contains } = given
  const filters: LogFilters = {
    ...(step_key !== undefined && { step_key }),
    ...(job_id !== undefined && { job_id }),
    ...(level !== undefined && { level }),
    ...(contains !== undefined && { contains }),
  }
  const read = async (after: number, limit: number): Promise<Page> => {
    const page = world.logs
      ? await readLog(world.logs, project, run, { ...filters, after, limit })
      : { items: [], has_more: false, next_after: after }
    return {
      items: page.items.map((line) => ({
        cursor: line.sequence,
        frame: frame('log.line', line, line.sequence),
      })),
      last: page.next_after,
      more: page.has_more,
      ended: false,
      oldest: 0,
    }
  }
  return {
    key: `log ${project} ${run} ${JSON.stringify(filters)}`,
    comment: ': keepalive',
    ask: async (after, fresh, behind) => {
      // `fresh` is undefined only in a client's first query and in the queries of `Follower.check`.
      // No other query needs to know whether the run exists and has ended.
      const standing = fresh === undefined ? await runStanding(world, project, run) : undefined
      if (standing && isRefusal(standing)) return standing
      const limit = behind ? PAGE.long : PAGE.usual
      const until = world.monotonic() + MAX_WAIT_MS
      for (;;) {
        const page = await read(after, limit)
        // Announced lines may have been deleted, so the wait for them is bounded.
        if (page.more || fresh === undefined || page.last >= fresh || world.monotonic() >= until)
          return { ...page, ended: standing?.ended === true }
        await sleep(world, PAUSE_MS)
      }
    },
    subscribe: (follower: Follower) => {
      let cancel = () => {}
      const stops = [
        world.logs?.onStored(project, run, (position) => follower.notice(position)),
        world.live(project, 'run', run, (placed) => {
          if (!placed.stripped && !endsRun(placed)) return
          cancel()
          cancel = world.later(LATE_LINES_MS, () => follower.check())
        }),
      ]
      return () => {
        cancel()
        for (const stop of stops) stop?.()
      }
    },
  }
}
