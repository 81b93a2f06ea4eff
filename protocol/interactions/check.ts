/**
 * Validation of questions, responses, policies and consumers beyond what a schema can express.
 * Every fault has the exact path of the field.
 */
import { type FieldError, type Refusal, refuse } from '../errors.ts'
import { maskUrl, queryFault } from '../masked-url.ts'
import { urlFault } from '../rules/url-fault.ts'
import { below } from '../rules/workflow-check/path.ts'
import type { Consumer, InteractionKind, Policy, Question } from './schema.ts'

/** Whether a list of principal ids and `role:<id or name>` entries includes a principal. */
export const isNamed = (ids: readonly string[], id: string, roles: readonly string[]): boolean =>
  ids.includes(id) || ids.some((named) => roles.includes(roleOf(named) ?? ''))
/** Refuses an answer by a principal that is no target. `roles`: the roles of the principal. */
export const refuseAnswer = (
  targets: readonly string[],
  id: string,
  roles: readonly string[],
): Refusal | undefined =>
  isNamed(targets, id, roles)
    ? undefined
    : refuse('forbidden', undefined, 'Only targets of the interaction can answer it.')

/** The kinds of interactions that may use each mode of a question. */
const modes: Readonly<Record<Question['mode'], readonly InteractionKind[]>> = {
  confirm: ['request_approval', 'assign_work'],
  select: ['request_information', 'request_approval', 'request_review', 'assign_work'],
  multi_select: ['request_information', 'assign_work'],
  input: ['request_information', 'request_review', 'assign_work'],
}
/** The modes in which a question may have each field, by field. */
const belongs = {
  options: ['select', 'multi_select'],
  default_value: ['select'],
  default_values: ['multi_select'],
  default_text: ['input'],
  default_confirmed: ['confirm'],
  placeholder: ['input'],
  multiline: ['input'],
} as const

/**
 * Returns the faults of a question.
 * @param path path of the question in the request, such as `spec`.
 * @param open returns whether a text is a template, whose value is known only when the interaction
 *   is opened. Templates are not compared with other values.
 */
export function checkQuestion(
  question: Question,
  kind: InteractionKind,
  path: string,
  open: (text: string) => boolean = () => false,
): FieldError[] {
  const { mode, options = [], default_value, default_values = [] } = question
  const allowed = Object.entries(modes)
    .filter(([, kinds]) => kinds.includes(kind))
    .map(([name]) => name)
  if (!allowed.includes(mode))
    return [
      {
        field: below(path, 'mode'),
        message: `the mode ${mode} is not allowed with the kind ${kind}`,
        expected: allowed,
        actual: mode,
      },
    ]
  const faults: FieldError[] = Object.entries(belongs)
    .filter(
      ([field, fits]) =>
        question[field as keyof Question] !== undefined &&
        !(fits as readonly string[]).includes(mode),
    )
    .map(([field]) => ({
      field: below(path, field),
      message: `is not allowed in the mode ${mode}`,
    }))
  const chooses = mode === 'select' || mode === 'multi_select'
  if (chooses && options.length === 0)
    faults.push({ field: below(path, 'options'), message: `is required in the mode ${mode}` })
  const values = options.map(({ value }) => value)
  values.forEach((value, index) => {
    if (!open(value) && values.indexOf(value) < index)
      faults.push({
        field: below(below(below(path, 'options'), index), 'value'),
        message: 'is the value of an earlier option',
        actual: value,
      })
  })
  const known = (value: string): boolean =>
    open(value) || values.some((one) => one === value || open(one))
  if (mode === 'select' && default_value !== undefined && !known(default_value))
    faults.push({
      field: below(path, 'default_value'),
      message: 'is not the value of an option',
      expected: values,
      actual: default_value,
    })
  if (mode === 'multi_select')
    default_values.forEach((value, index) => {
      if (!known(value))
        faults.push({
          field: below(below(path, 'default_values'), index),
          message: 'is not the value of an option',
          expected: values,
          actual: value,
        })
    })
  return faults
}

