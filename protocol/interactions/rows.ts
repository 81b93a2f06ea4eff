/**
 * The rows for interactions: creating, listing, answering, reviewing and cancelling them, and
 * issuing answer links. The records are in `schema.ts`, and the checks in `check.ts`.
 */
import { type Static, Type } from 'typebox'
import {
  Closed,
  Id,
  JsonObject,
  orAbsent,
  pageOf,
  paging,
  parseTimestamp,
  Tags,
  Timestamp,
  valuesOf,
} from '../common.ts'
import { command, query } from '../contract.ts'
import type { FieldError } from '../errors.ts'
import { isId } from '../ids.ts'
import { checkConsumer, checkPolicy, checkQuestion } from './check.ts'
import {
  Consumer,
  ConsumerKind,
  Delivery,
  Interaction,
  InteractionKind,
  interactionStatuses,
  Policy,
  type Policy as PolicyRecord,
  Question,
  Reference,
  Target,
  Targets,
} from './schema.ts'

const CreateInteraction = Closed({
  kind: InteractionKind,
  title: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
  message: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: 'Deprecated name of title' }),
  ),
  description: Type.Optional(orAbsent(Type.String({ maxLength: 16_384 }))),
  target_user_ids: Type.Optional(Targets),
  target: Type.Optional(
    Closed(
      {
        user_ids: Type.Optional(Targets),
        group_id: Type.Optional(Id),
        target_group_id: Type.Optional(Id),
      },
      { description: 'Deprecated form of target_user_ids; groups are refused' },
    ),
  ),
  subject: Type.Optional(orAbsent(Reference)),
  references: Type.Optional(Type.Array(Reference, { maxItems: 50 })),
  context: Type.Optional(orAbsent(JsonObject)),
  properties: Type.Optional(orAbsent(JsonObject)),
  tags: Type.Optional(Tags),
  spec: Type.Optional(Question),
  require_all: Type.Optional(Type.Boolean({ description: 'Deprecated form of the policy all_of' })),
  resolution_policy: Type.Optional(orAbsent(Type.Union([Policy, Type.Enum(['any_of', 'all_of'])]))),
  consumer: Type.Optional(orAbsent(Type.Union([Consumer, ConsumerKind]))),
  delivery: Type.Optional(orAbsent(Delivery)),
  run_id: Type.Optional(orAbsent(Id)),
  signal_name: Type.Optional(
    orAbsent(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' })),
  ),
  expires_at: Type.Optional(orAbsent(Timestamp)),
})
export type CreateInteraction = Static<typeof CreateInteraction>

/** Returns the targets of a creation request from either of its two forms, each once. */
export const targetsOf = ({ target_user_ids, target }: CreateInteraction): string[] => [
  ...new Set(target_user_ids ?? target?.user_ids ?? []),
]
/** Returns the policy of a creation request from either of its two forms. */
export const policyOf = ({
  resolution_policy,
  require_all,
}: Pick<CreateInteraction, 'resolution_policy' | 'require_all'>): PolicyRecord =>
  typeof resolution_policy === 'object'
    ? resolution_policy
    : { type: resolution_policy ?? (require_all ? 'all_of' : 'any_of') }
/**
 * Returns the run for which an interaction is created, and the signal that reports the outcome to
 * this run; undefined when there is no run.
 */
export function runOf({
  run_id,
  signal_name,
  consumer,
}: CreateInteraction): { run_id: string; signal_name: string } | undefined {
  if (run_id !== undefined && signal_name !== undefined) return { run_id, signal_name }
  return typeof consumer === 'object' ? consumer.run : undefined
}

