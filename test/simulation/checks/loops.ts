/**
 * Invariants of loops, in journal order: a firing results in at most one run; no schedule fires
 * twice for the same time or out of order; the limits of loops, triggers and the organization are
 * observed; no run starts while its loop is paused. At rest, loops, runs, slots, projects and the
 * event matcher agree.
 */

import type { SourcesState } from '../../../actors/events/state.ts'
import { ruleOf } from '../../../actors/loops/admit.ts'
import type { LoopState } from '../../../actors/loops/state.ts'
import type { ProjectState } from '../../../actors/projects/state.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import type { LoopEvent } from '../../../protocol/loops/events.ts'
import type { Loop } from '../../../protocol/loops/schema.ts'
import type { SlotRequest } from '../../../protocol/loops/slots.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { terminal } from '../../../protocol/runs/schema.ts'
import type { Simulation } from '../simulation.ts'
import type { Past } from './history.ts'

interface Course {
  loop: Loop
  trigger_ids: Readonly<Record<string, string>>
  over: boolean
  paused: boolean
  /** Whether the loop has always been active. A loop that was paused may have missed firings. */
  steady: boolean
  /** The trigger of each run that has started but not ended, by run id. */
  readonly under: Map<string, string>
  /** For each schedule, the last time for which it fired. */
  readonly times: Map<string, string>
  /**
   * For each schedule, the anchor from which its times are computed. If a clock is set back, a
   * changed schedule may get an earlier anchor.
   */
  readonly anchors: Map<string, number | undefined>
}
const sorted = (ids: readonly string[]): string => JSON.stringify([...ids].sort())

export class LoopRules {
  readonly #sim: Simulation
  readonly #loops = new Map<string, Course>()
  /**
   * Settled firings. Each is `<loop id> <trigger id>`, followed by the id of the event or by the
   * time.
   */
  readonly #settled = new Set<string>()
  readonly #wanted = new Map<string, string>()
  #begun = 0

