/**
 * Invariants of source events, in journal order. An event resumes exactly the matching waits that
 * the matcher stores when the event is published. It fires exactly the matching triggers that are
 * stored then. Triggers beyond a limit do not fire, but the event lists them. Events with the same
 * deduplication key are published only once. No wait is shown as open before the matcher stores it.
 * At rest, no run still has a wait that an event has matched.
 */

import type { SourcesState } from '../../../actors/events/state.ts'
import { progressesOf, type RunState } from '../../../actors/runs/state.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { fits } from '../../../protocol/events/matching.ts'
import type { Awaited, SourcesEvent, Watch } from '../../../protocol/events/sources.ts'
import { ExpressionError } from '../../../protocol/rules/expressions/expression.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import type { Simulation } from '../simulation.ts'
import type { Past } from './history.ts'
import type { LoopRules } from './loops.ts'

const sorted = (ids: readonly string[]): string => JSON.stringify([...ids].sort())
function isFor(wait: Awaited | Watch, event: Parameters<typeof fits>[1]): boolean {
  try {
    return fits(wait, event)
  } catch (error) {
    if (error instanceof ExpressionError) return false
    throw error
  }
}
/** Returns the ids of a run's waits for source events, open or not. */
const waitsOf = (state: RunState): string[] =>
  terminal.has(state.record.status)
    ? []
    : progressesOf(state).flatMap(([, { wait }]) =>
        wait?.kind === 'event' && !wait.event_type.startsWith('signal.') ? [wait.id] : [],
      )

export class EventRules {
  readonly #sim: Simulation
  /** Waits that the matcher stores, by project and then by id. */
  readonly #waits = new Map<string, Map<string, Awaited>>()
  readonly #known = new Set<string>()
  readonly #fitted = new Set<string>()
  readonly #keys = new Set<string>()
  readonly #loops: LoopRules
  /** Triggers that the matcher stores, by project and then by loop. */
  readonly #triggers = new Map<string, Map<string, readonly Watch[]>>()

  constructor(sim: Simulation, loops: LoopRules) {
    this.#sim = sim
    this.#loops = loops
  }
  check({ cursor, entry }: PlacedEntry): void {
    const waits = this.#waits.get(entry.project) ?? new Map<string, Awaited>()
    this.#waits.set(entry.project, waits)
    const triggers = this.#triggers.get(entry.project) ?? new Map<string, readonly Watch[]>()
    this.#triggers.set(entry.project, triggers)
    for (const event of entry.events as readonly SourcesEvent[]) {
      if (event.type === 'wait.watched') {
        waits.set(event.wait.wait_id, event.wait)
        this.#known.add(event.wait.wait_id)
      } else if (event.type === 'wait.unwatched') waits.delete(event.wait_id)
      else if (event.type === 'triggers.changed') triggers.set(event.loop_id, event.triggers)
      else if (event.type === 'source.published') {
        const say = (what: string) =>
          this.#sim.violated(`event ${event.id} (${event.event_type}) at ${cursor} ${what}`)
        const wanted = [...waits.values()]
          .filter((wait) => isFor(wait, event))
          .map(({ wait_id }) => wait_id)
        const woken = Object.values(event.wakes ?? {}).flat()
        if (sorted(wanted) !== sorted(woken))
          say(`was for ${sorted(wanted)}, but was given to ${sorted(woken)}`)
        for (const id of woken) this.#fitted.add(id)
        const due = [...triggers.values()]
          .flat()
          .filter((trigger) => isFor(trigger, event))
          .map(({ trigger_id }) => trigger_id)
        const { fires = {}, overruns = {} } = event
        const told = [
          ...Object.values(fires).flat(),
          ...Object.values(overruns).flatMap(({ trigger_ids }) => trigger_ids),
        ]
        if (sorted(due) !== sorted(told))
          say(`should fire ${sorted(due)}, but fires ${JSON.stringify({ fires, overruns })}`)
        this.#loops.want(event.id, fires)
        if (event.dedup_key === undefined) continue
        const key = `${entry.project} ${event.dedup_key}`
        if (this.#keys.has(key)) say(`was published a second time under ${event.dedup_key}`)
        this.#keys.add(key)
      }
    }
  }
  /** Checks an entry of a run: the matcher has stored every wait that the entry shows as open. */
  checkRun({ cursor, entry }: PlacedEntry): void {
    for (const { type, payload = {} } of entry.events as readonly RunEvent[]) {
      const { event_type, wait_id } = payload
      if (
        type === 'wait.opened' &&
        typeof event_type === 'string' &&
        !event_type.startsWith('signal.') &&
        !this.#known.has(String(wait_id))
      ) {
        this.#sim.violated(
          `run ${entry.id} at ${cursor} shows ${String(wait_id)} as open, which the matcher does not know`,
        )
      }
    }
  }
  /** Returns why the waits of a run are not at rest; undefined if they are at rest. */
  unsettledRun({ address, state }: Past): string | undefined {
    const missed = waitsOf(state as RunState).find((id) => this.#fitted.has(id))
    return missed === undefined
      ? undefined
      : `run ${address.id} still has ${missed}, which an event was for`
  }
  /**
   * Returns why the matcher of a project is not at rest; undefined if it stores exactly the
   * existing waits.
   */
  unsettled({ address, state }: Past): string | undefined {
    const runs = [...this.#sim.history.actors.values()].filter(
      (past) => past.address.kind === 'run' && past.address.project === address.project,
    )
    const wanted = sorted(runs.flatMap((past) => waitsOf(past.state as RunState)))
    const known = sorted(Object.keys((state as SourcesState).waits))
    return known === wanted
      ? undefined
      : `the matcher of ${address.project} knows ${known}, but there are ${wanted}`
  }
}
