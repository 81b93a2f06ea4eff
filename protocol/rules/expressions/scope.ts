/** What expressions may read where they stand: the roots, and the steps that come before. */
import type { Step } from '../../workflows/steps.ts'
import type { StepRule } from './template.ts'

/** Names that every expression of a workflow may read; `event` is another name of `input`. */
export const ROOTS = ['input', 'event', 'config', 'meta', 'run', 'steps'] as const
/** Names that the condition of an awaited event may read. */
export const EVENT_ROOTS = ['event', 'meta'] as const
/** Names that the mapping of an awaited event may read. */
export const MAPPING_ROOTS = ['event', 'meta', 'run'] as const
/** Names that the name of a run may read: it is made when the run is. */
export const NAME_ROOTS = ['input', 'event', 'config', 'meta', 'run'] as const
/** Names that the steps of a `for_each` may read besides. */
export const ITEM_ROOTS = ['item', 'index'] as const

/** A place in a workflow. */
export interface Scope {
  readonly roots: readonly string[]
  readonly rule: StepRule
  /** Whether a step with this id comes before. */
  readonly knows: (id: string) => boolean
}

/** The id of a step: its own, else its index as text. */
export const idOf = (step: Pick<Step, 'id'>, index: number): string => step.id ?? String(index)

/** The scope of the step at an index of a list; `outer`: that of the step which holds the list. */
export function scopeAt(
  steps: readonly Pick<Step, 'id'>[],
  index: number,
  roots: readonly string[],
  outer?: Scope,
): Scope {
  const ids = steps.map(idOf)
  const knows = (name: string): boolean =>
    ids.slice(0, index).includes(name) || (outer?.knows(name) ?? false)
  const rule: StepRule = (step) => {
    const { name } = step
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
    return `there is no step ${name}${quoted === undefined ? '' : `; an id that is no identifier is read as steps[${JSON.stringify(quoted)}]`}`
  }
  return { roots, rule, knows }
}
