/**
 * A chaos run: starts an installation, applies load and faults, waits until everything is at rest,
 * and checks what the clients observed.
 */
import { setMaxListeners } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { linkedAbort } from '../../client/watchdog.ts'
import { Asker } from './ask.ts'
import { check, type Violation } from './check.ts'
import { readFeed, readRuns, readTimeline } from './gather.ts'
import type { History, Stream, Strike } from './history.ts'
import { Load } from './load.ts'
import type { Net } from './net.ts'
import { report } from './report.ts'
import { type Stack, startStack } from './stack.ts'
import { type Followed, follow } from './streams.ts'
import { bringTrouble } from './trouble.ts'

interface Options {
  readonly seconds: number
  /** Number of runs that are started per second. */
  readonly rate: number
  readonly seed: number
  readonly net: Net
  /** Folder for all files. The caller removes it. */
  readonly folder: string
  /** Path of nats-server. */
  readonly binary: string
  readonly signal: AbortSignal
  readonly say: (line: string) => void
  /** Whether NATS runs in operator mode, with a least-privilege user for each node role. */
  readonly accounts: boolean
}
export interface Outcome {
  readonly history: History
  readonly violations: readonly Violation[]
}
/** Maximum number of timelines that are followed concurrently. */
const MAX_FOLLOWED = 60
/** Maximum number of other timelines that are read at the end. */
const MAX_READ = 300
/**
 * If no run ends for this many milliseconds after the load, the wait for the remaining runs stops.
 */
const STALL_TIMEOUT_MS = 60_000
/** Milliseconds that followers have to catch up after the load. */
const CATCH_UP_MS = 30_000
/** Milliseconds between two progress reports. */
const REPORT_EVERY_MS = 5000
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/**
 * Runs load and faults on a separate installation and checks the result.
 * @throws {Error} when the installation does not start, when the final read fails, or when `signal`
 *   is aborted.
 */
export async function runChaos(options: Options): Promise<Outcome> {
  const { net, folder, binary, say, signal, accounts } = options
  const stack = await startStack({ net, folder, binary, say, accounts })
  try {
    return await live(options, stack)
  } catch (error) {
    if (!signal.aborted) throw error
    throw signal.reason
  } finally {
    await stack.stop()
  }
}

