/**
 * Invariants of interactions, in journal order: each is created once, ends once, and does not
 * change afterwards; no person answers twice in a round. At rest, no run waits for an interaction
 * that has ended.
 */

import type { InteractionState } from '../../../actors/interactions/state.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import type { InteractionEvent } from '../../../protocol/interactions/events.ts'
import type { Interaction } from '../../../protocol/interactions/schema.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import type { Simulation } from '../simulation.ts'
import type { Past } from './history.ts'

interface Course {
  readonly answered: Set<string>
  ended?: string
}

export const interactionOf = ({ state }: Past): Interaction | undefined =>
  (state as InteractionState | null)?.record

export class InteractionRules {
  readonly #sim: Simulation
  readonly #courses = new Map<string, Course>()

  constructor(sim: Simulation) {
    this.#sim = sim
  }
  check({ cursor, entry }: PlacedEntry): void {
    for (const event of entry.events as readonly InteractionEvent[]) {
      const say = (what: string) =>
        this.#sim.violated(`interaction ${entry.id}: ${event.type} at ${cursor} ${what}`)
      const known = this.#courses.get(entry.id)
      if (event.type === 'interaction.created' ? known : !known)
        say(known ? 'a second time' : 'before it was created')
      const course: Course = known ?? { answered: new Set() }
      this.#courses.set(entry.id, course)
      if (course.ended !== undefined) say(`after it was ${course.ended}`)
      if (event.type === 'interaction.responded' && event.response) {
        const who = `${event.response.responder_user_id} in round ${event.response.attempt ?? 1}`
        if (course.answered.has(who)) say(`by ${who} a second time`)
        course.answered.add(who)
      }
      if (event.type === 'interaction.resolved') course.ended = String(event.set?.status)
    }
  }
}

/**
 * Returns why an interaction is not at rest; undefined if it is at rest.
 * @param until a time in Unix milliseconds. Everything that was due before it must have happened.
 */
export function unsettledInteraction(
  sim: Simulation,
  past: Past,
  until: number,
): string | undefined {
  const record = interactionOf(past)
  if (!record) return undefined
  const {
    id,
    status,
    expires_at,
    consumer: { run },
  } = record
  if (!sim.records.told.has(id)) return `nobody was told of interaction ${id}`
  const asking =
    run &&
    (sim.history.of({ project: past.address.project, kind: 'run', id: run.run_id })?.state as
      | RunState
      | undefined)
  const waits =
    asking?.engine.wait?.kind === 'interaction' && asking.engine.wait.interaction_id === id
  if (status !== 'pending' && status !== 'in_review')
    return waits ? `run ${run?.run_id} waits for interaction ${id}, which is ${status}` : undefined
  if (asking && (terminal.has(asking.record.status) || !waits))
    return `interaction ${id} is ${status}, but its run does not wait for it`
  return expires_at !== undefined && (parseTimestamp(expires_at) ?? 0) < until
    ? `interaction ${id} is due`
    : undefined
}
