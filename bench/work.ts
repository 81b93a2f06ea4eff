/** A run from the request that starts it until the project's event stream tells its end, as a piece of work. */
import type { Target } from './baton.ts'
import { Http } from './http.ts'
import type { Work } from './measure.ts'
import { follow } from './sse.ts'
import { instantWorker } from './worker.ts'

const ENDED = '"data":{"status":"completed"'
const RUN = '"type":"run_updated","run_id":"'

/** The runs that frames of the project's stream say to be completed. They are looked for in the text: parsing all frames would cost more than the server's part. */
export function* completedIn(text: string): Generator<string> {
  for (let end = text.indexOf(ENDED); end >= 0; end = text.indexOf(ENDED, end + ENDED.length)) {
    const line = text.lastIndexOf('\n', end)
    const run = text.indexOf(RUN, line)
    if (run >= 0 && run < end) yield text.slice(run + RUN.length, text.indexOf('"', run + RUN.length))
  }
}
/** The id in an answer to a start. */
export function startedRun({ status, body }: { readonly status: number; readonly body: string }): string {
  const id = status === 202 ? /"id":"(run_\w+)"/.exec(body)?.[1] : undefined
  if (id === undefined) throw new Error(`a start was answered ${status}: ${body}`)
  return id
}
/** The request for a run of so many action steps, one after the other. */
export const runOf = (steps: number, name: string): string =>
  JSON.stringify({ spec: { steps: Array.from({ length: steps }, (_, i) => ({ id: `s${i}`, kind: 'action', config: { action_name: 'send', parameters: { name } } })) } })

/** Runs of so many steps through one worker connection with 200 slots. Their first job counts as the execution. */
export async function runsOf(steps: number, target: Target): Promise<{ work: Work; stop: () => void }> {
  const http = new Http(target.port, target.key, 256)
  const executedAt = new Map<string, number>()
  const waiting = new Map<string, () => void>()
  const early = new Set<string>()
  const stopWorker = await instantWorker(target, 200, (run) => { if (!executedAt.has(run)) executedAt.set(run, performance.now()) })
  const stopFollowing = await follow(target.port, target.key, '/v1/projects/default/runs/events', (text) => {
    for (const run of completedIn(text)) {
      const done = waiting.get(run)
      if (done) done()
      else early.add(run)
    }
  })
  const work: Work = async (name) => {
    const id = startedRun(await http.post('/v1/projects/default/runs', runOf(steps, name)))
    if (!early.delete(id)) await new Promise<void>((done) => waiting.set(id, done))
    waiting.delete(id)
    const at = executedAt.get(id)
    executedAt.delete(id)
    return at
  }
  return { work, stop: () => { stopFollowing(); stopWorker(); http.close() } }
}
