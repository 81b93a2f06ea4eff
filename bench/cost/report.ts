/** Formats the cost of a load as tables. */
import { type Figures, median } from '../support/measure.ts'
import { table, whole } from '../support/table.ts'
import { type Compared, MIN_ROUNDS } from './compare.ts'
import type { ThreadProfile, TreeProfile } from './profile.ts'

const KIB = 1024
/** Labels and formats of the figures that are not processor times in µs, by figure. */
const KINDS: Readonly<Record<string, readonly [string, (value: number) => string]>> = {
  'garbage collection': ['pauses for garbage collection by the clock, µs', (value) => short(value)],
  allocation: ['allocated in the heaps, KiB', (value) => short(value / KIB)],
  'journal bytes': ['bytes of the journal', (value) => short(value)],
  'journal messages': ['messages of the journal', (value) => short(value)],
  'view bytes': ['bytes of views', (value) => short(value)],
  'state bytes': ['bytes of snapshots that remain', (value) => short(value)],
  'state keys': ['snapshots that remain', (value) => short(value)],
  rate: ['per second', (value) => short(value)],
}
/**
 * Formats a number: as a whole number from 100 upward, with two decimals below 1, otherwise with
 * one decimal.
 */
const short = (value: number): string =>
  Number.isNaN(value)
    ? '–'
    : Math.abs(value) >= 100
      ? whole(value)
      : value.toFixed(Math.abs(value) < 1 ? 2 : 1)
const ratio = (value: number): string => (Number.isFinite(value) ? value.toFixed(2) : '–')
const label = (name: string): string => KINDS[name]?.[0] ?? `${name}, µs`
const shown = (name: string, value: number): string => (KINDS[name]?.[1] ?? short)(value)

/** Returns the table that compares two trees. */
export const comparisonTable = (
  unit: string,
  [ours, theirs]: readonly [string, string],
  compared: readonly Compared[],
): string =>
  table(
    [`per ${unit}`, theirs, ours, 'ratio', 'smallest–greatest', 'in every round'],
    compared.map(({ name, ours, theirs, ratio: { median, min, max }, verdict }) => [
      label(name),
      shown(name, theirs),
      shown(name, ours),
      ratio(median),
      `${ratio(min)}–${ratio(max)}`,
      verdict === 'no difference' ? '' : verdict,
    ]),
  )
/** Returns the table of one tree: medians, minimums and maximums. */
export const singleTable = (unit: string, rounds: readonly Figures[]): string =>
  table(
    [`per ${unit}`, 'median', 'smallest–greatest'],
    Object.keys(rounds[0] ?? {}).map((name) => {
      const values = rounds.map((figures) => figures[name] ?? Number.NaN)
      const [min, max] = [Math.min(...values), Math.max(...values)]
      return [label(name), shown(name, median(values)), `${shown(name, min)}–${shown(name, max)}`]
    }),
  )
/** Returns a sentence that summarizes a comparison: the processor time of the server and NATS. */
export function verdictOf(compared: readonly Compared[], theirs: string, rounds: number): string {
  const both = compared.find(({ name }) => name === 'server + NATS')
  if (!both) return ''
  const { median, min, max } = both.ratio
  const conclusion =
    both.verdict === 'no difference'
      ? rounds < MIN_ROUNDS
        ? `${MIN_ROUNDS} rounds are needed to tell`
        : 'no difference beyond the spread'
      : `${both.verdict} in every round`
  return (
    `**Server and NATS use ${ratio(median)} of the processor time of ${theirs} ` +
    `(${ratio(min)} to ${ratio(max)} in ${rounds} ${rounds === 1 ? 'round' : 'rounds'}): ${conclusion}.**`
  )
}
/** Formats a progress line about a round. */
export const told = (figures: Figures): string =>
  ['server', 'NATS', 'load']
    .map((name) => `${name} ${short(figures[name] ?? Number.NaN)} µs`)
    .concat(`${short(figures['rate'] ?? Number.NaN)}/s`)
    .join(', ')

/** Modules below this fraction of a thread's time share one row of the table. */
const SMALL = 0.004
/** Number of rows in the table of functions. */
const FUNCTIONS = 40
const total = (sums: ReadonlyMap<string, number>): number =>
  [...sums.values()].reduce((all, value) => all + value, 0)

/**
 * Returns a table of processor time and allocation by module, compared with another tree if one is
 * given, and a table of the most expensive functions.
 */
export function profileTables(
  unit: string,
  ours: TreeProfile,
  other?: { readonly name: string; readonly profile: TreeProfile },
): string {
  const rows: string[][] = []
  const add = (name: string, mine: number, bytes: number | undefined, theirs: number | undefined) =>
    void rows.push([
      name,
      short(mine),
      bytes === undefined ? '' : short(bytes / KIB),
      ...(other ? [short(theirs ?? 0), ratio(mine / (theirs ?? Number.NaN))] : []),
    ])
  const counterpart = (name: string): ThreadProfile | undefined =>
    other?.profile.threads.find((thread) => thread.name === name)
  for (const { name, time, bytes } of ours.threads) {
    const whole = total(time)
    if (whole < 1) continue
    const beside = counterpart(name)
    add(`**${name}**`, whole, total(bytes), beside && total(beside.time))
    const names = [...new Set([...time.keys(), ...(beside?.time.keys() ?? []), ...bytes.keys()])]
    const large = names
      .filter((one) => Math.max(time.get(one) ?? 0, beside?.time.get(one) ?? 0) > whole * SMALL)
      .sort((a, b) => (time.get(b) ?? 0) - (time.get(a) ?? 0))
    const rest = names.filter((one) => !large.includes(one))
    const sum = (sums: ReadonlyMap<string, number> | undefined, of: readonly string[]) =>
      of.reduce((all, one) => all + (sums?.get(one) ?? 0), 0)
    for (const one of large)
      add(one, time.get(one) ?? 0, bytes.get(one) ?? 0, beside?.time.get(one))
    if (rest.length > 0)
      add('other modules', sum(time, rest), sum(bytes, rest), sum(beside?.time, rest))
  }
  for (const [name, time] of ours.others)
    add(`**${name}**`, time, undefined, other?.profile.others.get(name))
  const head = [`per ${unit}`, 'processor time, µs', 'allocated, KiB']
  return `${table([...head, ...(other ? [`${other.name}, µs`, 'ratio'] : [])], rows)}\n\n${functionTable(unit, ours)}`
}
function functionTable(unit: string, { threads }: TreeProfile): string {
  const rows = threads
    .flatMap(({ name, functions }) =>
      [...functions].map(([which, time]) => ({ name, which, time })),
    )
    .sort((a, b) => b.time - a.time)
    .slice(0, FUNCTIONS)
  return table(
    [`function, without what it calls, per ${unit}`, 'thread', 'µs'],
    rows.map(({ name, which, time }) => [`\`${which}\``, name, short(time)]),
  )
}
