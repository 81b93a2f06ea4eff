/**
 * The scope of an expression: the root names and the earlier steps that the expression may read.
 */
import type { Step } from '../../workflows/steps.ts'
import type { StepRule } from './template.ts'

/**
 * Root names available to the expressions of a workflow, except where one of the lists below
 * applies instead. `event` is an alias of `input`.
 */
export const ROOTS = ['input', 'event', 'config', 'meta', 'run', 'steps'] as const
/** Root names available to the conditions of event triggers and of waits for events. */
export const EVENT_ROOTS = ['event', 'meta'] as const
/** Root names available to the payload mapping of a wait for an event. */
export const MAPPING_ROOTS = ['event', 'meta', 'run'] as const
/**
 * Root names available to the templates of a run's name and description, which are rendered when
 * the run is created.
 */
export const NAME_ROOTS = ['input', 'event', 'config', 'meta', 'run'] as const
/** Additional root names available to the steps of a `for_each`. */
export const ITEM_ROOTS = ['item', 'index'] as const

/** The scope at a position in a workflow. */
export interface Scope {
  readonly roots: readonly string[]
  readonly rule: StepRule
  /** Whether an earlier step has this id. */
  readonly knows: (id: string) => boolean
}

/** Returns the id of a step: its explicit id, otherwise its index as text. */
export const idOf = (step: Pick<Step, 'id'>, index: number): string => step.id ?? String(index)

/**
 * Returns the scope of the step at this index in a list of steps.
 * @param outer the scope of the step that contains the list.
 * @param system ids of the system steps before the list.
 */
export function scopeAt(
  steps: readonly Pick<Step, 'id'>[],
  index: number,
  roots: readonly string[],
  outer?: Scope,
  system: readonly string[] = [],
): Scope {
  // Computed on first use, because most scopes are never queried for a step.
  let listed: string[] | undefined
  const idsOf = () => (listed ??= steps.map(idOf))
  const knows = (name: string): boolean =>
    idsOf().slice(0, index).includes(name) || system.includes(name) || (outer?.knows(name) ?? false)
  const rule: StepRule = (step) => {
    const { name } = step
    const ids = idsOf()
    if (system.includes(name)) return undefined
    const own = ids.indexOf(name)
    const at =
      own >= 0
        ? own
        : !outer && /^\d{1,3}$/.test(name) && Number(name) < ids.length
          ? Number(name)
          : -1
    if (at >= 0 && at < index) return undefined
    if (outer && outer.rule(step) === undefined) return undefined
    if (at >= 0)
      return at === index
        ? `the step ${name} cannot read its own output`
        : `the step ${name} comes later; only steps before this one have an output`
    if (outer) return outer.rule(step)
    const quoted = ids.find(
      (id) => id.startsWith(name) && /^[^A-Za-z0-9_]/.test(id.slice(name.length)),
    )
    return (
      `there is no step ${name}` +
      (quoted === undefined
        ? ''
        : `; an id that is not an identifier is read as steps[${JSON.stringify(quoted)}]`)
    )
  }
  return { roots, rule, knows }
}
