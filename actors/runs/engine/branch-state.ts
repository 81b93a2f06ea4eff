/**
 * The part of `apply` (../state.ts) that changes the stored branches of a run. The work per event
 * is bounded: there are few active branches, and outcomes are stored in chunks. Adding an outcome
 * copies one chunk instead of all earlier outcomes.
 */

import { getOwn } from '../../../protocol/lookup.ts'
import { patch } from '../../../protocol/patch.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import type { RunStep } from '../../../protocol/runs/schema.ts'
import type { Branch, Join, Note, RunState, Yield } from '../state.ts'

/** Number of branch outcomes in one inner list of `yields`. */
const CHUNK = 128
type Yields = NonNullable<RunState['yields']>
type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Applies the part of an event that concerns branches. */
export function applyBranches(
  next: Writable<RunState>,
  before: RunState,
  { step, row }: RunEvent,
  { at, place, join, gave }: Note,
): void {
  if (join === null) return
  if (before.join || join) next.join = patch(before.join ?? ({} as Join), join)
  if (before.branches) next.branches = before.branches
  if (before.yields) next.yields = listed(before.yields)
  if (at !== undefined) next.branches = withBranch(before.branches ?? [], at, place, step, row)
  if (gave) next.yields = withYield(next.yields ?? [], gave.index, gave.what)
}

/**
 * Returns the index of a branch among the active branches, or -1. Checks the newest branch first,
 * because most lookups are for the newest branch.
 */
export function indexAt(branches: readonly Branch[], at: string): number {
  const newest = branches.length - 1
  if (branches[newest]?.key === at) return newest
  for (let i = 0; i < newest; i++) if (branches[i]?.key === at) return i
  return -1
}

function withBranch(
  branches: NonNullable<RunState['branches']>,
  at: string,
  place: Note['place'],
  step: string | undefined,
  row: RunEvent['row'],
): RunState['branches'] & object {
  const index = indexAt(branches, at)
  const others = branches.slice()
  if (place === null) {
    if (index >= 0) others.splice(index, 1)
    return others
  }
  const known = branches[index] ?? ({ key: at, rows: {} } as unknown as Branch)
  const next = patch(known, place)
  others[index < 0 ? others.length : index] =
    step !== undefined && row
      ? {
          ...next,
          rows: {
            ...known.rows,
            [step.slice(at.length + 1)]: patch(rowIn(known, step) ?? ({} as RunStep), row),
          },
        }
      : next
  return others
}
/**
 * Returns the record of a step of a branch, or undefined if the branch has not reached the step.
 * Records are stored under the step's own key, so the `rows` objects of all items have the same
 * property names and share their V8 hidden classes. Snapshots of the first releases use the key
 * with the branch's prefix.
 */
export const rowIn = ({ key, rows }: Branch, step: string): RunStep | undefined =>
  getOwn(rows, step.slice(key.length + 1)) ?? getOwn(rows, step)

/**
 * Stores the outcome of a branch in its chunk. Chunks are lists, because copying a list takes 1 µs.
 * Copying a record with numeric names would take 50 µs, which is 4 % of the cost of an item.
 */
function withYield(yields: Yields, index: number, what: Yield): Yields {
  const [chunk, position] = [Math.floor(index / CHUNK), index % CHUNK]
  const next = yields.slice()
  while (next.length <= chunk) next.push([])
  const outcomes = next[chunk]?.slice() ?? []
  while (outcomes.length < position) outcomes.push(null)
  outcomes[position] = what
  next[chunk] = outcomes
  return next
}

type First = Readonly<Record<string, Readonly<Record<string, Yield>>>>
/**
 * Converts outcomes to lists. In snapshots of the first releases, they are nested records keyed by
 * number.
 */
const listed = (yields: Yields | First): Yields =>
  Array.isArray(yields)
    ? (yields as Yields)
    : Object.values(yields as First)
        .flatMap((chunk) => Object.entries(chunk))
        .reduce<Yields>((list, [index, what]) => withYield(list, Number(index), what), [])

/** Returns the outcome of a branch or item, or undefined while it has not ended. */
export const yieldOf = ({ yields = [] }: RunState, index: number): Yield | undefined =>
  listed(yields)[Math.floor(index / CHUNK)]?.[index % CHUNK] ?? undefined