function checkReference(reference: Static<typeof Reference>, field: string): FieldError[] {
  const needs =
    reference.kind === 'external_url' ? (['url'] as const) : (['entity_type', 'entity_id'] as const)
  return needs
    .filter((name) => reference[name] === undefined)
    .map((name) => ({ field: `${field}.${name}`, message: 'is required for this kind' }))
}
function checkRun(body: CreateInteraction): FieldError[] {
  const { run_id, signal_name, consumer } = body
  if ((run_id === undefined) !== (signal_name === undefined))
    return [
      {
        field: run_id === undefined ? 'run_id' : 'signal_name',
        message: 'give both run_id and signal_name, or neither',
      },
    ]
  const kind = typeof consumer === 'object' ? consumer.kind : consumer
  const run = runOf(body)
  if (run && !isId(run.run_id, 'run'))
    return [
      {
        field: run_id === undefined ? 'consumer.run.run_id' : 'run_id',
        message: 'is not the id of a run',
        actual: run.run_id,
      },
    ]
  if (kind === 'run' && !run)
    return [{ field: 'run_id', message: 'the consumer run requires run_id and signal_name' }]
  return run && kind !== undefined && kind !== 'run'
    ? [
        {
          field: 'consumer',
          message: 'must be run, because run_id and signal_name are given',
          expected: 'run',
          actual: kind,
        },
      ]
    : []
}
/**
 * Returns the faults that schemas cannot detect in a creation request. The gateway separately
 * checks whether the targets, the reviewers and the run exist.
 */
function checkCreate(body: CreateInteraction): FieldError[] {
  const {
    kind,
    title,
    message,
    target,
    target_user_ids,
    spec,
    require_all,
    resolution_policy,
    consumer,
    subject,
    references,
    expires_at,
    delivery,
  } = body
  const faults: FieldError[] = []
  if (title === undefined && message === undefined)
    faults.push({ field: 'title', message: 'is required' })
  for (const group of ['group_id', 'target_group_id'] as const)
    if (target?.[group] !== undefined)
      faults.push({
        field: `target.${group}`,
        message: 'groups cannot be targets; name principals or role:<name>',
      })
  if (targetsOf(body).length === 0)
    faults.push({ field: 'target_user_ids', message: 'is required' })
  if (target_user_ids && target?.user_ids)
    faults.push({ field: 'target', message: 'give only target_user_ids' })
  if (require_all !== undefined && resolution_policy !== undefined)
    faults.push({
      field: 'require_all',
      message: 'give require_all or resolution_policy, not both',
    })
  if (expires_at !== undefined && parseTimestamp(expires_at) === undefined)
    faults.push({ field: 'expires_at', message: 'must be an RFC 3339 time', actual: expires_at })
  const bare =
    typeof consumer === 'string' && (consumer === 'agent_tool' || consumer === 'http_subscriber')
  return [
    ...faults,
    ...checkRun(body),
    ...checkPolicy(policyOf(body), targetsOf(body), 'resolution_policy'),
    ...(spec ? checkQuestion(spec, kind, 'spec') : []),
    ...(bare ? [{ field: 'consumer', message: `give {kind, ${consumer}}` }] : []),
    ...(typeof consumer === 'object' ? checkConsumer(consumer) : []),
    ...(subject ? checkReference(subject, 'subject') : []),
    ...(references ?? []).flatMap((reference, index) =>
      checkReference(reference, `references[${index}]`),
    ),
    ...(delivery?.channels ?? []).flatMap((channel, index) =>
      channel.kind === 'email' || channel.email === undefined
        ? []
        : [
            {
              field: `delivery.channels[${index}].email`,
              message: 'is allowed only with the kind email',
            },
          ],
    ),
  ]
}

const Comment = Type.Optional(Type.String({ maxLength: 16_384 }))
const Respond = Closed({
  action: Type.Optional(Type.Enum(['submit'])),
  value: Type.Unknown(),
  comment: Comment,
})
const Review = Closed({ action: Type.Enum(['accept', 'request_changes']), comment: Comment })
const checkReview = ({ action, comment }: Static<typeof Review>): FieldError[] =>
  action === 'request_changes' && !comment?.trim()
    ? [{ field: 'comment', message: 'must describe the requested changes' }]
    : []
const Cancel = Closed({ reason: Type.Optional(Type.String({ maxLength: 1024 })) })
const CreateLinks = Closed({
  target_user_ids: Type.Optional(
    Type.Array(Target, {
      minItems: 1,
      maxItems: 100,
      description:
        'Targets for which links are created; by default, all targets that have not answered',
    }),
  ),
})
export const Links = Type.Object({
  items: Type.Array(
    Type.Object({
      target_user_id: Type.String(),
      url: Type.String(),
      expires_at: Type.Optional(Timestamp),
    }),
  ),
})

const P = '/projects/:project/interactions'
const tag = 'interactions'
const self = { kind: 'interaction', slot: 'id', prefix: 'interaction' } as const
/** Maximum size of a request body, in bytes. */
const LIMIT = 262_144

