/**
 * Queues with their open jobs, counted by line. A line consists of the jobs that the same workers
 * can perform. Its counter `waiting` is the number of its stored jobs that are queued, and
 * `in_work` is the number of those that are claimed. A line without open jobs has no row.
 */

import { timestamp } from '../../../protocol/common.ts'
import { MAX_QUEUE_WORKERS, type Queue, type QueueLine } from '../../../protocol/jobs/queue-rows.ts'
import type { Job } from '../../../protocol/jobs/rows.ts'
import type { Store } from '../../store.ts'
import { Tallies } from '../tallies.ts'
import type { ConnectedWorker } from '../workers/workers.ts'

/** The queue of jobs for which no queue is specified. It is always listed. */
const DEFAULT_QUEUE = 'default'
/** Separates the parts of the text of a line (`lineOf`). */
const LINE_SEPARATOR = '\u001f'
/** Separates the parts of the key of a counter. */
const KEY_SEPARATOR = '\u001e'

/**
 * Returns the line of a job as a text. It consists of the job's action or its provider and model,
 * and of the job's environment.
 */
export const lineOf = ({
  action_name = '',
  provider = '',
  model = '',
  environment_id = '',
}: Pick<Job, 'action_name' | 'provider' | 'model' | 'environment_id'>): string =>
  action_name + LINE_SEPARATOR + provider + LINE_SEPARATOR + model + LINE_SEPARATOR + environment_id

interface LineCount {
  waiting: number
  in_work: number
}
const counters: Readonly<Partial<Record<string, keyof LineCount>>> = {
  queued: 'waiting',
  claimed: 'in_work',
}
/**
 * Counts a job when its row is written.
 * @param before the stored status; undefined for a new row.
 */
export function countJob(
  store: Store,
  project: number,
  job: Pick<Job, 'queue' | 'status' | 'action_name' | 'provider' | 'model' | 'environment_id'>,
  before: string | undefined,
): void {
  const less = before === undefined ? undefined : counters[before]
  const more = counters[job.status]
  if (less === more) return
  const tallies = store.buffer('queue_lines', () => new Tallies(writeTo(store)))
  const place = KEY_SEPARATOR + project + KEY_SEPARATOR + job.queue + KEY_SEPARATOR + lineOf(job)
  if (less) tallies.add(less + place, -1)
  if (more) tallies.add(more + place, 1)
}
const writeTo =
  (store: Store) =>
  (key: string, change: number): void => {
    const [counter, ...place] = key.split(KEY_SEPARATOR)
    store.run(
      `INSERT INTO queue_lines (project, queue, line, waiting, in_work) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (project, queue, line) DO UPDATE
       SET waiting = waiting + excluded.waiting, in_work = in_work + excluded.in_work`,
      ...place,
      counter === 'waiting' ? change : 0,
      counter === 'in_work' ? change : 0,
    )
    if (change < 0)
      store.run(
        `DELETE FROM queue_lines
         WHERE project = ? AND queue = ? AND line = ? AND waiting = 0 AND in_work = 0`,
        ...place,
      )
  }

interface Opened {
  waiting: number
  in_work: number
  oldest: number | undefined
  readonly lines: QueueLine[]
}
/**
 * Returns the queues with open jobs, the queues that connected workers list, and the default queue,
 * ordered by name.
 * @param workers the connected workers.
 */
export function queueList(
  store: Store,
  project: number,
  workers: readonly ConnectedWorker[],
): { items: Queue[] } {
  const queues = new Map<string, Opened>()
  const queueOf = (name: string): Opened => {
    const known = queues.get(name) ?? { waiting: 0, in_work: 0, oldest: undefined, lines: [] }
    queues.set(name, known)
    return known
  }
  queueOf(DEFAULT_QUEUE)
  for (const { queues: named } of workers) for (const name of named) queueOf(name)
  for (const { queue, line, waiting, in_work } of store.all<
    LineCount & { readonly queue: string; readonly line: string }
  >(
    'SELECT queue, line, waiting, in_work FROM queue_lines WHERE project = ? ORDER BY queue, line',
    project,
  )) {
    const opened = queueOf(queue)
    const oldest = waiting === 0 ? undefined : oldestOf(store, project, queue, line)
    opened.waiting += waiting
    opened.in_work += in_work
    if (oldest !== undefined) opened.oldest = Math.min(opened.oldest ?? oldest, oldest)
    const [action_name, provider, model, environment_id] = line.split(LINE_SEPARATOR)
    opened.lines.push({
      ...(action_name && { action_name }),
      ...(provider && { provider }),
      ...(model && { model }),
      ...(environment_id && { environment_id }),
      waiting,
      in_work,
      ...since(oldest),
    })
  }
  const items = [...queues].map(([name, { waiting, in_work, oldest, lines }]): Queue => {
    const takers = workers.filter(({ queues: named }) => named.length === 0 || named.includes(name))
    const sum = (of: 'slots_used' | 'slots_free') =>
      takers.reduce((total, worker) => total + worker[of], 0)
    return {
      name,
      waiting,
      in_work,
      ...since(oldest),
      worker_count: takers.length,
      slots_used: sum('slots_used'),
      slots_free: sum('slots_free'),
      lines,
      workers: takers.slice(0, MAX_QUEUE_WORKERS).map(({ queues: _, ...worker }) => worker),
    }
  })
  return { items: items.sort((a, b) => (a.name < b.name ? -1 : 1)) }
}
const since = (oldest: number | undefined) =>
  oldest === undefined ? {} : { oldest_waiting_since: timestamp(oldest) }
/**
 * Returns the creation time of the oldest waiting job of a line. The index sorts the jobs of a line
 * by creation time, so no other job is read.
 */
const oldestOf = (store: Store, project: number, queue: string, line: string) =>
  store.one<{ created_at: number }>(
    `SELECT created_at FROM jobs INDEXED BY jobs_waiting
     WHERE project = ? AND queue = ? AND line = ?
     ORDER BY created_at LIMIT 1`,
    project,
    queue,
    line,
  )?.created_at
