/**
 * Measures trees in one round: for each tree, a new installation is started and warmed up. Then the
 * trees are kept busy in turn, each with a small part of the load at a time. A change in the speed
 * of the machine therefore affects all trees. The measurement begins when the work of the warm-up
 * has settled, and ends when nothing more is stored, so deferred work is included. All figures are
 * per unit of the scenario, except the rate.
 */
import { type Figures, inFlight, pause } from '../support/measure.ts'
import { type Installation, type Stored, startInstallation, threadTimes } from './installation.ts'
import { type Counted, openProbes, type Probes } from './probes.ts'
import type { Scenario } from './scenarios.ts'
import type { Tree } from './trees.ts'
import { inTurn } from './turns.ts'

/**
 * Minimum number of units of the warm-up. During the first few thousand units, V8's optimizing
 * compiler uses more processor time than the garbage collectors, and after 9,000 units still as
 * much. By the end of the warm-up, most of the compiler's work is done.
 */
const WARM_UNITS = 16_000
/** Milliseconds for which the processor time of an idle installation is measured. */
const IDLE_MS = 4000

/** The load that is measured in each round. */
export interface Load {
  readonly scenario: Scenario
  /**
   * Number of work items that are measured. The warm-up has a fifth as many work items, but at
   * least `WARM_UNITS` units.
   */
  readonly count: number
  /** Whether shards, views and gateway are separate processes. */
  readonly separate: boolean
  say(line: string): void
}
/**
 * Milliseconds without a stored message after which work counts as settled. This is longer than the
 * time after which a shard stores a changed actor.
 */
const QUIET_MS = 4000
/** Polling interval in milliseconds. */
const POLL_MS = 250
/** Milliseconds after which the wait ends even if messages are still being stored. */
const SETTLE_TIMEOUT_MS = 40_000

/** The processor time used so far, in µs, and the data stored so far. */
interface Reading {
  readonly stored: Stored
  /** Processor times of the threads of each process: by role, then by thread id. */
  readonly roles: ReadonlyMap<string, ReadonlyMap<number, number>>
  readonly nats: number
}
const sum = (values: Iterable<number>): number => {
  let total = 0
  for (const value of values) total += value
  return total
}
const read = async (installation: Installation): Promise<Reading> => ({
  roles: new Map([...installation.processes].map(([role, pid]) => [role, threadTimes(pid)])),
  nats: sum(threadTimes(installation.nats).values()),
  stored: await installation.stored(),
})
/**
 * Waits until work has settled. Returns the first reading after which nothing more was stored.
 * Later readings would also include the processor time of the idle installation.
 */
async function settled(installation: Installation): Promise<Reading> {
  const started = performance.now()
  let last = await read(installation)
  for (let since = performance.now(); ; ) {
    await pause(POLL_MS)
    const now = await read(installation)
    const changed =
      now.stored.sequence !== last.stored.sequence || now.stored.views !== last.stored.views
    if (changed) {
      last = now
      since = performance.now()
    }
    const time = performance.now()
    if (time - since > QUIET_MS || time - started > SETTLE_TIMEOUT_MS) return changed ? now : last
  }
}

/** An installation that can be kept busy. */
export interface Busy {
  readonly installation: Installation
  readonly probes: Probes
  /** Keeps the installation busy with `count` work items. */
  drive(name: string, count: number): Promise<void>
  settled(): Promise<Reading>
}
/** Starts a tree, passes it to `use`, and stops it. */
async function opened<T>(
  tree: Tree,
  { scenario, separate, say }: Load,
  use: (busy: Busy) => Promise<T>,
): Promise<T> {
  const probes = openProbes()
  const installation = await startInstallation(tree, separate, probes).catch((error: unknown) => {
    probes.close()
    throw error
  })
  try {
    const { work, stop } = await scenario.open(installation, say)
    const used = await use({
      installation,
      probes,
      drive: async (name, items) =>
        void (await inFlight(scenario.concurrency, items, (i) => work(`${name}-${i}`))),
      settled: () => settled(installation),
    })
    stop()
    return used
  } finally {
    await installation.stop()
    probes.close()
  }
}
/** Starts trees, passes all of them to `use`, and stops them. */
const eachOpened = <T>(
  [tree, ...others]: readonly Tree[],
  load: Load,
  use: (busy: readonly Busy[]) => Promise<T>,
): Promise<T> =>
  tree
    ? opened(tree, load, (busy) => eachOpened(others, load, (rest) => use([busy, ...rest])))
    : use([])

/**
 * Warms up trees in turn, so that none of them is idle for long before it is measured: V8 frees
 * memory and code of an idle process.
 */
