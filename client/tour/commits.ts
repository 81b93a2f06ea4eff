/**
 * The second part of the tour: runs that start automatically. The tour creates a git repository
 * whose hook reports every commit to a loop. The loop also has a schedule. The tour polls the runs
 * of the loop and follows each one to its end. Afterwards, even after a failure, it deletes the
 * loop and the repository.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { type RunEventRecord, terminal } from '../../protocol/runs/schema.ts'
import { lineOf } from '../cli/timeline.ts'
import type { Client } from '../client.ts'
import { Worker } from '../worker.ts'
import { COMMITS, deleteLeftoverLoops, loopActions, loopOf, REVIEWED } from './loop.ts'
import { git, hasGit, type Repository, repository } from './repository.ts'
import type { Show } from './show.ts'
import { fromTools } from './verify.ts'
import { checkTimelines, type Watched, watch } from './watch.ts'

export interface Commits {
  readonly at: Client
  readonly url: readonly string[]
  readonly key: string
  readonly shown: Show
  readonly signal: AbortSignal
}
/** The fields of a loop's run that the tour uses. */
interface LoopRun {
  readonly id: string
  readonly status: string
  readonly event?: {
    readonly commit?: string
    readonly subject?: string
    readonly scheduled_at?: string
  }
  readonly result?: { readonly lines?: number; readonly by?: string; readonly commits?: number }
  readonly error_message?: string
}
/**
 * Time limit in milliseconds for the runs of two commits and for one run of the ten-second
 * schedule. It is sufficient even while a node is being replaced.
 */
const TIMEOUT_MS = 120_000
/** Milliseconds between two queries for new runs. */
const POLL_EVERY_MS = 300
const lines = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, i) => `${from + i}\n`).join('')
/** The content of the commits: they add, change and delete lines. */
const changes = [
  {
    message: 'Add numbers and a greeting',
    files: { 'numbers.txt': lines(1, 40), 'greeting.txt': 'Hello\nfrom the tour\n' },
  },
  {
    message: 'Drop some numbers, "greet" twice',
    files: {
      'numbers.txt': lines(10, 44),
      'greeting.txt': 'Hello\nand hello again\nfrom the tour\n',
    },
  },
] as const

/**
 * Runs this part of the tour. Returns whether all checks passed; false if git is missing.
 * @throws BatonError if the service refuses a request; Error on a timeout.
 */
export async function tourOfCommits(tour: Commits): Promise<boolean> {
  const { at, url, key, shown } = tour
  if (!(await hasGit())) {
    shown.line(
      '\nThe second part requires git, which is not on the PATH: install git, or skip this part with --no-loop.',
    )
    return false
  }
  const name = randomUUID().slice(0, 6)
  const secret = randomBytes(32).toString('base64')
  await deleteLeftoverLoops(at, Date.now())
  const loop = await at.loop.create(loopOf(name, secret))
  const forget = async () => {
    await at.loop.delete({ id: loop.id })
  }
  const cancel = async () => {
    for (const { id, status } of (await at.run.list({ loop_id: loop.id, limit: 100 })).items)
      if (!terminal.has(status)) await at.run.cancel({ id, reason: 'the tour has ended' })
  }
  let made: Repository | undefined
  let worker: Worker | undefined
  try {
    const hook = loop.triggers?.find(({ key: one }) => one === COMMITS)
    const handle = (hook?.config as { http_handle?: string } | undefined)?.http_handle ?? ''
    made = await repository({ url, handle, secret, header: `X-${await brandOf(at)}-Signature` })
    worker = new Worker({
      url,
      key,
      project: at.transport.project,
      instance: `tour-${name}`,
      name: 'tour',
      concurrency: 4,
      actions: loopActions(name, made.folder),
    })
    await worker.start()
    shown.line(
      `\nNow a loop: ${loop.id} starts runs automatically, every 10 s and for each commit to ${made.folder}.\n`,
    )
    return await show(tour, loop.id, made, forget)
  } finally {
    await forget().catch(() => {})
    await cancel().catch(() => {})
    await worker?.stop()
    await made?.remove()
  }
}

/**
 * Determines the brand, which is the prefix of all permission names and part of the name of the
 * signature header.
 */
export async function brandOf(at: Client): Promise<string> {
  const { permissions } = await at.me.get()
  return /^(\w+)\./.exec(permissions[0] ?? '')?.[1] ?? 'Service'
}

async function show(
  tour: Commits,
  loop: string,
  made: Repository,
  forget: () => Promise<void>,
): Promise<boolean> {
  const { at, shown } = tour
  const runs = new Runs(tour, loop)
  const ids: string[] = []
  for (const { message, files } of changes) {
    const { id, said } = await made.commit(message, files)
    ids.push(id)
    shown.line(`  git commit ${id.slice(0, 7)} ${message}`)
    if (said !== '') shown.line(`  output of the hook: ${said}`)
  }
  await runs.until(
    (ended) =>
      ids.every((id) => ended.some(({ event }) => event?.commit === id)) &&
      ended.some(({ result }) => result?.commits === ids.length),
  )
  // The loop is deleted first. Otherwise, the schedule could start runs that no worker executes.
  await forget()
  const all = await runs.all()
  const watched = await Promise.all(all.map(({ watched }) => watched))
  const ended = await Promise.all(all.map(({ id }) => at.run.get({ id }) as Promise<LoopRun>))
  shown.line('')
  const checked = [
    checkEnds(tour, ended),
    await checkCommits(tour, ended, ids, made),
    checkBeats(tour, ended),
    await checkTimelines(at, shown, watched),
  ]
  return checked.every(Boolean)
}

