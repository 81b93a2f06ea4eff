/**
 * Data of turns that is stored in addition to the transcript: some members of their records, and
 * their cost.
 */
import type { TurnSpending } from '../../../protocol/sessions/commands.ts'
import type { TurnExtra } from '../../../protocol/sessions/schema.ts'
import type { Store } from '../../store.ts'

/**
 * Changes members of a turn. The turn may not have a record yet.
 * @param change returns the members to set, from the members that are already set.
 */
export function addExtra(
  store: Store,
  n: number,
  project: number,
  id: string,
  change: (known: TurnExtra) => TurnExtra,
): void {
  const row = store.one<{ extra: string }>(
    'SELECT extra FROM session_turns WHERE session = ? AND id = ?',
    n,
    id,
  )
  const known = row ? (JSON.parse(row.extra) as TurnExtra) : {}
  const next = JSON.stringify({ ...known, ...change(known) })
  if (row) store.run('UPDATE session_turns SET extra = ? WHERE session = ? AND id = ?', next, n, id)
  else
    store.run(
      `INSERT INTO session_turns (id, session, project, seq, status, revision, extra, record)
       VALUES (?, ?, ?, 0, ?, 0, ?, ?)`,
      id,
      n,
      project,
      'queued',
      next,
      '{}',
    )
}

/**
 * Adds the cost of an answer to its turn. Events of earlier releases name no turn, so they are
 * ignored.
 */
export function addCost(
  store: Store,
  n: number,
  project: number,
  { agent_turn_id: id, milli }: TurnSpending,
): void {
  if (id === undefined || milli === 0) return
  addExtra(store, n, project, id, ({ credit_cost_milli = 0 }) => ({
    credit_cost_milli: credit_cost_milli + milli,
  }))
}

/** Returns the cost of a session, in thousandths of a credit; null if no answer had a price. */
export const costOf = (store: Store, n: number): number | null =>
  store.one<{ milli: number | null }>(
    `SELECT sum(json_extract(extra, '$.credit_cost_milli')) AS milli
     FROM session_turns
     WHERE session = ?`,
    n,
  )?.milli ?? null
