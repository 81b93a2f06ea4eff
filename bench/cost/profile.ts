/**
 * Profiles one tree under the load of the measured rounds: first its processor time, then, under a
 * quarter of that load, its allocations. Profiling has overhead, so it is never part of a measured
 * round. A profile also includes the time during which a thread waits for a processor. For each
 * thread, the times of the modules are therefore scaled so that their sum equals the processor time
 * that Linux reports for the thread.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Attributed, allocationsOf, attribute, callsOf, type Located } from './attribute.ts'
import { threadTimes } from './installation.ts'
import { fileOf, moduleOf } from './modules.ts'
import { type Load, warmed } from './round.ts'
import type { Tree } from './trees.ts'

/** A thread of the program, with the cost of its modules and functions per unit of the load. */
export interface ThreadProfile {
  /** Name in tables: `<role>: <thread>`. */
  readonly name: string
  /** Processor time in µs, by module. */
  readonly time: ReadonlyMap<string, number>
  /** Processor time in µs, by function. */
  readonly functions: ReadonlyMap<string, number>
  /** Allocated bytes, by module. */
  readonly bytes: ReadonlyMap<string, number>
}
/** The profile of a tree per unit of the load. */
export interface TreeProfile {
  readonly threads: readonly ThreadProfile[]
  /** Processor time in µs of other threads of the program, by role, and of the NATS server. */
  readonly others: ReadonlyMap<string, number>
}
/** Fraction of the load that is repeated for the profile of allocations. */
const ALLOCATING = 0.25

type Frame = Parameters<Parameters<typeof attribute>[1]>[0]
/** Creates a function that finds the source of a frame, using the source maps of bundles. */
function createLocator(): (frame: Frame) => Located {
  const maps = new Map<string, SourceMap | undefined>()
  const mapOf = (url: string): SourceMap | undefined => {
    if (maps.has(url)) return maps.get(url)
    let map: SourceMap | undefined
    try {
      map = new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, 'utf8')))
    } catch {
      // Packages that are not bundled have no source map.
    }
    maps.set(url, map)
    return map
  }
  return ({ url, lineNumber, columnNumber }) => {
    const map = url.startsWith('file:') ? mapOf(url) : undefined
    const entry = map?.findEntry(lineNumber, columnNumber)
    if (!entry || !('originalSource' in entry)) {
      const file = fileOf(url)
      return { file, module: moduleOf(file) }
    }
    const file = fileOf(entry.originalSource)
    return { file, line: entry.originalLine + 1, module: moduleOf(file) }
  }
}
const scaled = (sums: ReadonlyMap<string, number>, factor: number): Map<string, number> =>
  new Map([...sums].map(([name, value]) => [name, value * factor]))

/**
 * Profiles a tree.
 * @param kept folder where the profiles are kept for other tools. By default, they are deleted.
 */
export async function profileTree(tree: Tree, load: Load, kept?: string): Promise<TreeProfile> {
  const folder = kept ?? mkdtempSync(join(tmpdir(), 'baton-profile-'))
  mkdirSync(folder, { recursive: true })
  const prefix = tree.name.replace(/[^\w.]+/g, '-')
  const path = (thread: string, kind: string) => join(folder, `${prefix}-${thread}.${kind}`)
  const locate = createLocator()
  try {
    return await warmed(tree, load, async ({ installation, probes, drive, settled }) => {
      await settled()
      const times = () => [...installation.processes].map(([, pid]) => threadTimes(pid))
      const sum = (all: ReadonlyMap<number, number>) => [...all.values()].reduce((a, b) => a + b, 0)
      const units = load.count * load.scenario.units
      await probes.send('sample')
      const before = times()
      const store = threadTimes(installation.nats)
      await drive('profiled', load.count)
      const after = times()
      const nats = (sum(threadTimes(installation.nats)) - sum(store)) / units
      const answers = await probes.send('sampled', (thread) => path(thread, 'cpuprofile'))
      const fewer = Math.max(1, Math.ceil(load.count * ALLOCATING))
      await settled()
      await probes.send('allocations')
      await drive('allocating', fewer)
      await probes.send('allocated', (thread) => path(thread, 'heapprofile'))

      const others = new Map<string, number>()
      const threads: ThreadProfile[] = []
      for (const [index, [role, pid]] of [...installation.processes].entries()) {
        const spent = (task: number) =>
          ((after[index]?.get(task) ?? 0) - (before[index]?.get(task) ?? 0)) / units
        let rest = [...(after[index]?.keys() ?? [])].reduce((all, task) => all + spent(task), 0)
        for (const { task, thread, socket } of answers.filter((answer) => answer.pid === pid)) {
          const read = (kind: string) => JSON.parse(readFileSync(path(socket, kind), 'utf8'))
          const cpu: Attributed = attribute(callsOf(read('cpuprofile')), locate)
          const heap = attribute(allocationsOf(read('heapprofile')), locate)
          const factor = cpu.total > 0 ? spent(task) / cpu.total : 0
          rest -= spent(task)
          threads.push({
            name: `${role}: ${thread} thread`,
            time: scaled(cpu.modules, factor),
            functions: scaled(cpu.functions, factor),
            bytes: scaled(heap.modules, 1 / (fewer * load.scenario.units)),
          })
        }
        others.set(`${role}: other threads`, rest)
      }
      return { threads, others: others.set('NATS', nats) }
    })
  } finally {
    if (kept === undefined) rmSync(folder, { recursive: true, force: true })
  }
}
