/**
 * What a schema cannot say about a workflow: that ids are unique, expressions compile against what is visible where they
 * stand, steps read only steps before them, durations and times are within reach. Every fault carries its exact path.
 */
import { parseDuration, parseTimestamp } from '../common.ts'
import type { FieldError } from '../errors.ts'
import type { Spec, Step } from '../spec.ts'
import { checkPolicy, checkQuestion } from '../interaction/check.ts'
import { checkDeclared } from './declared.ts'
import { below } from './path.ts'
import { checkExpression, checkTemplate, hasTemplate, interpolationsIn, type StepRule } from './template.ts'


/** Names that every expression of a workflow may read; `event` is another name of `input`. */
const ROOTS = ['input', 'event', 'config', 'meta', 'steps'] as const
/** Names that the mapping of an awaited event may read. */
const EVENT_ROOTS = ['event', 'meta'] as const
/** Same alphabet as the names of signals that can be sent. */
const SIGNAL = /^signal\.[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
/** Ten years, in milliseconds. */
const LONGEST = 10 * 366 * 86_400_000
const MAX_DEPTH = 48
const MAX_VALUES = 20_000
/** Each is compiled before the request is answered, and nothing else can be answered meanwhile. */
const MAX_INTERPOLATIONS = 4000
const MAX_FAULTS = 50

/** The id of a step: its own, else its index as text. */
const idOf = (step: Step, index: number): string => step.id ?? String(index)

/** Counts the values of a document up to one more than allowed; too deep a nesting counts as too many. */
function valuesIn(value: unknown, depth: number, before: number): number {
  let values = before + 1
  if (typeof value !== 'object' || value === null) return values
  if (depth >= MAX_DEPTH) return MAX_VALUES + 1
  for (const name in value) {
    if (values > MAX_VALUES) break
    if (Object.hasOwn(value, name)) values = valuesIn((value as Readonly<Record<string, unknown>>)[name], depth + 1, values)
  }
  return values
}

/** Where a document exceeds the bounds on nesting and on the number of values, found without recursion. */
function checkSize(document: unknown, path: string): FieldError[] {
  const todo: [value: unknown, path: string, depth: number][] = [[document, path, 0]]
  let values = 0
  for (let next = todo.pop(); next; next = todo.pop()) {
    const [value, field, depth] = next
    if (++values > MAX_VALUES) return [{ field: path, message: `has more than ${MAX_VALUES} values` }]
    if (typeof value !== 'object' || value === null) continue
    if (depth >= MAX_DEPTH) return [{ field, message: `is nested deeper than ${MAX_DEPTH} levels` }]
    if (Array.isArray(value)) value.forEach((item: unknown, i) => { todo.push([item, below(field, i), depth + 1]) })
    else for (const [name, item] of Object.entries(value)) todo.push([item, below(field, name), depth + 1])
  }
  return []
}

function checkDuration(text: string | undefined, field: string): FieldError[] {
  if (text === undefined) return []
  const length = parseDuration(text)
  if (length === undefined) return [{ field, message: 'is not a duration; write for example 90s, 15m or 1h30m', actual: text }]
  return length > LONGEST ? [{ field, message: 'is longer than ten years', actual: text }] : []
}

const checkTime = (text: string | undefined, field: string): FieldError[] =>
  text === undefined || parseTimestamp(text) !== undefined ? [] : [{ field, message: 'is not an RFC 3339 time such as 2030-01-31T12:00:00.000Z', actual: text }]

/** Which steps an expression may name: those before an index. */
function stepsBefore(steps: readonly Step[], index: number): StepRule {
  const ids = steps.map(idOf)
  return ({ name }) => {
    const own = ids.indexOf(name)
    const at = own >= 0 ? own : /^\d{1,3}$/.test(name) && Number(name) < ids.length ? Number(name) : -1
    if (at >= 0) return at < index ? undefined : at === index ? `the step ${name} cannot read its own output` : `the step ${name} comes later; only steps before this one have an output`
    const dashed = ids.find((id) => id.startsWith(`${name}-`))
    return `there is no step ${name}${dashed === undefined ? '' : `; an id with a dash is read as steps[${JSON.stringify(dashed)}]`}`
  }
}

function checkMatch(match: object, path: string): FieldError[] {
  return Object.keys(match).filter((key) => key.split('.').includes('')).map((key) => ({ field: below(path, key), message: 'is not a dotted path such as event.order.id' }))
}

function checkConfig(step: Step, path: string, rule: StepRule): FieldError[] {
  switch (step.kind) {
    case 'action':
      return checkTemplate(step.config.parameters, ROOTS, below(path, 'parameters'), rule)
    case 'sleep': {
      const { duration, until } = step.config
      if ((duration === undefined) === (until === undefined)) return [{ field: path, message: 'give exactly one of duration and until' }]
      if (until === undefined) return checkDuration(duration, below(path, 'duration'))
      return checkTime(until, below(path, 'until'))
    }
    case 'wait_for_event': {
      const { event_type, match, payload_mapping, source_id } = step.config
      return [
        ...(SIGNAL.test(event_type) ? [] : [{ field: below(path, 'event_type'), message: 'a workflow waits for signals sent to its run: give signal.<name>', expected: 'signal.<name>', actual: event_type }]),
        ...(match ? checkMatch(match, below(path, 'match')) : []),
        ...checkTemplate(match, ROOTS, below(path, 'match'), rule),
        ...checkTemplate(source_id, ROOTS, below(path, 'source_id'), rule),
        ...Object.entries(payload_mapping ?? {}).flatMap(([name, source]) => checkExpression(source, EVENT_ROOTS, below(below(path, 'payload_mapping'), name))),
      ]
    }
    case 'interaction': {
      const { targets, prompt, title, description, spec, context } = step.config
      return [...checkAsked(step.config, path), ...Object.entries({ targets, prompt, title, description, spec, context }).flatMap(([name, value]) => checkTemplate(value, ROOTS, below(path, name), rule))]
    }
  }
}

/** What an interaction step asks, as far as it can be known before the run. */
function checkAsked({ protocol, targets, resolution_policy, spec, expires_in, expires_at }: Extract<Step, { kind: 'interaction' }>['config'], path: string): FieldError[] {
  const policy = typeof resolution_policy === 'object' ? resolution_policy : { type: resolution_policy ?? 'any_of' as const }
  return [
    ...checkPolicy(policy, targets, below(path, 'resolution_policy'), below(path, 'targets'), !targets.some(hasTemplate)),
    ...(policy.review && !policy.review.reviewer_user_ids?.length ? [{ field: below(below(below(path, 'resolution_policy'), 'review'), 'reviewer_user_ids'), message: 'name reviewers: a step has no creator who could review' }] : []),
    ...(spec ? checkQuestion(spec, protocol, below(path, 'spec'), hasTemplate) : []),
    ...(expires_in !== undefined && expires_at !== undefined ? [{ field: below(path, 'expires_at'), message: 'give expires_in or expires_at, not both' }] : []),
    ...checkDuration(expires_in, below(path, 'expires_in')),
    ...(expires_in !== undefined && parseDuration(expires_in) === 0 ? [{ field: below(path, 'expires_in'), message: 'must be longer than nothing', actual: expires_in }] : []),
    ...checkTime(expires_at, below(path, 'expires_at')),
  ]
}

function checkStep(step: Step, index: number, steps: readonly Step[], firsts: ReadonlyMap<string, number>, path: string): FieldError[] {
  const id = idOf(step, index)
  const first = firsts.get(id) ?? index
  const rule = stepsBefore(steps, index)
  return [
    ...(first < index ? [{ field: below(path, 'id'), message: `the id ${id} is already that of step ${first}`, actual: id }] : []),
    ...(step.if === undefined ? [] : checkExpression(step.if, ROOTS, below(path, 'if'), rule)),
    ...checkDuration(step.retry?.delay, below(below(path, 'retry'), 'delay')),
    ...checkDuration(step.timeout?.duration, below(below(path, 'timeout'), 'duration')),
    ...checkConfig(step, below(path, 'config'), rule),
  ]
}

/**
 * Check a workflow that satisfies the schema.
 * @param path of the spec in the request, such as `spec`.
 * @returns every fault, at most 50; none means that the spec can run.
 */
export function checkSpec(spec: Spec, path: string): FieldError[] {
  // Almost every document is within the bounds: their faults need paths, finding that there is none does not.
  const size = valuesIn(spec, 0, 0) > MAX_VALUES ? checkSize(spec, path) : []
  if (size.length > 0) return size
  if (interpolationsIn(spec) > MAX_INTERPOLATIONS) return [{ field: path, message: `has more than ${MAX_INTERPOLATIONS} interpolations` }]
  const { steps } = spec
  const firsts = new Map(steps.map((step, index): [string, number] => [idOf(step, index), index]).reverse())
  return [
    ...steps.flatMap((step, index) => checkStep(step, index, steps, firsts, below(below(path, 'steps'), index))),
    ...checkDeclared(spec.input, below(path, 'input')),
    ...checkDeclared(spec.config, below(path, 'config')),
    ...checkTemplate(spec.output, ROOTS, below(path, 'output'), stepsBefore(steps, steps.length)),
    ...checkDuration(spec.limits?.wall_clock_timeout, below(below(path, 'limits'), 'wall_clock_timeout')),
  ].slice(0, MAX_FAULTS)
}