async function live(
  { seconds, rate, seed, net, signal, say }: Options,
  stack: Stack,
): Promise<Outcome> {
  const { urls, key } = stack
  const began = performance.now()
  const now = () => performance.now() - began
  const asker = new Asker(urls, key, now)
  const load = new Load(asker, seed, now)
  const strikes: Strike[] = []
  const followers = linkedAbort(signal)
  // Each follower of a stream adds a listener to this signal.
  setMaxListeners(0, followers.signal)
  const asides: string[] = []
  let told = ''
  let last: string | undefined

  const feeds = urls.map((_, i) => {
    const ends = new Map<string, boolean>()
    return follow({
      name: `the feed, first through gateway ${i + 1}`,
      urls,
      key,
      path: '/projects/default/runs/events?since=0',
      first: i,
      signal: followers.signal,
      on: ({ id, type, data }) => {
        if (type !== 'run_updated') return false
        const run = String(data['run_id'])
        const status = String((data['data'] as { status?: unknown }).status)
        load.heard(run, status, id)
        if (status === 'completed') ends.set(run, true)
        return last !== undefined && ends.has(last)
      },
    })
  })
  const timelines = new Map<string, Followed & { readonly done: Promise<void> }>()
  const others: string[] = []
  let open = 0
  load.onRun = (run, plan) => {
    if (plan.retried || open >= MAX_FOLLOWED || !(plan.long || load.acknowledged % 20 === 0)) {
      others.push(run)
      return
    }
    open++
    const followed = follow({
      name: `the timeline of ${run}`,
      urls,
      key,
      path: `/runs/${run}/events`,
      first: timelines.size,
      signal: followers.signal,
      on: ({ type }) => ['run.completed', 'run.failed', 'run.cancelled'].includes(type),
    })
    timelines.set(run, followed)
    void followed.done.then(() => {
      open--
    })
  }

  const lag = monitorEventLoopDelay({ resolution: 10 })
  lag.enable()
  const progress = setInterval(() => {
    say(
      `${(now() / 1000).toFixed(0).padStart(4)} s  ${load.starts.length} started  ` +
        `${load.acknowledged} acknowledged  ${load.finished} ended  ` +
        `${asker.open} requests open  ${told}`,
    )
  }, REPORT_EVERY_MS)
  const until = seconds * 1000
  let trouble: Error | undefined
  let drained = Number.POSITIVE_INFINITY
  try {
    const troubled = bringTrouble(
      {
        stack,
        net,
        seed,
        now,
        until,
        signal,
        calm: () => asker.open <= rate,
        say: (line) => {
          told = line
          say(`${(now() / 1000).toFixed(1).padStart(6)} s  ! ${line}`)
        },
      },
      strikes,
    ).catch((error: unknown) => {
      trouble = error as Error
    })
    await load.run(rate, signal.aborted ? 0 : until)
    await troubled
    signal.throwIfAborted()
    lag.disable()
    told = 'calm'
    const calm = now()
    for (
      let [ended, moved] = [0, now()];
      now() < moved + STALL_TIMEOUT_MS && !(load.quiet && load.finished >= load.acknowledged);
      await pause(200)
    ) {
      signal.throwIfAborted()
      if (load.finished > ended) [ended, moved] = [load.finished, now()]
    }
    if (load.quiet && load.finished >= load.acknowledged) drained = now() - calm
    asker.over = !load.quiet
    if (asker.over) await pause(1000)
    asker.over = false
    last = await load.last()
  } finally {
    clearInterval(progress)
    asker.over = signal.aborted
  }
  signal.throwIfAborted()
  if (trouble) asides.push(`trouble: ${trouble.message}`)

  say('reading everything afresh')
  await Promise.race([
    Promise.all([...feeds, ...timelines.values()].map((followed) => followed.done)),
    pause(CATCH_UP_MS),
  ])
  // Followers that still wait for the end of a run are stopped here. The check reports the missing
  // frames.
  followers.abort()
  const runs = await readRuns(asker)
  const [fresh, again] = [await readFeed(urls, key, 0, last), await readFeed(urls, key, 1, last)]
  const streams: Stream[] = [
    {
      name: 'the feed read afresh through the other gateway',
      followed: again.frames,
      recorded: fresh.frames,
      connections: again.connections,
    },
  ]
  for (const feed of feeds)
    streams.push({
      name: feed.name,
      followed: feed.frames,
      recorded: fresh.frames,
      connections: feed.connections,
      joints: feed.joints,
      vain: feed.vain,
    })
  const steps = new Map<string, string[]>()
  for (const [run, followed] of timelines) {
    const timeline = await readTimeline(asker, run)
    streams.push({
      name: followed.name,
      followed: followed.frames,
      recorded: timeline.frames,
      connections: followed.connections,
      joints: followed.joints,
      vain: followed.vain,
    })
    steps.set(run, timeline.steps)
  }
  const every = Math.max(1, Math.ceil(others.length / MAX_READ))
  for (const run of others.filter((_, i) => i % every === 0))
    steps.set(run, (await readTimeline(asker, run)).steps)

  const oddities = [
    ...load.oddities,
    ...stack.deaths,
    ...asides,
    ...[...feeds, ...timelines.values()].flatMap((one) => one.oddities),
  ]
  const history: History = {
    settled: drained !== Number.POSITIVE_INFINITY,
    starts: load.starts,
    repeats: load.repeats,
    runs,
    courses: fresh.courses,
    retried: load.retried,
    steps,
    streams,
    requests: asker.requests,
    strikes,
    oddities,
  }
  const violations = check(history)
  for (const line of report({
    history,
    violations,
    seconds,
    rate,
    heldBack: load.heldBack,
    again: asker.again,
    lag: lag.percentile(99) / 1e6,
    drained,
  }))
    say(line)
  return { history, violations }
}