const warmUp = (busy: readonly Busy[], { scenario, count }: Load): Promise<void> =>
  inTurn(
    busy.length,
    Math.max(Math.ceil(WARM_UNITS / scenario.units), Math.ceil(count / 5)),
    async (tree, items, part) => busy[tree]?.drive(`warm-${part}`, items),
  )
/** Starts a tree, warms it up, passes it to `measure`, and stops it. */
export const warmed = <T>(tree: Tree, load: Load, measure: (busy: Busy) => Promise<T>) =>
  opened(tree, load, async (busy): Promise<T> => {
    await warmUp([busy], load)
    return measure(busy)
  })

/** What the client used and needed for its part of the load of a tree. */
interface Driven {
  /** Processor time of this process in µs. */
  cpu: number
  seconds: number
}
/**
 * Returns the processor time that an idle installation uses while other trees are busy, by thread
 * id, and that of its NATS server as `nats`, in µs.
 * @param seconds time for which other trees were busy.
 */
async function idleTimes(installation: Installation, seconds: number) {
  const times = () =>
    new Map<number | 'nats', number>([
      ...[...installation.processes.values()].flatMap((pid) => [...threadTimes(pid)]),
      ['nats', sum(threadTimes(installation.nats).values())],
    ])
  if (seconds === 0) return new Map<number | 'nats', number>()
  const before = times()
  const started = performance.now()
  await pause(IDLE_MS)
  const part = (seconds * 1000) / (performance.now() - started)
  return new Map(
    [...times()].map(([task, time]) => [task, (time - (before.get(task) ?? time)) * part]),
  )
}

/** Measures one round of several trees, in turn. `report.ts` describes the figures. */
export const measureRound = (trees: readonly Tree[], load: Load): Promise<Figures[]> =>
  eachOpened(trees, load, async (busy) => {
    await warmUp(busy, load)
    const before = await Promise.all(
      busy.map(async ({ probes, settled }) => {
        const reading = await settled()
        await probes.send('count')
        return reading
      }),
    )
    const driven = busy.map((): Driven => ({ cpu: 0, seconds: 0 }))
    await inTurn(busy.length, load.count, async (tree, items, part) => {
      const [one, total] = [busy[tree], driven[tree]]
      if (one && total) await drivePart(one, items, part, total)
    })
    const seconds = sum(driven.map((one) => one.seconds))
    return Promise.all(
      busy.map((one, tree) =>
        figuresOf(one, load, before[tree] as Reading, driven[tree] as Driven, seconds),
      ),
    )
  })

/** Keeps an installation busy with one part of the load, and adds what the client used. */
async function drivePart({ drive }: Busy, items: number, part: number, total: Driven) {
  const cpu = process.cpuUsage()
  const started = performance.now()
  await drive(`busy-${part}`, items)
  total.seconds += (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  total.cpu += user + system
}

/**
 * Waits until the work has settled. Returns the figures of an installation since `before`, without
 * the processor time that it needed while other trees were busy.
 * @param seconds time for which all trees were busy, including this one.
 */
async function figuresOf(
  { installation, probes, settled }: Busy,
  load: Load,
  before: Reading,
  driven: Driven,
  seconds: number,
): Promise<Figures> {
  const units = load.count * load.scenario.units
  const after = await settled()
  const answers = await probes.send<Counted>('counted')
  const idle = await idleTimes(installation, seconds - driven.seconds)
  const growth = (name: keyof Stored) => (after.stored[name] - before.stored[name]) / units

  const figures: Record<string, number> = {}
  let server = 0
  for (const [role, pid] of installation.processes) {
    const [from, to] = [before.roles.get(role), after.roles.get(role)]
    if (!from || !to) continue
    const spent = (task: number) =>
      ((to.get(task) ?? 0) - (from.get(task) ?? 0) - (idle.get(task) ?? 0)) / units
    const whole = sum([...to.keys()].map(spent))
    const own = answers.filter((answer) => answer.pid === pid)
    server += whole
    if (installation.processes.size > 1) figures[role] = whole
    let threads = 0
    for (const thread of ['main', 'view']) {
      const time = sum(own.filter((one) => one.thread === thread).map(({ task }) => spent(task)))
      threads += time
      if (time > 0) figures[`${role}: ${thread} thread`] = time
    }
    figures[`${role}: other threads`] = whole - threads
  }
  const nats = (after.nats - before.nats - (idle.get('nats') ?? 0)) / units
  return {
    'server + NATS': server + nats,
    server,
    ...figures,
    NATS: nats,
    load: driven.cpu / units,
    'garbage collection': (sum(answers.map(({ result }) => result.pause)) || 0) / units,
    allocation: sum(answers.map(({ result }) => result.allocated)) / units,
    'journal bytes': growth('journal'),
    'journal messages': growth('messages'),
    'view bytes': growth('views'),
    'state bytes': growth('state'),
    'state keys': growth('keys'),
    rate: units / driven.seconds,
  }
}
