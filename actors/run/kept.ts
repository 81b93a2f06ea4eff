/**
 * How events change what a run keeps of its branches. Bounded work for each event: branches under way are few, and what
 * branches gave is kept in chunks, so that adding one copies a chunk and not everything that came before.
 */
import type { RunEvent, RunStep } from '../../protocol/api/runs.ts'
import { own } from '../../protocol/lookup.ts'
import { patch } from '../../protocol/patch.ts'
import type { Branch, Join, Note, RunState, Yield } from './state.ts'

const CHUNK = 128
type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Apply the part of an event that is about branches. */
export function applyBranches(next: Writable<RunState>, before: RunState, { step, row }: RunEvent, { at, place, join, gave }: Note): void {
  if (join === null) return
  if (before.join || join) next.join = patch(before.join ?? ({} as Join), join)
  if (before.branches) next.branches = before.branches
  if (before.yields) next.yields = before.yields
  if (at !== undefined) next.branches = withBranch(before.branches ?? [], at, place, step, row)
  if (gave) next.yields = withYield(before.yields ?? {}, gave.index, gave.what)
}

function withBranch(branches: NonNullable<RunState['branches']>, at: string, place: Note['place'], step: string | undefined, row: RunEvent['row']): RunState['branches'] & object {
  const index = branches.findIndex(({ key }) => key === at)
  const others = branches.slice()
  if (place === null) {
    if (index >= 0) others.splice(index, 1)
    return others
  }
  const known = branches[index] ?? ({ key: at, rows: {} } as unknown as Branch)
  const next = patch(known, place)
  const record = step === undefined ? undefined : own(known.rows, step)
  others[index < 0 ? others.length : index] = step !== undefined && row ? { ...next, rows: { ...known.rows, [step]: patch(record ?? ({} as RunStep), row) } } : next
  return others
}

function withYield(yields: NonNullable<RunState['yields']>, index: number, what: Yield): NonNullable<RunState['yields']> {
  const chunk = String(Math.floor(index / CHUNK))
  return { ...yields, [chunk]: { ...own(yields, chunk), [String(index)]: what } }
}

/** What a branch or item gave; undefined while it has given nothing. */
export const yieldOf = ({ yields }: RunState, index: number): Yield | undefined => own(own(yields ?? {}, String(Math.floor(index / CHUNK))) ?? {}, String(index))
