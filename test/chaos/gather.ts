/** Reads the state of the service after all faults, when it is at rest. */
import type { Asker, Json } from './ask.ts'
import type { Recorded } from './history.ts'
import { follow } from './streams.ts'

const RUNS = '/projects/default/runs'
/** Timeout for reading the whole feed, in milliseconds. */
const READ_TIMEOUT_MS = 240_000

async function get(asker: Asker, path: string): Promise<Json> {
  const reply = await asker.ask({ method: 'GET', path }, false)
  if (reply?.status !== 200)
    throw new Error(`GET ${path} was answered ${reply?.status} ${JSON.stringify(reply?.body)}`)
  return reply.body
}

/** Lists the stored runs with this status, or all runs if `status` is empty. */
export async function readRuns(asker: Asker, status = ''): Promise<Recorded[]> {
  const runs: Recorded[] = []
  for (let cursor: unknown; ; ) {
    const page = await get(
      asker,
      `${RUNS}?limit=200${status && `&status=${status}`}` +
        (cursor === undefined ? '' : `&cursor=${encodeURIComponent(String(cursor))}`),
    )
    for (const item of page['items'] as readonly Json[]) {
      const result = Object.values((item['result'] ?? {}) as Json)
        .map((one) => (one as Json | null)?.['n'])
        .find((n) => n !== undefined)
      runs.push({
        id: String(item['id']),
        status: String(item['status']),
        key: String((item['input'] as Json | undefined)?.['n']),
        ...(result !== undefined && { result: String(result) }),
      })
    }
    if (page['has_more'] !== true) return runs
    cursor = page['next_cursor']
  }
}

/**
 * Reads the timeline of a run. Returns its frames as `id/type`, and the keys of completed steps.
 */
export async function readTimeline(
  asker: Asker,
  run: string,
): Promise<{ frames: string[]; steps: string[] }> {
  const frames: string[] = []
  const steps: string[] = []
  for (let after = 0; ; ) {
    const items = (await get(asker, `/runs/${run}/events?limit=200&after_sequence=${after}`))[
      'items'
    ] as readonly { sequence: number; event_type: string; step_key?: string }[]
    for (const { sequence, event_type, step_key } of items) {
      frames.push(`${sequence}/${event_type}`)
      if (event_type === 'step.completed') steps.push(step_key ?? '')
    }
    if (items.length < 200) return { frames, steps }
    after = items.at(-1)?.sequence ?? after
  }
}

/**
 * Reads the feed from its start to the end of a run. Returns its frames, and the statuses of each
 * run in order.
 * @throws {Error} when the run has not completed in the feed within `READ_TIMEOUT_MS`.
 */
export async function readFeed(
  urls: readonly string[],
  key: string,
  first: number,
  last: string,
): Promise<{ frames: readonly string[]; courses: Map<string, string[]>; connections: number }> {
  const courses = new Map<string, string[]>()
  const feed = follow({
    name: 'the feed, read afresh',
    urls,
    key,
    path: `${RUNS}/events?since=0`,
    first,
    signal: AbortSignal.timeout(READ_TIMEOUT_MS),
    on: ({ type, data }) => {
      if (type !== 'run_updated') return false
      const run = String(data['run_id'])
      const status = String((data['data'] as Json)['status'])
      const course = courses.get(run) ?? []
      course.push(status)
      courses.set(run, course)
      return run === last && status === 'completed'
    },
  })
  await feed.done
  if (courses.get(last)?.at(-1) !== 'completed')
    throw new Error(
      `the feed does not come to the end of the last run in ${READ_TIMEOUT_MS / 1000} s`,
    )
  return { frames: feed.frames, courses, connections: feed.connections }
}
