/**
 * An index of the triggers and waits of a project, so that an event is compared only with listeners
 * that could match. Listeners are found by type or by the prefix of a pattern, then by the source
 * or by one value that a listener requires. The index is derived from the state but is not part of
 * it. It also contains the compiled conditions. Webhooks are not indexed (hooks.ts).
 *
 * Invariants:
 * L1. The result is the same as if `fits` (protocol/events/matching.ts) were evaluated for every
 *     listener, except that no listener here receives signals or internal events.
 * L2. The index follows the state: code that changes listeners in the state also changes them here
 *     (`add…`, `remove…`). A new state object gets a new index.
 */
import type { JsonObject } from '../../protocol/common.ts'
import { sourcesOf } from '../../protocol/events/matching.ts'
import type { Awaited, Publication, Watch } from '../../protocol/events/sources.ts'
import { isPrivate } from '../../protocol/events/types.ts'
import {
  type Condition,
  conditionOf,
  ExpressionError,
} from '../../protocol/rules/expressions/expression.ts'
import { matches, valueAt } from '../../protocol/rules/expressions/template.ts'
import type { Budget } from '../../protocol/rules/expressions/values.ts'
import type { SourcesState } from './state.ts'

/**
 * Maximum work of one condition for one event, in units of `Budget`. Realistic conditions need far
 * less.
 */
const MAX_WORK = 100_000
/** Work that a condition may do for one event although the budget of the command is used up. */
const MIN_WORK = 2000
/**
 * Work that the conditions may do for all events of one command: for the largest batch of events,
 * the maximum of one condition. It bounds for how long one request blocks a shard.
 */
const COMMAND_WORK = 10_000_000
/** Returns the budget for the conditions of one command. */
export const newConditionBudget = (): Budget => ({ left: COMMAND_WORK })

/** Maximum number of characters of the message about a faulty condition. */
const MAX_FAULT_LENGTH = 300

type Document = { readonly event: JsonObject; readonly meta: JsonObject }
interface Listener {
  readonly key: string
  readonly id: string
  /** Id of the loop of a trigger, or of the run of a wait. */
  readonly owner: string
  readonly of: 'trigger' | 'wait'
  readonly source_id?: string | undefined
  readonly match?: JsonObject | undefined
  readonly condition?: Condition | undefined
}
/** The result of matching an event. `heard`: whether the event's type has listeners. */
export interface Matched {
  heard: boolean
  /** Number of listeners that the event was compared with. */
  compared: number
  readonly fires: Record<string, string[]>
  readonly wakes: Record<string, string[]>
  /** Messages about conditions that could not be evaluated, by the ids of their listeners. */
  readonly faulty: Record<string, string>
}

/**
 * Returns a path in the event and the value that the listener requires at this path. An event with
 * any other value there cannot match. Returns undefined if the listener requires no such value.
 */
function guardOf({
  match = {},
  condition,
}: Listener): { readonly path: string; readonly value: unknown } | undefined {
  for (const path in match) if (typeof match[path] !== 'object') return { path, value: match[path] }
  const guard = condition?.guard
  return guard && guard.path.length > 1 && (guard.path[0] === 'event' || guard.path[0] === 'meta')
    ? { path: guard.path.join('.'), value: guard.value }
    : undefined
}

/** The listeners for one type or pattern. */
class Audience {
  size = 0
  readonly #all = new Map<string, Listener>()
  /** Listeners that require a certain source, by the source's id. */
  readonly #sourced = new Map<string, Map<string, Listener>>()
  /** Listeners that require a value at a path, by path, then by value. */
  readonly #guarded = new Map<string, Map<unknown, Map<string, Listener>>>()

