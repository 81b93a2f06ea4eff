/**
 * Validation of step configs beyond what the JSON Schema can express, with one function per kind of
 * step. Faults have the exact path of the field.
 */

import { parseDuration } from '../../common.ts'
import type { FieldError } from '../../errors.ts'
import { checkEventType } from '../../events/types.ts'
import { isId } from '../../ids.ts'
import { checkPolicy, checkQuestion } from '../../interactions/check.ts'
import type { Step } from '../../workflows/steps.ts'
import { EVENT_ROOTS, MAPPING_ROOTS, type Scope } from '../expressions/scope.ts'
import { checkExpression, checkTemplate, hasTemplate } from '../expressions/template.ts'
import { checkAgentConfig, checkJudge } from './agents.ts'
import { checkDuration, checkTime } from './bounds.ts'
import { checkLocation } from './environments.ts'
import { below, lineBreakFaults } from './path.ts'

type Of<K extends Step['kind']> = Extract<Step, { kind: K }>['config']
type Check<K extends Step['kind']> = (config: Of<K>, path: string, scope: Scope) => FieldError[]

const templates = (
  values: Readonly<Record<string, unknown>>,
  path: string,
  { roots, rule }: Scope,
): FieldError[] =>
  Object.entries(values).flatMap(([name, value]) =>
    checkTemplate(value, roots, below(path, name), rule),
  )

const checkMatch = (match: object, path: string): FieldError[] =>
  Object.keys(match)
    .filter((key) => key.split('.').includes(''))
    .map((key) => ({
      field: below(path, key),
      message: 'is not a dotted path such as event.order.id',
    }))

/** The name is not rendered, because the caller's permission to execute the action is checked. */
const checkActionName = (name: string, field: string): FieldError[] =>
  hasTemplate(name)
    ? [{ field, message: 'must be the name of an action, without templates', actual: name }]
    : []

const waits: Check<'wait_for_event'> = (
  { event_type, match, condition, payload_mapping, source_id },
  path,
  scope,
) => [
  ...checkEventType(event_type, below(path, 'event_type'), 'wait'),
  ...(match ? checkMatch(match, below(path, 'match')) : []),
  ...templates({ match, source_id }, path, scope),
  ...(condition === undefined
    ? []
    : checkExpression(condition, EVENT_ROOTS, below(path, 'condition'))),
  ...checkMapping(payload_mapping ?? {}, below(path, 'payload_mapping')),
]
function checkMapping(mapping: Readonly<Record<string, string>>, path: string): FieldError[] {
  const invalid = lineBreakFaults(mapping, path)
  if (invalid.length > 0) return invalid
  return Object.entries(mapping).flatMap(([name, source]) =>
    checkExpression(source, MAPPING_ROOTS, below(path, name)),
  )
}

/**
 * Checks the question of an interaction step, except for parts that templates determine when the
 * step runs.
 */
const asks: Check<'interaction'> = (config, path, scope) => {
  const {
    protocol,
    targets,
    resolution_policy,
    spec,
    expires_in,
    expires_at,
    prompt,
    title,
    description,
    context,
  } = config
  const policy =
    typeof resolution_policy === 'object'
      ? resolution_policy
      : { type: resolution_policy ?? ('any_of' as const) }
  return [
    ...checkPolicy(
      policy,
      targets,
      below(path, 'resolution_policy'),
      below(path, 'targets'),
      !targets.some(hasTemplate),
    ),
    ...(policy.review && !policy.review.reviewer_user_ids?.length
      ? [
          {
            field: below(below(below(path, 'resolution_policy'), 'review'), 'reviewer_user_ids'),
            message: 'must name reviewers, because a step has no creator who can review',
          },
        ]
      : []),
    ...(spec ? checkQuestion(spec, protocol, below(path, 'spec'), hasTemplate) : []),
    ...(expires_in !== undefined && expires_at !== undefined
      ? [
          {
            field: below(path, 'expires_at'),
            message: 'give expires_in or expires_at, not both',
          },
        ]
      : []),
    ...checkDuration(expires_in, below(path, 'expires_in')),
    ...(expires_in !== undefined && parseDuration(expires_in) === 0
      ? [
          {
            field: below(path, 'expires_in'),
            message: 'must be longer than 0',
            actual: expires_in,
          },
        ]
      : []),
    ...checkTime(expires_at, below(path, 'expires_at')),
    ...templates(
      { targets, resolution_policy, prompt, title, description, spec, context },
      path,
      scope,
    ),
  ]
}

