/**
 * Invariants of sessions, in journal order: message numbers have no gaps; at most one turn runs;
 * ended turns remain ended; a key starts one turn; each call is made once and has the result of its
 * job; nudges are delivered once. At rest, no turn can continue.
 */
import type { SessionState } from '../../../actors/sessions/state.ts'
import type { Command, PlacedEntry } from '../../../protocol/entry.ts'
import type { QueueEvent } from '../../../protocol/jobs/rows.ts'
import { isFrame, type SessionEvent } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { settledTurns } from '../../../protocol/sessions/settled.ts'
import type { Simulation } from '../simulation.ts'
import type { Past } from './history.ts'
import { interactionOf } from './interactions.ts'

interface Course {
  revision: number
  sequence: number
  readonly statuses: Map<string, string>
  readonly keys: Set<string>
  /** Calls by turn and id, each with its job and whether it has ended. */
  readonly calls: Map<string, { job?: string; done?: true }>
  /** Ids of the tool uses in the last row. The next row must contain their results. */
  open: readonly string[]
  readonly delivered: Set<string>
}
const born = (): Course => ({
  revision: 0,
  sequence: 0,
  statuses: new Map(),
  keys: new Set(),
  calls: new Map(),
  open: [],
  delivered: new Set(),
})
const idsOf = ({ content }: TranscriptMessage, type: 'tool_use' | 'tool_result'): string[] =>
  content.flatMap((block) =>
    block.type !== type
      ? []
      : block.type === 'tool_use'
        ? [block.id]
        : block.type === 'tool_result'
          ? [block.tool_use_id]
          : [],
  )

export class SessionRules {
  readonly #sim: Simulation
  readonly #courses = new Map<string, Course>()
  /** Results of jobs as JSON, by job id. */
  readonly #results = new Map<string, string>()

  constructor(sim: Simulation) {
    this.#sim = sim
  }
  checkQueue({ entry }: PlacedEntry): void {
    for (const event of entry.events as readonly QueueEvent[])
      if (event.type === 'job.completed')
        this.#results.set(
          event.id,
          JSON.stringify((event.job as { result?: unknown }).result ?? {}),
        )
  }
  check({ cursor, entry }: PlacedEntry): void {
    const course = this.#courses.get(entry.id) ?? born()
    this.#courses.set(entry.id, course)
    for (const event of entry.events as readonly SessionEvent[]) {
      const wrong = this.#one(course, event)
      if (wrong !== undefined)
        this.#sim.violated(`session ${entry.id}: ${event.type} at ${cursor} ${wrong}`)
    }
    const running = [...course.statuses].filter(([, status]) => status === 'running')
    if (running.length > 1)
      this.#sim.violated(
        `session ${entry.id}: ${running.map(([id]) => id).join(' and ')} run at ${cursor}`,
      )
  }
  #one(course: Course, event: SessionEvent): string | undefined {
    if (isFrame(event)) course.revision++
    switch (event.type) {
      case 'turn.admitted': {
        if (event.key === undefined) return undefined
        const known = course.keys.has(event.key)
        course.keys.add(event.key)
        return known ? `starts a second turn for ${event.key}` : undefined
      }
      case 'turn.upsert': {
        const before = course.statuses.get(event.id)
        course.statuses.set(event.id, event.status)
        return before !== undefined && settledTurns.has(before)
          ? `of ${event.id}, which was ${before}`
          : undefined
      }
      case 'context.stored':
        return this.#row(course, event.message)
      case 'message.upsert':
        return event.status === 'final' ? this.#row(course, event) : undefined
      case 'call.noted':
        return this.#call(course, event)
      default:
        return undefined
    }
  }
  #row(course: Course, row: TranscriptMessage): string | undefined {
    if (row.sequence !== ++course.sequence)
      return `has the number ${row.sequence}, not ${course.sequence}`
    const results = idsOf(row, 'tool_result')
    const wanted = course.open
    course.open = idsOf(row, 'tool_use')
    if (JSON.stringify(results) !== JSON.stringify(wanted))
      return `answers ${results.join(' ') || 'no call'}, not ${wanted.join(' ') || 'none'}`
    const status = row.turn_id === undefined ? undefined : course.statuses.get(row.turn_id)
    if (status !== undefined && settledTurns.has(status))
      return `is a row of a turn that was ${status}`
    const nudge = row.metadata?.['session_nudge_id']
    if (typeof nudge !== 'string') return undefined
    const known = course.delivered.has(nudge)
    course.delivered.add(nudge)
    return known ? `delivers ${nudge} a second time` : undefined
  }
  #call(
    course: Course,
    { turn_id, id, call: { job_id, state, result } }: Extract<SessionEvent, { type: 'call.noted' }>,
  ): string | undefined {
    const key = `${turn_id} ${id}`
    const call = course.calls.get(key) ?? {}
    course.calls.set(key, call)
    if (call.done) return `changes ${id}, which is done`
    if (job_id) {
      if (call.job !== undefined) return `has ${id} done a second time`
      call.job = job_id
    }
    if (state !== 'done') return undefined
    call.done = true
    const given = call.job === undefined ? undefined : this.#results.get(call.job)
    return given !== undefined && result && !result.is_error && result.content !== given
      ? `says ${String(result.content)}, but the job gave ${given}`
      : undefined
  }

  /**
   * Returns why a session is not at rest; undefined if it has counted its frames and rows
   * correctly, and is waiting only for answers from people.
   */
  unsettled({ address: { id, project }, state }: Past): string | undefined {
    const { turns, compacting, nudges, revision, sequence } = state as SessionState
    const course = this.#courses.get(id)
    if (revision !== course?.revision || sequence !== course.sequence)
      return (
        `session ${id} counts ${revision} frames and ${sequence} rows, ` +
        `but there are ${course?.revision} and ${course?.sequence}`
      )
    if (compacting) return `session ${id} is being summed up`
    for (const { record, work } of Object.values(turns)) {
      if (record.status !== 'waiting') return `turn ${record.id} is ${record.status}`
      const asked = Object.values(work.segment?.calls ?? {}).filter(
        (call) => call.state === 'waiting',
      )
      const over = asked
        .map(({ interaction_id = '' }) =>
          this.#sim.history.of({ project, kind: 'interaction', id: interaction_id }),
        )
        .find(
          (past) => !past || !['pending', 'in_review'].includes(interactionOf(past)?.status ?? ''),
        )
      if (asked.length === 0 || over)
        return `turn ${record.id} waits for ${asked.length === 0 ? 'nothing' : 'an answer that was given'}`
    }
    const stray = Object.values(nudges).find(({ kept }) => !turns[kept.turn_id])
    return stray && `${stray.nudge.id} waits for a turn that is over`
  }
}

/**
 * Whether a command to a session can have this reply without appending an entry. This applies to a
 * repeat, and to a cancellation or compaction without effect.
 */
export const sessionUnchanged = ({ name }: Pick<Command, 'name'>, reply: unknown): boolean =>
  name === 'session.cancel' ||
  name === 'session.cancel_turn' ||
  name === 'session.compact' ||
  ((name === 'agent.invoke' || name === 'session.nudge') &&
    (reply as { deduped?: boolean }).deduped === true)