  #place(listener: Listener): Map<string, Listener> {
    if (listener.source_id !== undefined)
      return at(this.#sourced, listener.source_id, () => new Map<string, Listener>())
    const guard = guardOf(listener)
    if (!guard) return this.#all
    const values = at(this.#guarded, guard.path, () => new Map<unknown, Map<string, Listener>>())
    return at(values, guard.value, () => new Map<string, Listener>())
  }
  add(listener: Listener): void {
    this.#place(listener).set(listener.key, listener)
    this.size++
  }
  remove(listener: Listener): void {
    const { source_id } = listener
    const guard = guardOf(listener)
    const place = this.#place(listener)
    if (place.delete(listener.key)) this.size--
    if (place.size > 0) return
    if (source_id !== undefined) this.#sourced.delete(source_id)
    else if (guard) this.#guarded.get(guard.path)?.delete(guard.value)
  }
  /**
   * Visits the listeners that could match an event.
   * @param sources ids by which listeners can refer to the event's source.
   */
  each(
    document: Document,
    sources: ReadonlySet<unknown>,
    visit: (listener: Listener) => void,
  ): void {
    for (const listener of this.#all.values()) visit(listener)
    if (this.#sourced.size > 0)
      for (const source of sources)
        for (const listener of this.#sourced.get(source as string)?.values() ?? []) visit(listener)
    for (const [path, values] of this.#guarded)
      for (const listener of values.get(valueAt(document, path))?.values() ?? []) visit(listener)
  }
}
function at<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

export class Listeners {
  /** Audiences by type or pattern. */
  readonly #audiences = new Map<string, Audience>()
  readonly #known = new Map<string, { readonly pattern: string; readonly listener: Listener }>()

  constructor({ loops, waits }: SourcesState) {
    for (const id in loops) this.addLoop(id, loops[id]?.triggers ?? [])
    for (const id in waits) {
      const { run_id, wait } = waits[id] as SourcesState['waits'][string]
      this.addWait(run_id, wait)
    }
  }
  addLoop(loop_id: string, triggers: readonly Watch[]): void {
    for (const trigger of triggers)
      this.#add(`${loop_id} ${trigger.trigger_id}`, trigger.trigger_id, loop_id, 'trigger', trigger)
  }
  removeLoop(loop_id: string, triggers: readonly Watch[]): void {
    for (const { trigger_id } of triggers) this.#remove(`${loop_id} ${trigger_id}`)
  }
  addWait(run_id: string, wait: Awaited): void {
    this.#add(wait.wait_id, wait.wait_id, run_id, 'wait', wait)
  }
  removeWait(wait_id: string): void {
    this.#remove(wait_id)
  }
  #add(
    key: string,
    id: string,
    owner: string,
    of: Listener['of'],
    { event_type, source_id, match, condition }: Omit<Awaited, 'wait_id'>,
  ): void {
    this.#remove(key)
    const listener: Listener = {
      key,
      id,
      owner,
      of,
      source_id,
      match,
      condition: condition === undefined ? undefined : conditionOf(condition),
    }
    this.#known.set(key, { pattern: event_type, listener })
    at(this.#audiences, event_type, () => new Audience()).add(listener)
  }
  #remove(key: string): void {
    const known = this.#known.get(key)
    if (!known) return
    this.#known.delete(key)
    const audience = this.#audiences.get(known.pattern)
    audience?.remove(known.listener)
    if (audience?.size === 0) this.#audiences.delete(known.pattern)
  }

  /**
   * Returns the listeners that match an event.
   * @param budget the budget for the conditions of the command, to which their work is charged.
   */
  match({ event_type, source_kind, source_id, event, meta }: Publication, budget: Budget): Matched {
    const matched: Matched = { heard: false, compared: 0, fires: {}, wakes: {}, faulty: {} }
    if (isPrivate(event_type)) return matched
    // Most events have no listeners, so `sources` is computed on first use.
    let sources: ReadonlySet<unknown> | undefined
    const document = { event, meta }
    const visit = ({ id, owner, of, match, condition }: Listener): void => {
      matched.compared++
      if (match && !matches(match, document)) return
      if (condition && !holds(condition, document, budget, id, matched)) return
      const into = of === 'trigger' ? matched.fires : matched.wakes
      into[owner] = [...(into[owner] ?? []), id]
    }
    for (let dot = event_type.indexOf('.'); ; dot = event_type.indexOf('.', dot + 1)) {
      const audience = this.#audiences.get(dot < 0 ? event_type : `${event_type.slice(0, dot)}.*`)
      if (audience) {
        matched.heard = true
        sources ??= sourcesOf({ source_kind, source_id, meta })
        audience.each(document, sources, visit)
      }
      if (dot < 0) return matched
    }
  }
}
function holds(
  condition: Condition,
  document: Document,
  budget: Budget,
  id: string,
  { faulty }: Matched,
): boolean {
  const allowed = Math.max(MIN_WORK, Math.min(MAX_WORK, budget.left))
  const scope = { roots: document, left: allowed }
  try {
    return condition.test(scope)
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error
    faulty[id] = error.message.slice(0, MAX_FAULT_LENGTH)
    return false
  } finally {
    budget.left -= allowed - scope.left
  }
}

const known = new WeakMap<SourcesState, Listeners>()
/** Returns the index of a state. The index is built on first use. */
export function listenersOf(state: SourcesState): Listeners {
  const found = known.get(state) ?? new Listeners(state)
  known.set(state, found)
  return found
}
/**
 * Returns the index of a state, or undefined if it has not been built yet. A caller that changes
 * listeners need not build it, because an index that is built later includes the change.
 */
export const builtListeners = (state: SourcesState): Listeners | undefined => known.get(state)
