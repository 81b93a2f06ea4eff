/**
 * Frames of the feed in memory, and the rows in which they are stored. A row does not repeat what
 * the tables of runs and of timelines have: its frames name runs by their numbers.
 */
import type { Store } from '../../store.ts'
import type { Shown } from './timeline.ts'

/** The run of a frame. These values never change. */
interface FedRun {
  readonly n: number
  readonly id: string
}
interface FrameBase {
  /** Cursor of the event that caused the frame. */
  readonly cursor: number
  /** Time of the event, in Unix milliseconds. */
  readonly at: number
  readonly run: FedRun
}
interface RunFrame extends FrameBase {
  readonly kind: 'run_updated'
  readonly run: FedRun & {
    readonly definition_id: string | undefined
    readonly loop_id: string | undefined
  }
  readonly status: string
  readonly stop_reason: string | undefined
}
interface JobFrame extends FrameBase {
  readonly kind: 'job_updated'
  readonly job: string
  readonly step: string | undefined
  readonly status: string
  readonly attempt: number
}
interface CallFrame extends FrameBase {
  readonly kind: 'action_appended'
  /** The event; if absent, it is read from the timeline. */
  readonly call?: Shown
}
/** A frame of a project's feed. */
export type Frame = RunFrame | JobFrame | CallFrame

/**
 * A stored row: the jobs of its frames with their steps, and the frames. Cursor, time and number of
 * the run are differences from the previous frame of the row. A third of these values is the index
 * of a job, followed by its status and attempt; or the status of a run and, if there is one, its
 * `stop_reason`; a call of an action has no more values.
 */
type Stored = readonly [
  jobs: readonly (readonly [job: string, step?: string])[],
  ...frames: (readonly [cursor: number, at: number, run: number, ...rest: (string | number)[]])[],
]

/** The stored form of frames. */
export function rowOf(frames: readonly Frame[]): string {
  const jobs = new Map<string, number>()
  let names = ''
  let json = ''
  let [cursor, at, run] = [0, 0, 0]
  for (const frame of frames) {
    json += `,[${frame.cursor - cursor},${frame.at - at},${frame.run.n - run}`
    cursor = frame.cursor
    at = frame.at
    run = frame.run.n
    if (frame.kind === 'run_updated') {
      json += `,${JSON.stringify(frame.status)}`
      if (frame.stop_reason) json += `,${JSON.stringify(frame.stop_reason)}`
    } else if (frame.kind === 'job_updated') {
      const { job, step, status, attempt } = frame
      let index = jobs.get(job)
      if (index === undefined) {
        jobs.set(job, (index = jobs.size))
        names += `${index > 0 ? ',' : ''}${JSON.stringify(step === undefined ? [job] : [job, step])}`
      }
      json += `,${index},${JSON.stringify(status)},${attempt}`
    }
    json += ']'
  }
  return `[[${names}]${json}]`
}

/** The frames of a row. */
export function framesOf(store: Store, row: string): Frame[] {
  const [jobs, ...stored] = JSON.parse(row) as Stored
  const runs = new Map<number, RunFrame['run']>()
  let [cursor, at, n] = [0, 0, 0]
  return stored.map(([ahead, later, further, what, ...rest]): Frame => {
    cursor += ahead
    at += later
    n += further
    let run = runs.get(n)
    if (!run) runs.set(n, (run = runOf(store, n)))
    if (what === undefined) return { kind: 'action_appended', cursor, at, run }
    if (typeof what === 'string') {
      const stop_reason = rest[0] as string | undefined
      return { kind: 'run_updated', cursor, at, run, status: what, stop_reason }
    }
    const [job = '', step] = jobs[what] ?? []
    const [status, attempt] = rest as [string, number]
    return { kind: 'job_updated', cursor, at, run, job, step, status, attempt }
  })
}
function runOf(store: Store, n: number): RunFrame['run'] {
  const row = store.one<{ id: string; definition_id: string | null; loop: string | null }>(
    'SELECT id, definition_id, loop FROM runs WHERE n = ?',
    n,
  )
  return {
    n,
    id: row?.id ?? '',
    definition_id: row?.definition_id ?? undefined,
    loop_id: row?.loop ?? undefined,
  }
}
