/**
 * Creates templates of journal entries: entries that a server wrote for runs of every kind, as
 * strings whose ids, times and positions can be replaced.
 */
import type { Entry, Event } from '../../protocol/entry.ts'
import type { Baton } from '../support/baton.ts'
import { journalOf } from '../support/journal.ts'
import type { Http } from './http.ts'
import { instantWorker } from './worker.ts'

/**
 * The entries of a run whose jobs are in a given queue. `index` is the index of the run's first
 * event in the envelope. `frames` is the number of the run's frames in the project's stream.
 */
interface Prepared {
  readonly events: number
  readonly frames: number
  text(id: string, at: number, index: number): string
}
export type Template = (queue: string) => Prepared

const WORKFLOWS = 4
/** Returns the `workflow_type` of a workflow's runs, by which lists of runs can be filtered. */
export const typeOf = (workflow: number): string => `type-${workflow}`
/**
 * Number of runs with each outcome, in every twenty runs: completed (`send`), failed, still
 * suspended (`hold`), and cancelled.
 */
const mix = [
  ['send', 17],
  ['fail', 1],
  ['hold', 1],
  ['cancel', 1],
] as const
const RUNS = '/v1/projects/default/runs'

async function posted(http: Http, path: string, body: unknown): Promise<string> {
  const { status, body: text } = await http.post(path, JSON.stringify(body))
  if (status >= 300) throw new Error(`${path} was answered ${status}: ${text}`)
  return (JSON.parse(text) as { id: string }).id
}
const eventually = async (what: string, look: () => Promise<boolean>): Promise<void> => {
  for (let i = 0; i < 300; i++) {
    if (await look()) return
    await new Promise((again) => setTimeout(again, 100))
  }
  throw new Error(`${what} did not happen within 30 s`)
}

/**
 * Executes runs of every kind and of several workflows on a server, and builds templates from the
 * resulting journal entries.
 */
export async function makeTemplates(server: Baton, http: Http): Promise<readonly Template[]> {
  const stopWorker = await instantWorker(server, 10, () => {})
  const made: { id: string; times: number; status: string }[] = []
  for (let w = 0; w < WORKFLOWS; w++) {
    const steps = [
      {
        id: 'only',
        kind: 'action',
        config: { action_name: 'ACTION', parameters: { to: 'somebody@example.org', number: w } },
      },
    ]
    for (const [action, times] of mix) {
      const named = JSON.stringify(steps).replace('ACTION', action === 'cancel' ? 'hold' : action)
      const workflow = await posted(http, '/v1/projects/default/workflows', {
        handle: `w${w}-${action}`,
        name: `Workflow ${w}`,
        spec: { steps: JSON.parse(named) as unknown },
      })
      const id = await posted(http, `/v1/projects/default/workflows/${workflow}/runs`, {
        workflow_type: typeOf(w),
      })
      if (action === 'cancel') await posted(http, `${RUNS}/${id}/cancel`, {})
      made.push({
        id,
        times,
        status: { send: 'completed', fail: 'failed', hold: 'suspended', cancel: 'cancelled' }[
          action
        ],
      })
    }
  }
  for (const { id, status } of made)
    await eventually(`the end of a run as ${status}`, async () =>
      (await http.get(`${RUNS}/${id}`)).body.includes(`"id":"${id}","status":"${status}"`),
    )
  stopWorker()
  const entries = await journalOf(server.data)
  return made.flatMap(({ id, times }) =>
    new Array<Template>(times).fill(template(entries.filter((entry) => speaksOf(entry, id)))),
  )
}

const speaksOf = (entry: Entry, id: string): boolean =>
  (entry.kind === 'run' && entry.id === id) ||
  (entry.kind === 'queue' && JSON.stringify(entry.events).includes(id))

/**
 * Returns the number of frames that `views/tables/runs/feed.ts` creates in the project's stream for
 * an event.
 */
const framesOf = (
  entry: Entry,
  event: Event & {
    readonly run?: { readonly status?: string }
    readonly job?: { readonly status?: string }
  },
): number =>
  entry.kind === 'queue'
    ? Number(event.job?.status !== undefined)
    : Number(/^action\.(called|completed|failed|retried)$/.test(event.type)) +
      Number(event.run?.status !== undefined)

function template(entries: readonly Entry[]): Template {
  // Entries of the queue also contain events of other jobs that were claimed together with the
  // run's job. These events are omitted. The entries remain in commit order.
  const job = /"id":"(job_\w+)"/.exec(
    JSON.stringify(entries.filter(({ kind }) => kind === 'queue')),
  )?.[1]
  const own = entries.map((entry) =>
    entry.kind === 'queue'
      ? { ...entry, events: entry.events.filter((event) => (event as { id?: string }).id === job) }
      : entry,
  )
  return (queue) => {
    let index = 0
    let frames = 0
    const parts: string[] = []
    const before = new Map<string, number>()
    for (const entry of own) {
      const known = before.get(entry.kind)
      parts.push(
        JSON.stringify({
          ...entry,
          ...(entry.kind === 'queue' && { id: queue }),
          prev: known === undefined ? 0 : `<before ${known}>`,
        }),
      )
      index += entry.events.length
      before.set(entry.kind, index - 1)
      for (const event of entry.events) frames += framesOf(entry, event)
    }
    // A run, its job and its wait get the same new id after their prefixes.
    const pattern =
      /(?<=run_|job_|wait_)[0-9A-HJKMNP-TV-Z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z|(?<="at":)\d{13}|"<before \d+>"/g
    const text = parts.join(',')
    const kinds = [...text.matchAll(pattern)].map(([found]) => found)
    const between = text.split(pattern)
    return {
      events: index,
      frames,
      text: (newId, at, first) => {
        const iso = new Date(at).toISOString()
        let out = between[0] ?? ''
        for (let i = 0; i < kinds.length; i++) {
          const kind = kinds[i] ?? ''
          const value =
            kind.length === 26
              ? newId
              : kind.startsWith('"<')
                ? String(-1 - first - Number(kind.slice(9, -2)))
                : kind.length === 13
                  ? String(at)
                  : iso
          out += value + (between[i + 1] ?? '')
        }
        return out
      },
    }
  }
}
