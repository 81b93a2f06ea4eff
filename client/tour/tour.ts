/**
 * The tour. Two workers execute a workflow over the files of a folder. The tour follows it live and
 * checks the results against `wc` and `sha256sum`. Four more parts follow: a loop with a git
 * repository (commits.ts), an agent that answers a question about the folder (question.ts), a
 * report with a table of its files (reports.ts), and an agent with a workspace (git/coding.ts). In
 * this way, the tour verifies statements of the README on this machine. It also works while
 * gateways and nodes are being killed.
 */
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import { explain } from '../cli/explain.ts'
import { lineOf } from '../cli/timeline.ts'
import { type Client, client } from '../client.ts'
import type { WorkerState } from '../worker/options.ts'
import { Worker } from '../worker.ts'
import { tourActions } from './actions.ts'
import { tourOfCommits } from './commits.ts'
import { byPath } from './files.ts'
import { tourOfCoding } from './git/coding.ts'
import { combineMeasurements, type Measured } from './measure.ts'
import { tourOfQuestion } from './question.ts'
import { tourOfReports } from './reports.ts'
import { type Out, type Show, show } from './show.ts'
import { differences, fromTools } from './verify.ts'
import { checkTimelines, type Watched, watch } from './watch.ts'
import { ensureWorkflow, partSpec, queueOf, tourSpec } from './workflow.ts'

export interface TourOptions {
  /** Base addresses of one service. */
  readonly url: readonly string[]
  readonly key: string
  readonly project: string
  readonly folder: string
  readonly out: Out
  /** Number of parts into which the files are split for measuring; 8 by default. */
  readonly parts?: number
  /** Whether to run the second part, a loop with a git repository; true by default. */
  readonly loop?: boolean
  /** Whether to run the third part, an agent that answers a question; true by default. */
  readonly agent?: boolean
  /** Whether to run the fourth part, a report with a table; true by default. */
  readonly tables?: boolean
  /** Whether to run the fifth part, an agent with a workspace; true by default. */
  readonly coding?: boolean
  /** Ends the tour early. The cleanup still runs. */
  readonly signal?: AbortSignal
}
/** Milliseconds after which a tour is aborted. */
const TOUR_TIMEOUT_MS = 15 * 60_000
/** Maximum number of attempts per request: enough for a node, or a NATS leader, to recover. */
const MAX_ATTEMPTS = 12
type Part = Measured & { readonly worker: string }

/** Runs the tour and returns whether all checks passed. Failures are written to `out`. */
export async function runTour(options: TourOptions): Promise<boolean> {
  const { url, key, project, out } = options
  const folder = resolve(options.folder)
  const queue = queueOf(folder)
  const at = client({ url, key, project, tries: MAX_ATTEMPTS })
  const shown = show(out)
  const names = ['a', 'b'].map((letter) => `tour-${randomUUID().slice(0, 6)}-${letter}`)
  const workers = names.map(
    (instance) =>
      new Worker({
        url,
        key,
        project,
        instance,
        concurrency: 2,
        queues: [queue],
        name: 'tour',
        actions: tourActions(at, folder, instance),
        onState: spoken(instance, shown),
      }),
  )
  const stop = new AbortController()
  options.signal?.addEventListener('abort', () => stop.abort(new Error('the tour was stopped')), {
    once: true,
  })
  const limit = setTimeout(
    () => stop.abort(new Error(`the tour took longer than ${TOUR_TIMEOUT_MS / 60_000} minutes`)),
    TOUR_TIMEOUT_MS,
  )
  try {
    shown.line(`Measuring ${folder} at ${url.join(', ')} with workers ${names.join(' and ')}.\n`)
    const [main, part] = [
      await ensureWorkflow(at, 'tour', tourSpec),
      await ensureWorkflow(at, 'tour-measure', partSpec),
    ]
    await Promise.all(workers.map((worker) => worker.start()))
    const measured = await measureAll({
      at,
      folder,
      queue,
      shown,
      signal: stop.signal,
      main: main.id,
      part: part.id,
      parts: options.parts ?? 8,
    })
    const told =
      options.loop === false || (await tourOfCommits({ at, url, key, shown, signal: stop.signal }))
    const answered =
      options.agent === false ||
      (await tourOfQuestion({ at, url, key, folder, shown, signal: stop.signal }))
    const reported =
      options.tables === false ||
      (await tourOfReports({ at, url, key, folder, shown, signal: stop.signal }))
    const coded =
      options.coding === false ||
      (await tourOfCoding({ at, url, key, folder, shown, signal: stop.signal }))
    return measured && told && answered && reported && coded
  } catch (error) {
    shown.stop()
    shown.line(
      `\nThe tour failed: ${explain(error, {}) ?? (error as Error).stack ?? String(error)}`,
    )
    return false
  } finally {
    clearTimeout(limit)
    stop.abort(new Error('the tour has ended'))
    shown.stop()
    await Promise.all(workers.map((worker) => worker.stop()))
  }
}

