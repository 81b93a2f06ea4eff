/**
 * Arranges the steps of a run as rows. Branches and items appear below their step and can be
 * collapsed. This module needs no browser.
 */
import type { StepView } from './fold.ts'

/** A row: a step, or a branch or item with its steps below it. */
export interface Row {
  /** The key of the step or branch. The key of a branch is the common prefix of its steps' keys. */
  readonly id: string
  readonly label: string
  /** The step; absent for a branch or item. */
  readonly step?: StepView
  readonly depth: number
  readonly status: string
  readonly from: number | undefined
  readonly to: number | undefined
  /** The number of rows directly below; 0 for a row that cannot be expanded. */
  readonly children: number
  readonly open: boolean
}

/** A branch of a step, with its steps in order. */
interface Branch {
  readonly id: string
  readonly name: string
  readonly steps: StepView[]
}
/**
 * The location of a step that belongs to a branch. `parent` is the key of the step with branches,
 * `branch` the key of the branch, and `leaf` the rest of the key of the step.
 */
interface Place {
  readonly parent: string
  readonly branch: string
  readonly branchName: string
  readonly leaf: string
}

const branching: ReadonlySet<string> = new Set(['for_each', 'parallel'])

/**
 * Returns the location of a step that belongs to a branch; undefined for a top-level step.
 * @param top the keys of the top-level steps, if they are known.
 */
export function placeOf(
  key: string,
  steps: ReadonlyMap<string, Pick<StepView, 'kind'>>,
  top?: ReadonlySet<string>,
): Place | undefined {
  if (top?.has(key)) return undefined
  for (let at = key.indexOf('.'); at >= 0; at = key.indexOf('.', at + 1)) {
    const parent = key.slice(0, at)
    if (!branching.has(steps.get(parent)?.kind ?? '')) continue
    const found = /^(~*)([^.]+)\.([\s\S]+)$/.exec(key.slice(at + 1))
    if (!found) continue
    const [, tildes = '', branchName = '', leaf = ''] = found
    return { parent, branch: `${parent}.${tildes}${branchName}`, branchName, leaf }
  }
  return undefined
}

/** Maximum number of branches of a step that is initially expanded. */
const MAX_OPEN_BRANCHES = 12
const least = (values: readonly (number | undefined)[]): number | undefined => {
  let found: number | undefined
  for (const value of values)
    if (value !== undefined && (found === undefined || value < found)) found = value
  return found
}

/** The steps of a run, grouped by branch below the steps that have branches. */
export class StepTree {
  readonly #top: StepView[] = []
  readonly #below = new Map<string, Map<string, Branch>>()
  readonly #seen = new Set<string>()

  /** Adds new steps to the tree. Known steps stay in their branches. */
  update(steps: ReadonlyMap<string, StepView>, top?: ReadonlySet<string>): void {
    if (steps.size === this.#seen.size) return
    for (const [key, step] of steps) {
      if (this.#seen.has(key)) continue
      const place = placeOf(key, steps, top)
      this.#seen.add(key)
      if (!place) {
        this.#top.push(step)
        continue
      }
      let branches = this.#below.get(place.parent)
      if (!branches) this.#below.set(place.parent, (branches = new Map()))
      let branch = branches.get(place.branch)
      if (!branch) {
        branch = { id: place.branch, name: place.branchName, steps: [] }
        branches.set(place.branch, branch)
      }
      branch.steps.push(step)
    }
    this.#top.sort(byStart)
  }

  /** Returns the branches of a step: items by index, other branches in order of appearance. */
  branchesOf(key: string): readonly Branch[] {
    const branches = [...(this.#below.get(key)?.values() ?? [])]
    return branches.every(({ name }) => /^\d+$/.test(name))
      ? branches.sort((a, b) => Number(a.name) - Number(b.name))
      : branches
  }
  /** The top-level steps, in the order in which they started. */
  get top(): readonly StepView[] {
    return this.#top
  }

  /**
   * Returns the visible rows.
   * @param open the rows that were expanded (true) or collapsed (false). By default, a step is
   * expanded if it has few branches, and a branch if it is not an item of a `for_each` step.
   * @param itemName returns the label of an item of a `for_each` step, by its index.
   */
  rows(open: ReadonlyMap<string, boolean>, itemName: (index: string) => string): Row[] {
    const rows: Row[] = []
    for (const step of this.#top) {
      const count = this.#below.get(step.key)?.size ?? 0
      const isOpen = open.get(step.key) ?? count <= MAX_OPEN_BRANCHES
      rows.push(rowOf(step, 0, step.name ?? step.key, count, isOpen))
      // There can be thousands of branches, so they are sorted only when they are shown.
      if (!isOpen) continue
      for (const branch of this.branchesOf(step.key))
        this.#branch(rows, step, branch, open, itemName)
    }
    return rows
  }

  #branch(
    rows: Row[],
    parent: StepView,
    { id, name, steps }: Branch,
    open: ReadonlyMap<string, boolean>,
    itemName: (index: string) => string,
  ): void {
    const label = parent.kind === 'for_each' ? itemName(name) : name
    const isOpen = open.get(id) ?? parent.kind === 'parallel'
    const unfinished = steps.some(({ to }) => to === undefined)
    rows.push({
      id,
      label,
      depth: 1,
      status: statusOf(steps),
      from: least(steps.map(({ from }) => from)),
      to: unfinished ? undefined : Math.max(...steps.map(({ to }) => to ?? 0)),
      children: steps.length,
      open: isOpen,
    })
    if (!isOpen) return
    for (const step of [...steps].sort(byStart))
      rows.push(rowOf(step, 2, step.name ?? step.key.slice(id.length + 1), 0, false))
  }
}

/**
 * Returns the rows of steps without branches whose status is wanted. A step of a branch is labelled
 * with its key, because the row of its branch is not returned.
 */
export const leavesOf = (rows: readonly Row[], wanted: ReadonlySet<string>): Row[] =>
  rows
    .filter(({ step, status, children }) => step && children === 0 && wanted.has(status))
    .map((row) => (row.depth === 0 ? row : { ...row, depth: 0, label: row.id }))

const byStart = (a: StepView, b: StepView): number =>
  (a.from ?? Number.POSITIVE_INFINITY) - (b.from ?? Number.POSITIVE_INFINITY) || a.order - b.order

const rowOf = (
  step: StepView,
  depth: number,
  label: string,
  children: number,
  open: boolean,
): Row => ({
  id: step.key,
  label,
  step,
  depth,
  status: step.status,
  from: step.from,
  to: step.to,
  children,
  open,
})

/** Returns the status of a branch, which is the most important of the statuses of its steps. */
export function statusOf(steps: readonly Pick<StepView, 'status'>[]): string {
  for (const status of ['failed', 'running', 'suspended', 'cancelled', 'pending'])
    if (steps.some((step) => step.status === status)) return status
  return steps.length > 0 && steps.every(({ status }) => status === 'skipped')
    ? 'skipped'
    : 'completed'
}
