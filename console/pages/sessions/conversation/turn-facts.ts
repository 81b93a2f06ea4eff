/**
 * Loads, for each turn, the facts that the transcript does not contain: who requested the turn, and
 * its cost. A turn is read when it appears and again when it has ended. One request reads many
 * turns.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { TranscriptTurn } from '../../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../../protocol/sessions/settled.ts'
import { ApiError, call } from '../../../api/client.ts'

/** The facts of a turn. `milli`: the cost in thousandths of a credit, if a price is known. */
export interface TurnFacts {
  readonly asker?: string | undefined
  readonly milli?: number | undefined
}

/** Maximum number of turns per request. */
const MAX_TURNS = 100
/**
 * Delay before turns are read, so that one request reads several turns. If the list of turns lags
 * behind the transcript, it is also the delay before the next attempt.
 */
const PAUSE_MS = 300
/** Maximum number of attempts to read a turn while the list of turns lacks it or its end. */
const MAX_READS = 4

const isOver = ({ status }: Pick<TranscriptTurn, 'status'>): boolean => settledTurns.has(status)

class FactsOfTurns {
  readonly #facts = signal<ReadonlyMap<string, TurnFacts>>(new Map())
  readonly #of: { readonly project: string; readonly session_id: string }
  /** The ids of the turns that must still be read, with the number of attempts so far. */
  readonly #wanted = new Map<string, number>()
  /** The ids of the requested turns. The value is true if the turn had ended when requested. */
  readonly #read = new Map<string, boolean>()
  #later: ReturnType<typeof setTimeout> | undefined
  #stopped = false

  constructor(project: string, session_id: string) {
    this.#of = { project, session_id }
  }
  get facts(): ReadonlySignal<ReadonlyMap<string, TurnFacts>> {
    return this.#facts
  }
  /** Reads the turns whose facts are missing or were read before their end. */
  want(turns: Iterable<TranscriptTurn>): void {
    for (const turn of turns) {
      const read = this.#read.get(turn.id)
      if (read === undefined || (!read && isOver(turn))) {
        this.#read.set(turn.id, isOver(turn))
        this.#wanted.set(turn.id, 0)
      }
    }
    this.#schedule()
  }
  stop(): void {
    this.#stopped = true
    clearTimeout(this.#later)
  }

  #schedule(): void {
    if (this.#stopped || this.#wanted.size === 0) return
    this.#later ??= setTimeout(() => {
      this.#later = undefined
      void this.#load()
    }, PAUSE_MS)
  }
  async #load(): Promise<void> {
    const ids = [...this.#wanted.keys()].slice(0, MAX_TURNS)
    const found = await call('session.turns', { ...this.#of, ids, limit: MAX_TURNS }).catch(
      (error: unknown) => {
        // API errors are ignored: names and costs are optional, and the conversation reports
        // refusals.
        if (error instanceof ApiError) return undefined
        throw error
      },
    )
    if (!found) {
      for (const id of ids) this.#wanted.delete(id)
      return
    }
    const facts = new Map(this.#facts.peek())
    const known = new Map(found.items.map((turn) => [turn.id, turn]))
    for (const id of ids) {
      const turn = known.get(id)
      if (turn) facts.set(id, { asker: turn.asked_by, milli: turn.credit_cost_milli })
      const reads = (this.#wanted.get(id) ?? 0) + 1
      const complete = turn !== undefined && (isOver(turn) || this.#read.get(id) === false)
      if (complete || reads >= MAX_READS) this.#wanted.delete(id)
      else this.#wanted.set(id, reads)
    }
    if (!this.#stopped) this.#facts.value = facts
    this.#schedule()
  }
}

/** Loads the facts about a conversation's turns. `version` changes with the transcript. */
export function useTurnFacts(
  project: string,
  session_id: string,
  turns: Iterable<TranscriptTurn>,
  version: number,
): ReadonlyMap<string, TurnFacts> {
  const all = useMemo(() => new FactsOfTurns(project, session_id), [project, session_id])
  useEffect(() => all.want(turns), [all, version])
  useEffect(() => () => all.stop(), [all])
  return all.facts.value
}
