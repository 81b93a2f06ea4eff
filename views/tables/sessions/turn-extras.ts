/** The members of the record of a turn that the transcript does not contain. */
import type { TurnSpending } from '../../../protocol/sessions/commands.ts'
import type { TurnExtra } from '../../../protocol/sessions/schema.ts'
import type { Store } from '../../store.ts'

/** Sets members of a turn. The turn may not have a record yet. */
export function addExtra(
  store: Store,
  n: number,
  project: number,
  id: string,
  extra: TurnExtra,
): void {
  const known = store.one<{ extra: string }>(
    'SELECT extra FROM session_turns WHERE session = ? AND id = ?',
    n,
    id,
  )
  const next = JSON.stringify({ ...(known && (JSON.parse(known.extra) as TurnExtra)), ...extra })
  if (known)
    store.run('UPDATE session_turns SET extra = ? WHERE session = ? AND id = ?', next, n, id)
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

/** Adds the cost of an answer to its turn. Events of earlier releases name no turn. */
export function addCost(
  store: Store,
  n: number,
  project: number,
  { agent_turn_id: id, milli }: TurnSpending,
): void {
  if (id === undefined || milli === 0) return
  const known = store.one<{ cost: number | null }>(
    `SELECT json_extract(extra, '$.credit_cost_milli') AS cost
     FROM session_turns
     WHERE session = ? AND id = ?`,
    n,
    id,
  )
  addExtra(store, n, project, id, { credit_cost_milli: (known?.cost ?? 0) + milli })
}
