/**
 * Validation of a workflow beyond what the JSON Schema can express: ids are unique, expressions
 * compile in their scope, steps read only earlier steps, and durations and times are in range.
 * Faults contain the exact path. `kinds.ts` checks the config of each kind of step.
 */
import type { FieldError } from '../../errors.ts'
import type { Spec } from '../../workflows/spec.ts'
import type { Step } from '../../workflows/steps.ts'
import { ITEM_ROOTS, idOf, NAME_ROOTS, ROOTS, type Scope, scopeAt } from '../expressions/scope.ts'
import { checkExpression, checkTemplate } from '../expressions/template.ts'
import { checkAgentless, checkSessionPolicy } from './agents.ts'
import { checkDuration, checkSize } from './bounds.ts'
import { checkDeclared } from './declared.ts'
import { checkEnvironments, type LoopFacts } from './environments.ts'
import { checkConfig } from './kinds.ts'
import { below } from './path.ts'

/** Maximum number of reported faults of a workflow. */
const MAX_FAULTS = 50
/** Prefix of the ids of system steps. Ids of authored steps must not begin with this text. */
const RESERVED = 'prepare_repository'

/**
 * Returns the faults of a list of steps.
 * @param path path of the list in the request.
 * @param outer the scope of the step that contains the list.
 * @param system ids of the system steps before the list.
 */
function checkSteps(
  steps: readonly Step[],
  path: string,
  roots: readonly string[],
  outer?: Scope,
  system: readonly string[] = [],
): FieldError[] {
  const faults: FieldError[] = []
  const firsts = new Map<string, number>()
  // Each start of a run checks its steps, and `flatMap` and spreads are slow for short lists.
  for (let index = 0; index < steps.length; index++) {
    const step = steps[index] as Step
    const at = below(path, index)
    const id = idOf(step, index)
    const first = firsts.get(id) ?? index
    if (first === index) firsts.set(id, index)
    const scope = scopeAt(steps, index, roots, outer, system)
    const fault = (message: string) => faults.push({ field: below(at, 'id'), message, actual: id })
    if (first < index) fault(`the id ${id} is already that of step ${first}`)
    if (step.id?.startsWith(RESERVED)) fault(`ids that begin with ${RESERVED} are reserved`)
    if (first === index && step.id !== undefined && outer?.knows(id))
      fault(`the id ${id} is already that of a step before this list`)
    const { retry, timeout } = step
    if (step.if !== undefined)
      faults.push(...checkExpression(step.if, scope.roots, below(at, 'if'), scope.rule))
    if (retry) faults.push(...checkDuration(retry.delay, below(below(at, 'retry'), 'delay')))
    if (timeout)
      faults.push(...checkDuration(timeout.duration, below(below(at, 'timeout'), 'duration')))
    const config = below(at, 'config')
    faults.push(...checkConfig(step, config, scope), ...checkNested(step, config, scope))
  }
  return faults
}

function checkNested(step: Step, path: string, scope: Scope): FieldError[] {
  if (step.kind === 'for_each')
    return checkList(step.config, path, [...scope.roots, ...ITEM_ROOTS], scope)
  return step.kind === 'parallel'
    ? step.config.branches.flatMap((branch, index) =>
        checkList(branch, below(below(path, 'branches'), index), scope.roots, scope),
      )
    : []
}
const checkList = (
  { steps, output }: { readonly steps: readonly Step[]; readonly output?: object },
  path: string,
  roots: readonly string[],
  outer: Scope,
): FieldError[] => [
  ...checkSteps(steps, below(path, 'steps'), roots, outer),
  ...checkTemplate(
    output,
    roots,
    below(path, 'output'),
    scopeAt(steps, steps.length, roots, outer).rule,
  ),
]

function checkLimits(limits: NonNullable<Spec['limits']>, path: string): FieldError[] {
  const both = (
    a: 'budget_usd' | 'daily_budget_usd',
    b: 'credit_budget' | 'daily_credit_budget',
  ) =>
    limits[a] !== undefined && limits[b] !== undefined
      ? [{ field: below(path, b), message: `give ${a} or ${b}, not both` }]
      : []
  const finer = (['budget_usd', 'daily_budget_usd'] as const).filter(
    (name) => Math.abs((limits[name] ?? 0) * 1e5 - Math.round((limits[name] ?? 0) * 1e5)) > 1e-6,
  )
  return [
    ...checkDuration(limits.wall_clock_timeout, below(path, 'wall_clock_timeout')),
    ...both('budget_usd', 'credit_budget'),
    ...both('daily_budget_usd', 'daily_credit_budget'),
    ...finer.map((name) => ({
      field: below(path, name),
      message: 'must be a multiple of 0.00001',
      actual: limits[name],
    })),
  ]
}

/**
 * Checks a workflow that satisfies the schema.
 * @param path path of the spec in the request, such as `spec`.
 * @param input name of the field that declares the inputs.
 * @param loop facts about the loop, for the spec of a loop. The agent of the loop is the default
 *   for its steps.
 * @returns the faults, at most 50. The list is empty when the spec is valid.
 */
export function checkSpec(
  spec: Spec,
  path: string,
  input = 'input',
  loop?: LoopFacts,
): FieldError[] {
  const size = checkSize(spec, path)
  if (size.length > 0) return size
  const { steps, cleanup, output, limits, defaults, run_name } = spec
  const session = defaults?.agent_session
  const prepares = loop?.prepares
  const after = () => scopeAt(steps, steps.length, ROOTS, undefined, prepares)
  const faults = checkSteps(steps, below(path, 'steps'), ROOTS, undefined, prepares)
  if (cleanup) faults.push(...checkSteps(cleanup, below(path, 'cleanup'), ROOTS, after()))
  if (spec.input) faults.push(...checkDeclared(spec.input, below(path, input)))
  if (spec.config) faults.push(...checkDeclared(spec.config, below(path, 'config')))
  if (output) faults.push(...checkTemplate(output, ROOTS, below(path, 'output'), after().rule))
  if (limits) faults.push(...checkLimits(limits, below(path, 'limits')))
  if (!loop?.agent_id) faults.push(...checkAgentless(steps, below(path, 'steps')))
  faults.push(...checkEnvironments(spec, path, loop))
  if (session) {
    const at = below(below(path, 'defaults'), 'agent_session')
    faults.push(...checkSessionPolicy(session, at, after()))
  }
  if (run_name !== undefined)
    faults.push(...checkTemplate(run_name, NAME_ROOTS, below(path, 'run_name')))
  return faults.slice(0, MAX_FAULTS)
}
