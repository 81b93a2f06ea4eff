/**
 * Executes runs for load tests. The unit of work is one run, from the request that starts it until
 * the project's event stream reports its end.
 */
import { startBaton, type Target } from '../support/baton.ts'
import { type Amount, type Loaded, load, type Terms, type Work } from '../support/measure.ts'
import { Http } from './http.ts'
import { follow } from './sse.ts'
import { instantWorker } from './worker.ts'

const ENDED = '"data":{"status":"completed"'
const RUN = '"type":"run_updated","run_id":"'

/**
 * Finds completed runs in a part of the project's stream, and yields their ids. The text is
 * searched, not parsed, because parsing all frames would use too much CPU time of the shared
 * machine.
 */
export function* completedIn(text: string): Generator<string> {
  for (let end = text.indexOf(ENDED); end >= 0; end = text.indexOf(ENDED, end + ENDED.length)) {
    const line = text.lastIndexOf('\n', end)
    const run = text.indexOf(RUN, line)
    if (run >= 0 && run < end)
      yield text.slice(run + RUN.length, text.indexOf('"', run + RUN.length))
  }
}
/**
 * Starts a run and returns its id.
 * @param body see `runOf`.
 */
export async function startRun(http: Http, body: string): Promise<string> {
  const { status, body: text } = await http.post('/v1/projects/default/runs', body)
  const id = status === 202 ? /"id":"(run_\w+)"/.exec(text)?.[1] : undefined
  if (id === undefined) throw new Error(`a start was answered ${status}: ${text}`)
  return id
}
/** Returns the request body for a run with the given number of consecutive action steps. */
export const runOf = (steps: number, name: string): string =>
  JSON.stringify({
    spec: {
      steps: Array.from({ length: steps }, (_, i) => ({
        id: `s${i}`,
        kind: 'action',
        config: { action_name: 'send', parameters: { name } },
      })),
    },
  })

/** Number of events of a one-step run in the project's stream. */
export const EVENTS_PER_RUN = 10

/** Number of items of a `for_each` in flight: the maximum that a step allows. */
export const ITEMS_AT_ONCE = 100
/** Returns the request body for a run with a `for_each` over the given number of items. */
export const forEachOf = (items: number): string =>
  JSON.stringify({
    spec: {
      limits: { max_steps: items + 10 },
      steps: [
        {
          id: 'all',
          kind: 'for_each',
          config: {
            items: Array.from({ length: items }, (_, n) => n),
            max_concurrency: ITEMS_AT_ONCE,
            steps: [
              {
                id: 'one',
                kind: 'action',
                config: { action_name: 'send', parameters: { n: '${{ item }}' } },
              },
            ],
          },
        },
      ],
      output: { completed: '${{ steps.all.output.completed }}' },
    },
  })

/**
 * Prepares a load of runs with the given request bodies. One worker connection with 200 slots
 * executes their jobs. A run counts as executed when its first job arrives. `stop` ends the load,
 * and reports the number of retries after 503 responses, if there were any.
 */
export async function runsOf(
  bodyOf: (name: string) => string,
  target: Target,
  say: (line: string) => void,
): Promise<{ work: Work; stop: () => void }> {
  const http = new Http(target.port, target.key, 256)
  const executedAt = new Map<string, number>()
  const waiting = new Map<string, () => void>()
  const early = new Set<string>()
  const stopWorker = await instantWorker(target, 200, (run) => {
    if (!executedAt.has(run)) executedAt.set(run, performance.now())
  })
  const stopFollowing = await follow(
    target.port,
    target.key,
    '/v1/projects/default/runs/events',
    (text) => {
      for (const run of completedIn(text)) {
        const done = waiting.get(run)
        if (done) done()
        else early.add(run)
      }
    },
  )
  const work: Work = async (name) => {
    const id = await startRun(http, bodyOf(name))
    if (!early.delete(id)) await new Promise<void>((done) => waiting.set(id, done))
    waiting.delete(id)
    const at = executedAt.get(id)
    executedAt.delete(id)
    return at
  }
  const stop = () => {
    stopFollowing()
    stopWorker()
    http.close()
    if (http.unavailable > 0)
      say(
        `starts were answered 503 and sent again: ${http.unavailable}; the machine is too busy for a measurement`,
      )
  }
  return { work, stop }
}

/** Measures runs with the given number of steps on a separate server. */
export async function measureRuns(
  sync: string,
  steps: number,
  amount: Amount,
  { profile, say }: Terms,
): Promise<Loaded> {
  const server = await startBaton({ sync, profile })
  try {
    const { work, stop } = await runsOf((name) => runOf(steps, name), server, say)
    const measured = await load(work, amount, () => server.processes)
    stop()
    return measured
  } finally {
    await server.stop()
  }
}
