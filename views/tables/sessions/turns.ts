/**
 * The rows of turns: the record in the transcript, and `extra`, which contains further members of
 * the turn, among them its cost.
 */
import type { TurnSpending } from '../../../protocol/sessions/commands.ts'
import type { TurnExtra, TurnUpsert } from '../../../protocol/sessions/schema.ts'
import type { Store } from '../../store.ts'

interface TurnChange {
  turn?: { readonly record: TurnUpsert; readonly revision: number }
  extra?: TurnExtra
}
const INSERT = `INSERT INTO session_turns (id, session, project, seq, status, revision, extra, record)
   VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session, id) DO UPDATE SET `
const RECORD =
  'seq = excluded.seq, status = excluded.status, revision = excluded.revision, record = excluded.record'
const EXTRA = 'extra = excluded.extra'
const UPSERT_RECORD = INSERT + RECORD
const UPSERT_EXTRA = INSERT + EXTRA
const UPSERT_BOTH = `${UPSERT_RECORD}, ${EXTRA}`

/** The changes of one entry to the turns of a session. `write` writes each turn once. */
export class TurnChanges {
  readonly #store: Store
  readonly #session: number
  readonly #project: number
  readonly #turns = new Map<string, TurnChange>()
  /** @param session the number of the session. */
  constructor(store: Store, session: number, project: number) {
    this.#store = store
    this.#session = session
    this.#project = project
  }

  /** Replaces the record of a turn. */
  put(record: TurnUpsert, revision: number): void {
    this.#of(record.id).turn = { record, revision }
  }
  /** Sets the first members of a turn that begins in this entry. */
  begin(id: string, extra: TurnExtra): void {
    this.#of(id).extra = extra
  }
  /**
   * Changes members of a turn. The turn may not have a record yet.
   * @param change returns the members to set, from the members that are already set.
   */
  add(id: string, change: (known: TurnExtra) => TurnExtra): void {
    const turn = this.#of(id)
    const known = turn.extra ?? this.#extraOf(id)
    turn.extra = { ...known, ...change(known) }
  }
  /**
   * Adds the cost of an answer to its turn. Events of earlier releases name no turn, so they are
   * ignored.
   */
  addCost({ agent_turn_id: id, milli }: TurnSpending): void {
    if (id === undefined || milli === 0) return
    this.add(id, ({ credit_cost_milli = 0 }) => ({ credit_cost_milli: credit_cost_milli + milli }))
  }
  /** Writes the changed turns. */
  write(): void {
    for (const [id, { turn, extra }] of this.#turns)
      this.#store.run(
        !turn ? UPSERT_EXTRA : extra ? UPSERT_BOTH : UPSERT_RECORD,
        id,
        this.#session,
        this.#project,
        turn?.record.seq ?? 0,
        turn?.record.status ?? 'queued',
        turn?.revision ?? 0,
        JSON.stringify(extra ?? {}),
        JSON.stringify(turn?.record ?? {}),
      )
    this.#turns.clear()
  }

  #of(id: string): TurnChange {
    let turn = this.#turns.get(id)
    if (!turn) this.#turns.set(id, (turn = {}))
    return turn
  }
  #extraOf(id: string): TurnExtra {
    const row = this.#store.one<{ extra: string }>(
      'SELECT extra FROM session_turns WHERE session = ? AND id = ?',
      this.#session,
      id,
    )
    return row ? (JSON.parse(row.extra) as TurnExtra) : {}
  }
}

/** Returns the cost of a session, in thousandths of a credit; null if no answer had a price. */
export const costOf = (store: Store, n: number): number | null =>
  store.one<{ milli: number | null }>(
    `SELECT sum(json_extract(extra, '$.credit_cost_milli')) AS milli
     FROM session_turns
     WHERE session = ?`,
    n,
  )?.milli ?? null