  constructor(sim: Simulation) {
    this.#sim = sim
  }
  check({ cursor, entry }: PlacedEntry): void {
    for (const event of entry.events as readonly LoopEvent[]) {
      const course = this.#loops.get(entry.id)
      if (event.type === 'loop.created') {
        const { loop, trigger_ids } = event
        this.#loops.set(entry.id, {
          loop,
          trigger_ids,
          over: false,
          paused: false,
          steady: true,
          under: new Map(),
          times: new Map(),
          anchors: new Map(),
        })
      } else if (!course && event.type === 'child.answered' && event.fault) continue
      else if (!course)
        this.#sim.violated(`loop ${entry.id}: ${event.type} at ${cursor} before it was created`)
      else if (event.type === 'loop.deleted') course.over = true
      else if (event.type === 'loop.updated') {
        course.paused = (event.loop.status ?? course.loop.status) === 'paused'
        course.loop = { ...course.loop, status: course.paused ? 'paused' : 'active' }
        course.steady &&= !course.paused
      } else if (event.type === 'schedules.set') {
        for (const [trigger, clock] of Object.entries(event.clocks))
          if (clock?.anchor !== course.anchors.get(trigger)) course.times.delete(trigger)
        for (const [trigger, clock] of Object.entries(event.clocks))
          course.anchors.set(trigger, clock?.anchor)
      } else if (
        (event.type === 'run.admitted' ||
          event.type === 'run.lined_up' ||
          event.type === 'trigger.skipped') &&
        event.fire !== undefined
      )
        this.#fired(entry.id, course, event.fire, cursor)
    }
  }
  #fired(loop: string, course: Course, fire: string, cursor: number): void {
    const say = (what: string) =>
      this.#sim.violated(`loop ${loop}: ${fire} fires at ${cursor} ${what}`)
    const key = `${loop} ${fire}`
    if (this.#settled.has(key)) say('a second time')
    this.#settled.add(key)
    const [trigger = '', what = ''] = fire.split(' ')
    if (what.startsWith('sevt_')) return
    const last = course.times.get(trigger)
    if (last !== undefined && what <= last) say(`after ${last}`)
    course.times.set(trigger, what)
  }
  /** Records that an event must fire these triggers. */
  want(id: string, fires: Readonly<Record<string, readonly string[]>>): void {
    for (const [loop, triggers] of Object.entries(fires))
      for (const trigger of triggers) this.#wanted.set(`${loop} ${trigger} ${id}`, loop)
  }
  /** Checks an entry of a run. The second argument is the state after the entry. */
  checkRun({ cursor, entry }: PlacedEntry, { record, engine }: RunState): void {
    const { id, loop_id } = record
    const course = loop_id === undefined ? undefined : this.#loops.get(loop_id)
    if (!course) return
    const say = (what: string) =>
      this.#sim.violated(`run ${id} of ${loop_id} at ${cursor}: ${what}`)
    if (
      (entry.events as readonly RunEvent[]).some(({ type }) => type === 'run.started') &&
      course.paused &&
      !course.over
    )
      say('started while the loop is paused')
    const begun =
      record.started_at !== undefined && !terminal.has(record.status) && engine.held === undefined
    if (begun === course.under.has(id)) return
    this.#begun += begun ? 1 : -1
    if (!begun) {
      course.under.delete(id)
      return
    }
    const trigger = record.source?.trigger_id ?? ''
    course.under.set(id, trigger)
    const { plan_limit } = this.#sim
    if (plan_limit !== undefined && this.#begun > plan_limit)
      say(`${this.#begun} runs are under way in all, ${plan_limit} may be`)
    if (course.over) return
    if ((course.loop.concurrency ?? 'allow') !== 'allow' && course.under.size > 1)
      say(`begins beside ${[...course.under.keys()].join(', ')}`)
    const rule = course.loop.triggers?.find(({ key = '' }) => course.trigger_ids[key] === trigger)
    const beside = [...course.under.values()].filter((one) => one === trigger).length
    if (rule && beside > ruleOf(rule).limit) say(`${beside} runs of its trigger are under way`)
  }

  /**
   * Returns the description of a firing that is not settled although its loop has always been
   * active; undefined if there is no such firing.
   */
  unfired(): string | undefined {
    const missed = [...this.#wanted].find(
      ([key, loop]) => !this.#settled.has(key) && this.#loops.get(loop)?.steady,
    )
    return missed && `${missed[0]} is not settled`
  }
  #runsOf(loop: string): RunState[] {
    return [...this.#sim.history.actors.values()].flatMap(({ address, state }) =>
      address.kind === 'run' && (state as RunState).record.loop_id === loop
        ? [state as RunState]
        : [],
    )
  }
  /**
   * Returns why a loop is not at rest; undefined if it is at rest. A loop that was never created is
   * at rest. Otherwise, the loop must be deleted, and its project must have recorded the deletion.
   * The loop must store exactly those of its runs that have not ended. None of these runs may be
   * displaced or waiting to start.
   */
  unsettled({ address, state }: Past): string | undefined {
    const { id, project } = address
    const { record, active, line, leaving, places, deleted, standing } = state as LoopState
    if (!record && !deleted) return undefined
    if (!deleted) return `loop ${id} is still there`
    const there = sorted(
      this.#runsOf(id)
        .filter(({ record }) => !terminal.has(record.status))
        .map(({ record }) => record.id),
    )
    const known = sorted([...Object.keys(active), ...line.map(({ run_id }) => run_id)])
    if (known !== there) return `loop ${id} knows ${known}, but there are ${there}`
    if (line.length > 0 || Object.keys(leaving).length > 0)
      return `loop ${id} is gone, but ${line.length} wait and ${Object.keys(leaving).length} are to go`
    const waiting = Object.entries(places).find(([, place]) => place === 'declined')
    if (waiting) return `loop ${id} keeps ${waiting[0]} waiting`
    const told = (
      this.#sim.history.of({ project, kind: 'project', id: project })?.state as
        | ProjectState
        | undefined
    )?.loops[id]
    return told?.version === standing.version && told.gone !== undefined
      ? undefined
      : `project ${project} knows ${JSON.stringify(told)} of loop ${id}, which told ${standing.version}`
  }
  /** Returns why the slots of the organization are not at rest; undefined if they are at rest. */
  unsettledPlaces({ state }: Past): string | undefined {
    const { given, line } = state as {
      given: Record<string, Omit<SlotRequest, 'run_id'>>
      line: readonly SlotRequest[]
    }
    const stands = ({ project, loop_id }: Omit<SlotRequest, 'run_id'>, run: string) =>
      (this.#sim.history.of({ project, kind: 'loop', id: loop_id })?.state as LoopState | undefined)
        ?.places[run]
    const lost = Object.entries(given).find(([run, of]) => stands(of, run) !== 'had')
    if (lost) return `run ${lost[0]} has a place, but its loop says ${stands(lost[1], lost[0])}`
    const odd = line.find((wanting) => stands(wanting, wanting.run_id) !== 'asked')
    if (odd)
      return `run ${odd.run_id} waits for a place, but its loop says ${stands(odd, odd.run_id)}`
    return line.length > 0 && Object.keys(given).length < (this.#sim.plan_limit ?? Infinity)
      ? `${line.length} wait for a place, and there is room`
      : undefined
  }
  /**
   * Returns a violation if the matcher of a project still stores triggers, although all loops are
   * deleted at rest. Returns undefined if it stores none.
   */
  unsettledMatcher({ address, state }: Past): string | undefined {
    const [watched] = Object.entries((state as SourcesState).loops).filter(
      ([, { triggers }]) => triggers.length > 0,
    )
    return watched && `the matcher of ${address.project} still watches for loop ${watched[0]}`
  }
}
