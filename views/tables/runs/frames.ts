/**
 * Frames of the feed in memory, and the rows in which they are stored. A row does not repeat data
 * of the tables `runs` and `timeline`: its frames refer to runs by number.
 */
import type { Store } from '../../store.ts'
import type { Shown } from './timeline.ts'

/** The run of a frame. These values never change. */
export interface FedRun {
  readonly n: number
  readonly id: string
  readonly definition_id: string | undefined
  readonly loop_id: string | undefined
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
  /** The event. If absent, it is read from the timeline. */
  readonly call?: Shown
}
/** A frame of a project's feed. */
export type Frame = RunFrame | JobFrame | CallFrame

/**
 * A stored row, as JSON: the jobs of its frames, each with its step or 0, and the values of the
 * frames. Each frame begins with its cursor, its time and the number of its run, as differences
 * from the previous frame. The rest of a frame depends on its kind. For a run, it is the status,
 * and the `stop_reason` or 0. For a job, it is the index of the job plus 1, the status and the
 * attempt. For an action call, it is 0.
 */
type Row = readonly [jobs: readonly (string | 0)[], ...values: (string | number)[]]

/** Returns the stored form of frames. */
export function packFrames(frames: readonly Frame[]): string {
  const jobs: (string | 0)[] = []
  const row: [typeof jobs, ...(string | number)[]] = [jobs]
  let [cursor, at, n] = [0, 0, 0]
  for (const frame of frames) {
    row.push(frame.cursor - cursor, frame.at - at, frame.run.n - n)
    cursor = frame.cursor
    at = frame.at
    n = frame.run.n
    if (frame.kind === 'run_updated') row.push(frame.status, frame.stop_reason || 0)
    else if (frame.kind === 'action_appended') row.push(0)
    else {
      let index = jobs.lastIndexOf(frame.job)
      if (index < 0) index = jobs.push(frame.job, frame.step ?? 0) - 2
      row.push(index + 1, frame.status, frame.attempt)
    }
  }
  return JSON.stringify(row)
}

/** Returns the frames of a row. */
export function unpackFrames(store: Store, text: string): Frame[] {
  const [jobs, ...values] = JSON.parse(text) as Row
  const runs = new Map<number, FedRun>()
  const frames: Frame[] = []
  let [cursor, at, n] = [0, 0, 0]
  for (let i = 0; i < values.length; ) {
    cursor += values[i++] as number
    at += values[i++] as number
    n += values[i++] as number
    let run = runs.get(n)
    if (!run) runs.set(n, (run = runOf(store, n)))
    const what = values[i++]
    if (what === 0) frames.push({ kind: 'action_appended', cursor, at, run })
    else if (typeof what === 'number') {
      const [job, step] = [jobs[what - 1] as string, jobs[what] || undefined]
      const [status, attempt] = [values[i++] as string, values[i++] as number]
      frames.push({ kind: 'job_updated', cursor, at, run, job, step, status, attempt })
    } else {
      const stop_reason = (values[i++] as string | 0) || undefined
      frames.push({ kind: 'run_updated', cursor, at, run, status: what as string, stop_reason })
    }
  }
  return frames
}
function runOf(store: Store, n: number): FedRun {
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
