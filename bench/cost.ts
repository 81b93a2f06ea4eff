/**
 * Measures the cost of a run in this tree and, optionally, in another commit. Every round starts a
 * new server for each tree, whose journal has the setting `fsync always`, and keeps them busy in
 * turn.
 */
import { StartFault } from '../nodes/process/fault.ts'
import { compare } from './cost/compare.ts'
import { profileTree } from './cost/profile.ts'
import { comparisonTable, profileTables, singleTable, told, verdictOf } from './cost/report.ts'
import { type Load, measureRound } from './cost/round.ts'
import { scenarios } from './cost/scenarios.ts'
import { type Tree, thisTree, treeOf } from './cost/trees.ts'
import type { Figures, Terms } from './support/measure.ts'
import { note, whole } from './support/table.ts'

export const about =
  'What a run costs: processor time by process and thread, allocation and stored bytes; ' +
  '--against compares with a commit'

/** Number of rounds, by default and with `--quick`. */
export const repeats = { standard: 5, quick: 2 } as const

/** Runs the benchmark and returns its tables. */
export async function bench(terms: Terms): Promise<string> {
  const { against, roles = false, quick, times, say } = terms
  const load = loadOf(terms, roles)
  const { unit, units, concurrency } = load.scenario
  const ours = await thisTree()
  const theirs = against === undefined ? undefined : await treeOf(against, say)
  const parts = [await table(ours, theirs, load, times)]
  if (terms.attribute) parts.push(await profiles(ours, theirs, load, terms))
  return (
    parts.join('\n\n') +
    note(
      `${whole(load.count * units)} ${unit}s in each round, ${concurrency * units} in flight at most, fsync always,`,
      `${roles ? 'separate processes for shards, views and gateway' : 'one process with all roles'}.`,
      quick ? 'Few rounds of few runs: a first impression.' : '',
      'Processor time: as Linux reports it for threads, from the end of the warm-up until nothing more is stored,',
      'without what an idle server uses while another tree is busy.',
      'Allocation: of the heaps of V8 between garbage collections, without the content of buffers.',
      'Views: used pages of their files. Snapshots: growth of the store of state and of large values.',
    )
  )
}

/**
 * Returns the load of the requested scenario; by default, of the scenario `runs`.
 * @throws StartFault if there is no such scenario.
 */
function loadOf({ scenario = 'runs', quick, runs, say }: Terms, separate: boolean): Load {
  const known = scenarios[scenario]
  if (!known)
    throw new StartFault(
      `There is no scenario ${scenario}. Available: ${Object.keys(scenarios).join(', ')}.`,
    )
  const count = runs ?? (quick ? known.quick : known.count)
  return { scenario: known, count, separate, say }
}

async function table(
  ours: Tree,
  theirs: Tree | undefined,
  load: Load,
  times: number,
): Promise<string> {
  const { unit } = load.scenario
  const measured: Figures[][] = [[], []]
  const trees = theirs ? [ours, theirs] : [ours]
  for (let round = 1; round <= times; round++)
    for (const [which, figures] of (await measureRound(trees, load)).entries()) {
      measured[which]?.push(figures)
      load.say(`${trees[which]?.name}, ${round} of ${times}: ${told(figures)}`)
    }
  const [mine = [], others = []] = measured
  if (!theirs) return singleTable(unit, mine)
  const compared = compare(mine, others)
  return (
    `${comparisonTable(unit, [ours.name, theirs.name], compared)}\n\n` +
    verdictOf(compared, theirs.name, times)
  )
}

async function profiles(
  ours: Tree,
  theirs: Tree | undefined,
  load: Load,
  { profile, say }: Terms,
): Promise<string> {
  const of = async (tree: Tree) => {
    say(`profile of ${tree.name}`)
    return profileTree(tree, load, profile)
  }
  const mine = await of(ours)
  return profileTables(
    load.scenario.unit,
    mine,
    theirs && { name: theirs.name, profile: await of(theirs) },
  )
}