/** Returns a state handler that reports a worker's lost and restored connections. */
function spoken(instance: string, { line }: Show): (state: WorkerState) => void {
  let lost = false
  return (state) => {
    if (state === 'reconnecting') line(`  (${instance} lost its connection; its jobs continue)`)
    if (state === 'registered' && lost) line(`  (${instance} has reconnected)`)
    lost = state === 'reconnecting'
  }
}

interface Tour {
  readonly at: Client
  readonly folder: string
  readonly queue: string
  readonly shown: Show
  readonly signal: AbortSignal
  /** Ids of the workflows `tour` and `tour-measure`. */
  readonly main: string
  readonly part: string
  readonly parts: number
}

async function measureAll(tour: Tour): Promise<boolean> {
  const { at, folder, queue, shown, signal } = tour
  const begun = performance.now()
  const run = await at.workflow.run({ id: tour.main, queue, input: { folder, parts: tour.parts } })
  shown.line(`Run ${run.id}`)
  let listed!: (parts: string[][]) => void
  const parts = new Promise<string[][]>((done) => (listed = done))
  let away = false
  const hear = (event: RunEventRecord): void => {
    away = false
    shown.line(`  ${lineOf(event)}`)
    const output = event.payload?.['output'] as { parts?: string[][] } | undefined
    if (event.event_type === 'step.completed' && event.step_key === 'list')
      listed(output?.parts ?? [])
  }
  const interrupted = (reason: string): void => {
    if (!away) shown.line(`  (${reason}; resuming the run from here)`)
    away = true
  }
  const following = watch(at, run.id, signal, hear, interrupted)
  const ended = following.then(() => [] as string[][])

  const lists = await Promise.race([parts, ended])
  const watched = await measureParts(tour, run.id, lists).catch(async (error: unknown) => {
    await at.run.cancel({ id: run.id, reason: 'a part was not measured' }).catch(() => {})
    throw error
  })
  const whole = combineMeasurements(watched.map(({ part }) => part))
  if (lists.length > 0)
    await at.run.signal({
      id: run.id,
      name: 'measured',
      idempotency_key: 'tour',
      payload: { run_ids: watched.map(({ run }) => run), files: whole.files, lines: whole.lines },
    })
  const mine = await following
  const { status, result, error_message } = await at.run.get({ id: run.id })
  shown.stop()
  if (status !== 'completed') {
    shown.line(`\nThe run is ${status}${error_message === undefined ? '' : `: ${error_message}`}.`)
    return false
  }
  const took = performance.now() - begun
  const totals = result as { files: number; lines: number; sha256: string }
  shown.line(
    `\n${totals.files} files, ${totals.lines} lines, in ${(took / 1000).toFixed(1)} s\n` +
      `sha256 of the sorted sha256sum lines: ${totals.sha256}\n`,
  )
  const checked = [
    await checkTools(tour, totals, whole, lists.flat().sort(byPath)),
    await checkTimelines(at, shown, [mine, ...watched.map(({ watched }) => watched)]),
  ]
  return checked.every(Boolean)
}

/**
 * Starts a run for every part, and follows each to its end.
 * @throws Error if a run does not complete.
 */
async function measureParts(
  { at, folder, queue, shown, signal, part }: Tour,
  parent: string,
  lists: readonly string[][],
): Promise<{ run: string; watched: Watched; part: Part }[]> {
  let done = 0
  if (lists.length > 0) shown.parts(0, lists.length)
  return Promise.all(
    lists.map(async (files, index) => {
      const { id } = await at.workflow.run({
        id: part,
        queue,
        parent_run_id: parent,
        external_id: `${parent}/${index + 1}`,
        input: { folder, files },
      })
      const watched = await watch(
        at,
        id,
        signal,
        () => {},
        () => {},
      )
      const { status, result, error_message } = await at.run.get({ id })
      if (status !== 'completed')
        throw new Error(
          `Run ${id}, part ${index + 1}, is ${status}${error_message === undefined ? '' : `: ${error_message}`}.`,
        )
      const measured = result as unknown as Part
      shown.line(
        `  part ${String(index + 1).padStart(2)} of ${lists.length}: ` +
          `${String(measured.files).padStart(4)} files, ` +
          `${String(measured.lines).padStart(7)} lines, by ${measured.worker}`,
      )
      shown.parts(++done, lists.length)
      return { run: id, watched, part: measured }
    }),
  )
}

async function checkTools(
  { folder, shown }: Tour,
  totals: { files: number; lines: number; sha256: string },
  whole: Measured,
  paths: readonly string[],
): Promise<boolean> {
  const tools = await fromTools(folder, paths)
  const same =
    totals.files === paths.length && totals.lines === tools.lines && totals.sha256 === tools.sha256
  shown.line(
    same
      ? 'ok  wc -l and sha256sum report the same values'
      : `MISMATCH: wc -l and sha256sum report ${paths.length} files, ${tools.lines} lines, ${tools.sha256}`,
  )
  const changed = differences(whole.sums, tools.sums)
  if (changed.length > 0)
    shown.line(
      `    different: ${changed.slice(0, 10).join(', ')}` +
        `${changed.length > 10 ? ` and ${changed.length - 10} more` : ''} (was it being edited?)`,
    )
  return same
}