export const interactions = {
  'interaction.create': command(`POST ${P}`, {
    summary: 'Ask people for an approval, an answer or a review',
    tag,
    permission: 'runs.operate',
    to: { kind: 'interaction', mint: 'interaction', near: (body) => runOf(body)?.run_id },
    body: CreateInteraction,
    check: checkCreate,
    reply: Interaction,
    status: 201,
    limit: LIMIT,
    errors: ['not_found'],
  }),
  'interaction.list': query(`GET ${P}`, {
    summary: 'List interactions, newest first',
    tag,
    permission: 'project.view',
    reply: pageOf(Interaction),
    query: Closed({
      status: Type.Optional(valuesOf(Type.Enum([...interactionStatuses]))),
      kind: Type.Optional(valuesOf(InteractionKind)),
      run_id: Type.Optional(Id),
      session_id: Type.Optional(Id),
      target_user_id: Type.Optional(Target),
      inbox: Type.Optional(
        Type.Boolean({
          description:
            'Only interactions that the caller can answer as a target or through a role, or can ' +
            'review',
        }),
      ),
      ...paging,
    }),
  }),
  'interaction.get': query(`GET ${P}/:id`, {
    summary: 'One interaction with its answers',
    locateBy: 'interaction',
    tag,
    permission: 'project.view',
    reply: Interaction,
    errors: ['not_found'],
  }),
  'interaction.respond': command(`POST ${P}/:id/respond`, {
    summary: 'Answer as one of the targets; other principals cannot',
    locateBy: 'interaction',
    tag,
    permission: 'project.view',
    to: self,
    body: Respond,
    reply: Interaction,
    limit: LIMIT,
    errors: ['not_found', 'conflict'],
  }),
  'interaction.review': command(`POST ${P}/:id/review`, {
    summary: 'Accept the submitted answers, or request changes, as one of the reviewers',
    locateBy: 'interaction',
    tag,
    permission: 'project.view',
    to: self,
    body: Review,
    check: checkReview,
    reply: Interaction,
    errors: ['not_found', 'conflict'],
  }),
  // The cancellation of a completed or expired interaction is a conflict (409), like a response to
  // it. A repeated cancellation succeeds.
  'interaction.cancel': command(`POST ${P}/:id/cancel`, {
    summary: 'Cancel an open interaction',
    locateBy: 'interaction',
    tag,
    permission: 'runs.operate',
    to: self,
    body: Cancel,
    bodyOptional: true,
    reply: Interaction,
    errors: ['not_found', 'conflict'],
  }),
  'interaction.delete': command(`DELETE ${P}/:id`, {
    summary: 'Remove an ended interaction from the lists',
    locateBy: 'interaction',
    tag,
    permission: 'runs.operate',
    to: self,
    status: 204,
    errors: ['not_found'],
  }),
  'interaction.link': command(`POST ${P}/:id/links`, {
    summary:
      'Create answer links, with which targets answer once without signing in; the holder of a ' +
      'link answers as its target',
    locateBy: 'interaction',
    tag,
    permission: 'project.admin',
    to: self,
    body: CreateLinks,
    bodyOptional: true,
    reply: Links,
    status: 201,
    errors: ['not_found', 'conflict'],
  }),

  'interaction.cancellations': command(`POST ${P}/:id/cancellations`, {
    summary: 'Cancel an open interaction',
    tag: 'compat',
    alias: 'interaction.cancel',
    as: 'interaction.cancel',
    permission: 'runs.operate',
    to: self,
    body: Cancel,
    bodyOptional: true,
    reply: Interaction,
    errors: ['not_found', 'conflict'],
  }),
} as const

/**
 * The data that the gateway adds to commands that answer or review: the roles of the caller, by id
 * and by name.
 */
export interface CallerRoles {
  readonly roles: readonly string[]
  /** The caller's permissions to execute actions; absent if the caller has none. */
  readonly executes?: readonly string[]
}
/** The review round for which links are issued. */
export interface LinkedRound {
  readonly round: number
}
/**
 * The data that the gateway adds to a response sent through an answer link: the review round for
 * which the link was issued.
 */
export interface ByLink {
  readonly link?: { readonly round: number }
}
