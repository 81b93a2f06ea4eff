/**
 * Finds the differences between two JSON values, and between the steps of two runs. This module
 * needs no browser.
 */
import type { RunStep } from '../../../../protocol/runs/schema.ts'

/** A difference between the values `a` and `b`. A side is undefined if it lacks the member. */
export interface Difference {
  /** Names and indices, separated by dots; '' for the whole value. */
  readonly path: string
  readonly a: unknown
  readonly b: unknown
}

/** Maximum number of differences that are listed. */
const MAX_DIFFERENCES = 500
/** Maximum depth to which members are compared one by one. */
const MAX_DEPTH = 50

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
const isAlike = (a: unknown, b: unknown): boolean =>
  isObject(a) && isObject(b) && Array.isArray(a) === Array.isArray(b)

/**
 * Returns the differences between two values, with the members of `a` before those that only `b`
 * has.
 */
export function differences(a: unknown, b: unknown): readonly Difference[] {
  const found: Difference[] = []
  const visit = (path: string, left: unknown, right: unknown, depth: number): void => {
    if (found.length >= MAX_DIFFERENCES || Object.is(left, right)) return
    if (!isAlike(left, right) || depth >= MAX_DEPTH) {
      if (depth < MAX_DEPTH || JSON.stringify(left) !== JSON.stringify(right))
        found.push({ path, a: left, b: right })
      return
    }
    const one = left as Readonly<Record<string, unknown>>
    const other = right as Readonly<Record<string, unknown>>
    for (const name of new Set([...Object.keys(one), ...Object.keys(other)]))
      visit(path === '' ? name : `${path}.${name}`, own(one, name), own(other, name), depth + 1)
  }
  visit('', a, b, 0)
  return found
}
const own = (value: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(value, name) ? value[name] : undefined

/** A step of one run, and the step with the same key in the other run. */
export interface StepPair {
  readonly key: string
  readonly a: RunStep | undefined
  readonly b: RunStep | undefined
  /** Whether the steps differ in status or attempt, or only one run has the step. */
  readonly differs: boolean
}

/** Pairs the steps of two runs by key, in the order of `a`. Steps that only `b` has are last. */
export function pairSteps(a: readonly RunStep[], b: readonly RunStep[]): readonly StepPair[] {
  const others = new Map(b.map((step) => [step.step_key, step]))
  const keys = new Set([...a, ...b].map(({ step_key }) => step_key))
  const ones = new Map(a.map((step) => [step.step_key, step]))
  return [...keys].map((key) => {
    const [one, other] = [ones.get(key), others.get(key)]
    return {
      key,
      a: one,
      b: other,
      differs: one?.status !== other?.status || one?.attempt !== other?.attempt,
    }
  })
}

/** Returns the milliseconds from the start to the end of a step; undefined without both times. */
export function timeOf(step: RunStep | undefined): number | undefined {
  const { started_at, completed_at } = step ?? {}
  if (started_at === undefined || completed_at === undefined) return undefined
  return Date.parse(completed_at) - Date.parse(started_at)
}