/** Returns the faults of the value of a response. Without a question, any JSON value is valid. */
export function checkValue(question: Question | undefined, value: unknown): FieldError[] {
  const wrong = (message: string, expected: unknown): FieldError[] => [
    { field: 'value', message, expected, actual: value },
  ]
  if (!question) return []
  const values = (question.options ?? []).map((option) => option.value)
  switch (question.mode) {
    case 'confirm':
      return typeof value === 'boolean' ? [] : wrong('must be true or false', 'boolean')
    case 'input':
      return typeof value === 'string' ? [] : wrong('must be a text', 'string')
    case 'select':
      return typeof value === 'string' && values.includes(value)
        ? []
        : wrong('must be the value of one option', values)
    case 'multi_select': {
      if (!Array.isArray(value)) return wrong('must be a list of values of options', values)
      const odd = value.findIndex(
        (one, index) => !values.includes(one as string) || value.indexOf(one) < index,
      )
      return odd < 0
        ? []
        : [
            {
              field: `value[${odd}]`,
              message:
                value.indexOf(value[odd]) < odd
                  ? 'is given twice'
                  : 'is not the value of an option',
              expected: values,
              actual: value[odd],
            },
          ]
    }
  }
}

const ROLE = 'role:'
/** Returns the role that a target refers to, or undefined when the target is a principal. */
export const roleOf = (target: string): string | undefined =>
  target.startsWith(ROLE) ? target.slice(ROLE.length) : undefined

/**
 * Returns the faults of a policy for these targets.
 * @param path path of the policy in the request.
 * @param field path of the targets in the request.
 * @param counted whether the number of targets is already known.
 */
export function checkPolicy(
  policy: Policy,
  targets: readonly string[],
  path: string,
  field = 'target_user_ids',
  counted = true,
): FieldError[] {
  const { type, threshold } = policy
  const people = new Set(targets)
  const roles = targets.findIndex((target) => roleOf(target) !== undefined)
  const faults: FieldError[] = []
  if (type === 'quorum' && threshold === undefined)
    faults.push({ field: below(path, 'threshold'), message: 'a quorum requires a threshold' })
  if (type !== 'quorum' && threshold !== undefined)
    faults.push({ field: below(path, 'threshold'), message: 'is allowed only for a quorum' })
  if (
    type === 'quorum' &&
    threshold !== undefined &&
    counted &&
    roles < 0 &&
    threshold > people.size
  )
    faults.push({
      field: below(path, 'threshold'),
      message: `there are only ${people.size} targets`,
      expected: { maximum: people.size },
      actual: threshold,
    })
  const reviewers = policy.review?.reviewer_user_ids ?? []
  const needed = type === 'all_of' ? people.size : (threshold ?? 1)
  if (
    counted &&
    roles < 0 &&
    reviewers.length > 0 &&
    needed >= people.size &&
    reviewers.every((id) => people.has(id))
  ) {
    faults.push({
      field: below(below(path, 'review'), 'reviewer_user_ids'),
      message:
        'must contain a reviewer who is not a target: every target must answer, and reviewers ' +
        'cannot review their own answers',
      actual: reviewers,
    })
  }
  if (type === 'all_of' && roles >= 0)
    faults.push({
      field: `${field}[${roles}]`,
      message: 'a role has no fixed number of members; use any_of or quorum',
      actual: targets[roles],
    })
  return faults
}

/** Returns the faults of a consumer that a client sent. */
export function checkConsumer(consumer: Consumer): FieldError[] {
  const kinds = ['run', 'agent_tool', 'http_subscriber'] as const
  const extra = kinds.filter((kind) => consumer[kind] !== undefined && kind !== consumer.kind)
  const faults: FieldError[] = extra.map((kind) => ({
    field: `consumer.${kind}`,
    message: `is not allowed with the kind ${consumer.kind}`,
  }))
  if (
    (consumer.kind === 'agent_tool' || consumer.kind === 'http_subscriber') &&
    consumer[consumer.kind] === undefined
  )
    faults.push({ field: `consumer.${consumer.kind}`, message: 'is required' })
  const url = consumer.http_subscriber?.callback_url
  const wrong = url === undefined ? undefined : callbackFault(url)
  if (url !== undefined && wrong !== undefined)
    faults.push({
      field: 'consumer.http_subscriber.callback_url',
      message: wrong,
      actual: maskUrl(url),
    })
  return faults
}
function callbackFault(url: string): string | undefined {
  const rule = 'must be an absolute http or https address'
  return /^https?:\/\/\S+$/i.test(url)
    ? (urlFault(url, ['https:', 'http:'], rule) ?? queryFault(url))
    : rule
}