/**
 * Finds the runs of the loop by polling, and follows each to its end. Reviews a commit when its run
 * waits for the review.
 */
class Runs {
  readonly #tour: Commits
  readonly #loop: string
  readonly #found = new Map<string, Promise<Watched>>()
  readonly #ended: LoopRun[] = []
  #failure: unknown

  constructor(tour: Commits, loop: string) {
    this.#tour = tour
    this.#loop = loop
  }
  /**
   * Polls until enough runs have ended.
   * @throws Error on a timeout, and any error that occurs while a run is followed or reviewed.
   */
  async until(enough: (ended: readonly LoopRun[]) => boolean): Promise<void> {
    const { signal } = this.#tour
    for (
      const from = performance.now();
      !enough(this.#ended);
      await new Promise((again) => setTimeout(again, POLL_EVERY_MS))
    ) {
      signal.throwIfAborted()
      if (this.#failure !== undefined) throw this.#failure
      if (performance.now() - from > TIMEOUT_MS)
        throw new Error(
          `the runs of the loop did not start and end within ${TIMEOUT_MS / 1000} s; ` +
            `${this.#found.size} have started, ${this.#ended.length} have ended`,
        )
      await this.#look()
    }
  }
  /** Fetches the runs once more, and returns all of them. */
  async all(): Promise<{ id: string; watched: Promise<Watched> }[]> {
    await this.#look()
    return [...this.#found].map(([id, watched]) => ({ id, watched }))
  }
  async #look(): Promise<void> {
    const { items } = await this.#tour.at.run.list({ loop_id: this.#loop, limit: 100 })
    for (const run of (items as readonly LoopRun[]).toReversed())
      if (!this.#found.has(run.id)) this.#follow(run)
  }
  #follow({ id, event }: LoopRun): void {
    const { at, shown, signal } = this.#tour
    const number = this.#found.size + 1
    shown.line(
      `  run ${number} is ${id}, started by ` +
        (event?.commit === undefined
          ? `the schedule for ${event?.scheduled_at}`
          : `commit ${event.commit.slice(0, 7)}`),
    )
    const hear = (record: RunEventRecord): void => {
      shown.line(`  ${number}  ${lineOf(record)}`)
      if (record.event_type === 'wait.opened' && record.step_key === 'review')
        this.#review(event?.commit ?? '')
    }
    const watched = watch(at, id, signal, hear, (reason) =>
      shown.line(`  (${reason}; resuming run ${number} from here)`),
    )
    this.#found.set(id, watched)
    watched
      .then(async () => {
        this.#ended.push((await at.run.get({ id })) as LoopRun)
      })
      .catch((error: unknown) => {
        this.#failure = error
      })
  }
  #review(commit: string): void {
    const publish = this.#tour.at.event.publish({
      event_type: REVIEWED,
      event: { commit, by: 'the tour' },
      idempotency_key: `review-${commit}`,
    })
    publish.catch((error: unknown) => {
      this.#failure = error
    })
  }
}

function checkEnds({ shown }: Commits, ended: readonly LoopRun[]): boolean {
  const wrong = ended.filter(({ status }) => status !== 'completed')
  for (const { id, status, error_message } of wrong)
    shown.line(
      `FAILED: run ${id} is ${status}${error_message === undefined ? '' : `: ${error_message}`}`,
    )
  return wrong.length === 0
}
async function checkCommits(
  { shown }: Commits,
  ended: readonly LoopRun[],
  ids: readonly string[],
  { folder }: Repository,
): Promise<boolean> {
  const runs = ended.filter(({ event }) => event?.commit !== undefined)
  const counted = runs.reduce((sum, { result }) => sum + (result?.lines ?? Number.NaN), 0)
  const { lines: there } = await fromTools(folder, (await git(folder, 'ls-files')).out.split('\n'))
  const once =
    runs.length === ids.length && ids.every((id) => runs.some(({ event }) => event?.commit === id))
  const reviewed = runs.every(({ result }) => result?.by === 'the tour')
  const right = once && reviewed && counted === there
  shown.line(
    right
      ? `ok  ${ids.length} commits started ${runs.length} runs, all were reviewed, ` +
          `and their total of ${there} lines equals that of wc -l`
      : `MISMATCH: ${ids.length} commits started ${runs.length} runs ` +
          `(${runs.map(({ event }) => event?.commit?.slice(0, 7)).join(', ')}); ` +
          `they counted ${counted} lines, wc -l counted ${there}; ` +
          `${reviewed ? 'all' : 'not all'} were reviewed`,
  )
  return right
}
function checkBeats({ shown }: Commits, ended: readonly LoopRun[]): boolean {
  const times = ended
    .flatMap(({ event }) =>
      event?.commit === undefined && event?.scheduled_at !== undefined
        ? [Date.parse(event.scheduled_at)]
        : [],
    )
    .sort((a, b) => a - b)
  const steady = times.every(
    (time, i) => i === 0 || (time > (times[i - 1] ?? 0) && (time - (times[0] ?? 0)) % 10_000 === 0),
  )
  const right = times.length > 0 && steady
  shown.line(
    right
      ? `ok  the schedule fired ${times.length === 1 ? 'once' : `${times.length} times, without a duplicate`}`
      : `FAILED: the schedule fired for ${times.map((time) => new Date(time).toISOString()).join(', ') || 'no time'}`,
  )
  return right
}