const checks: Check<'check'> = ({ checks: assertions, on_fail, gate }, path, scope) => [
  ...assertions.flatMap((assertion, index) => {
    const at = below(below(path, 'checks'), index)
    const first = assertions.findIndex(({ name }) => name === assertion.name)
    return [
      ...(first < index
        ? [
            {
              field: below(at, 'name'),
              message: `is already the name of check ${first}`,
              actual: assertion.name,
            },
          ]
        : []),
      ...(assertion.kind === 'agent'
        ? checkJudge(assertion, at, scope)
        : assertion.expr === undefined
          ? [{ field: below(at, 'expr'), message: 'is required for a check by expression' }]
          : checkExpression(assertion.expr, scope.roots, below(at, 'expr'), scope.rule)),
      ...(assertion.evidence ?? []).flatMap((id, i) =>
        scope.knows(id)
          ? []
          : [
              {
                field: below(below(at, 'evidence'), i),
                message: `there is no earlier step ${id}`,
                actual: id,
              },
            ],
      ),
    ]
  }),
  ...(on_fail === 'gate' && !gate
    ? [{ field: below(path, 'gate'), message: 'is required when on_fail is gate' }]
    : []),
  ...(on_fail !== 'gate' && gate
    ? [{ field: below(path, 'gate'), message: 'is allowed only with on_fail: gate' }]
    : []),
  ...(gate
    ? templates({ targets: gate.targets, prompt: gate.prompt }, below(path, 'gate'), scope)
    : []),
]

const starts: Check<'loop'> = ({ loop_id, workflow_id, event, config, wait }, path, scope) => [
  ...((loop_id === undefined) === (workflow_id === undefined)
    ? [{ field: path, message: 'give exactly one of workflow_id and loop_id' }]
    : []),
  ...(loop_id === undefined || isId(loop_id, 'loop')
    ? []
    : [{ field: below(path, 'loop_id'), message: 'is not the id of a loop', actual: loop_id }]),
  ...(loop_id !== undefined && wait
    ? [
        {
          field: below(path, 'wait'),
          message: 'is not allowed with loop_id, because runs of a loop can be queued',
        },
      ]
    : []),
  ...templates({ event, config }, path, scope),
]

const sleeps: Check<'sleep'> = ({ duration, until }, path) => {
  if ((duration === undefined) === (until === undefined))
    return [{ field: path, message: 'give exactly one of duration and until' }]
  return until === undefined
    ? checkDuration(duration, below(path, 'duration'))
    : checkTime(until, below(path, 'until'))
}

const items: Check<'for_each'> = ({ items: list }, path, { roots, rule }) =>
  typeof list === 'string'
    ? checkExpression(list, roots, below(path, 'items'), rule)
    : checkTemplate(list, roots, below(path, 'items'), rule)

const arms: { readonly [K in Step['kind']]: Check<K> } = {
  action: (config, path, { roots, rule }) => [
    ...checkActionName(config.action_name, below(path, 'action_name')),
    ...checkLocation(config, path),
    ...checkTemplate(config.parameters, roots, below(path, 'parameters'), rule),
  ],
  sleep: sleeps,
  wait_for_event: waits,
  interaction: asks,
  check: checks,
  loop: starts,
  agent: checkAgentConfig,
  parallel: ({ branches }, path) =>
    branches.flatMap(({ id }, index) => {
      const first = branches.findIndex((branch) => branch.id === id)
      return first < index
        ? [
            {
              field: below(below(below(path, 'branches'), index), 'id'),
              message: `the id ${id} is already that of branch ${first}`,
              actual: id,
            },
          ]
        : []
    }),
  for_each: items,
}

/**
 * Returns the faults of the config of a step.
 * @param path path of the config.
 */
export const checkConfig = (step: Step, path: string, scope: Scope): FieldError[] =>
  (arms[step.kind] as Check<Step['kind']>)(step.config as never, path, scope)
