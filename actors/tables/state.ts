/**
 * The state of a table: its definition, its claim on its name, counters, and the window of recent
 * changes. Rows are not stored here. A command contains the facts about the rows that it concerns.
 */
import type { InternalBinding } from '../../protocol/blueprints/stored.ts'
import type { NameClaim } from '../../protocol/tables/events.ts'
import type { Table } from '../../protocol/tables/schema.ts'
import { emptyWindow, type RowWindow } from './window.ts'

export interface TableState {
  /** Absent before the table is created and after it is deleted. */
  table?: Table
  binding?: InternalBinding
  /** The claim on the name of the table. */
  claim?: NameClaim
  /**
   * The latest denied claim of each holder. The table never uses this claim or an earlier claim of
   * the same holder. Only the most recent holders have an entry.
   */
  denied: Record<string, number>
  rows: number
  /** Number of row changes so far. */
  change: number
  window: RowWindow
  deleted?: true
}
/** A table that exists. */
export type LiveTable = TableState & { readonly table: Table; readonly claim: NameClaim }
export const isLive = (state: TableState): state is LiveTable =>
  state.table !== undefined && state.claim !== undefined

/** Returns the state of a table before it is created. */
export const initialTable = (): TableState => ({
  denied: {},
  rows: 0,
  change: 0,
  window: emptyWindow(),
})

/** Maximum number of holders in `denied`. The oldest are dropped. */
const MAX_DENIED = 200
/** Whether a claim is denied, so that the table must not use it. */
export const isDenied = ({ denied }: TableState, { holder, claim }: NameClaim): boolean =>
  claim <= (denied[holder] ?? 0)
/** Denies a claim and all earlier claims of its holder. */
export function deny({ denied }: TableState, { holder, claim }: NameClaim): void {
  const latest = Math.max(claim, denied[holder] ?? 0)
  delete denied[holder]
  denied[holder] = latest
  const holders = Object.keys(denied)
  if (holders.length > MAX_DENIED) delete denied[holders[0] ?? '']
}
