/**
 * The rows for loops: workflows with triggers that start them and a policy for concurrent runs.
 * The records are in `schema.ts`, and the events and internal commands in `events.ts`.
 */

import { type Static, Type } from 'typebox'
import { onlyIncluding } from '../additions.ts'
import { Closed, cutting, JsonObject, listOf, pageOf, paging, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import { savedAdditions } from '../workflows/saved-warnings.ts'
import { checkDefaultConfig, checkLoop } from './check.ts'
import { checkBudget } from './credits.ts'
import { LoopRun, RunSource } from './run.ts'
import { authoring, Loop, loopStatuses, metadata } from './schema.ts'
import { checkNewSecrets, triggerSettingsFaults } from './secrets.ts'

const name = Type.String({ minLength: 1, maxLength: 160 })
const CreateLoop = Closed({
  name,
  status: Type.Optional(Type.Enum([...loopStatuses])),
  ...metadata,
  ...authoring,
})
export type CreateLoop = Static<typeof CreateLoop>
const UpdateLoop = Closed({
  name: Type.Optional(name),
  status: Type.Optional(Type.Enum([...loopStatuses, 'deleted'])),
  ...metadata,
  ...authoring,
})
export type UpdateLoop = Static<typeof UpdateLoop>

const checkCreate = (body: CreateLoop) => [
  ...checkLoop(body),
  ...checkDefaultConfig(body),
  ...triggerSettingsFaults(body.triggers, body.settings),
  ...checkNewSecrets(body.settings),
]
const checkUpdate = ({ status, ...besides }: UpdateLoop) =>
  status === 'deleted' && Object.keys(besides).length > 0
    ? [
        {
          field: 'status',
          message: 'deletes the loop, so no other member is allowed',
          actual: status,
        },
      ]
    : []

/** Maximum length of an idempotency key in characters. */
const KEY = { maxLength: 255 }
const { trigger_id: _, ...sourceFields } = RunSource.properties
const StartLoopRun = Closed({
  event: Type.Optional(JsonObject),
  meta: Type.Optional(JsonObject),
  config: Type.Optional(JsonObject),
  source: Type.Optional(Closed(sourceFields)),
  idempotency_key: Type.Optional(
    Type.String({
      ...KEY,
      description:
        'Key that marks repeats: a second start in the project with the same key returns the ' +
        'same run while it is active, and 409 afterwards',
    }),
  ),
  external_id: Type.Optional(
    Type.String({ ...KEY, description: 'Deprecated name of idempotency_key' }),
  ),
  budget_usd: Type.Optional(Type.Number({ minimum: 0 })),
  credit_budget: Type.Optional(Type.Integer({ minimum: 1 })),
})
export type StartLoopRun = Static<typeof StartLoopRun>
/**
 * Returns the idempotency key of a request to start a run: `idempotency_key`, otherwise
 * `external_id`, without surrounding white space. Returns undefined if both are absent or blank.
 */
export const startKeyOf = ({
  idempotency_key,
  external_id,
}: Pick<StartLoopRun, 'idempotency_key' | 'external_id'>): string | undefined =>
  idempotency_key?.trim() || external_id?.trim() || undefined
const FireTrigger = Closed({
  event: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description:
        'Event of the run; by default, the event of a schedule trigger, or an empty event',
    }),
  ),
})
export type FireTrigger = Static<typeof FireTrigger>
const checkStart = (body: StartLoopRun) => [
  ...checkBudget(body),
  ...(body.idempotency_key?.trim() &&
  body.external_id?.trim() &&
  body.idempotency_key.trim() !== body.external_id.trim()
    ? [
        {
          field: 'external_id',
          message: 'is a deprecated name of idempotency_key; give only one of them',
        },
      ]
    : []),
]

export const TriggerStanding = Type.Object({
  id: Type.String(),
  key: Type.Optional(Type.String()),
  name: Type.Optional(Type.String()),
  kind: Type.Enum(['http', 'schedule', 'event', 'manual']),
  enabled: Type.Boolean(),
  next_fire_at: Type.Optional(Timestamp),
  condition_faults: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'Number of events for which the condition could not be evaluated since it was saved; ' +
        'such events start no run',
    }),
  ),
  last_condition_fault: Type.Optional(
    Type.Object({ source_event_id: Type.String(), at: Timestamp, message: Type.String() }),
  ),
  skipped_starts: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'Number of firings that started no run since the latest version of the loop was created',
    }),
  ),
  last_skipped_start: Type.Optional(
    Type.Object({
      at: Timestamp,
      reason: Type.String(),
      source_event_id: Type.Optional(Type.String()),
    }),
  ),
})
const P = '/projects/:project/loops'
const tag = 'loops'
/**
 * The path parameter `id` accepts the name of a loop instead of its id, if only one loop of the
 * project has this name.
 */
const self = { kind: 'loop', slot: 'id', prefix: 'loop', named: true } as const
/** Maximum size in bytes of the body of a request that defines or starts a loop. */
const LIMIT = 1_048_576

export const loops = {
  'loop.list': query(`GET ${P}`, {
    summary: 'List loops, newest first',
    tag,
    permission: 'project.view',
    query: Closed({
      status: Type.Optional(Type.Enum([...loopStatuses])),
      agent_id: Type.Optional(Type.String()),
      ...paging,
      include: savedAdditions.include,
    }),
    additions: savedAdditions.additions,
    reply: pageOf(Loop),
  }),
  'loop.create': command(`POST ${P}`, {
    summary: 'Create a loop; a loop with steps is active at once',
    tag,
    permission: 'project.edit',
    to: { kind: 'loop', mint: 'loop' },
    body: CreateLoop,
    check: checkCreate,
    ...onlyIncluding(savedAdditions),
    reply: Loop,
    status: 201,
    limit: LIMIT,
    errors: ['already_exists', 'conflict'],
  }),
  'loop.get': query(`GET ${P}/:id`, {
    summary: 'One loop',
    tag,
    permission: 'project.view',
    ...onlyIncluding(savedAdditions),
    reply: Loop,
    errors: ['not_found'],
  }),
  'loop.update': command(`PATCH ${P}/:id`, {
    summary:
      'Change the given members of a loop; a change of its definition creates the next version',
    tag,
    permission: 'project.edit',
    to: self,
    body: UpdateLoop,
    check: checkUpdate,
    ...onlyIncluding(savedAdditions),
    reply: Loop,
    limit: LIMIT,
    errors: ['not_found', 'conflict', 'already_exists'],
  }),
  'loop.delete': command(`DELETE ${P}/:id`, {
    summary: 'Delete a loop; its runs continue and stay readable',
    tag,
    permission: 'project.edit',
    to: self,
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
  'loop.triggers': query(`GET ${P}/:id/triggers`, {
    summary:
      'Triggers of a loop, with their next times, the errors of their conditions and their ' +
      'skipped starts',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    query: Closed(cutting),
    reply: listOf(TriggerStanding),
    errors: ['not_found'],
  }),
  'loop.start': command(`POST ${P}/:id/runs`, {
    summary: 'Start a run of a loop',
    keyScope: 'run',
    tag,
    permission: 'runs.operate',
    to: self,
    body: StartLoopRun,
    check: checkStart,
    key: startKeyOf,
    bodyOptional: true,
    reply: LoopRun,
    status: 202,
    limit: LIMIT,
    errors: [
      'not_found',
      'conflict',
      'loop_paused',
      'loop_not_runnable',
      'budget_exhausted',
      'idempotency_key_conflict',
    ],
  }),
  'loop.fire': command(`POST ${P}/:id/triggers/:trigger_id/fire`, {
    summary:
      'Fire a trigger of a loop as a test, even if it is disabled; the firing starts a real run',
    tag,
    permission: 'runs.operate',
    to: self,
    body: FireTrigger,
    bodyOptional: true,
    reply: LoopRun,
    status: 202,
    limit: LIMIT,
    errors: ['not_found', 'conflict', 'loop_paused', 'loop_not_runnable', 'budget_exhausted'],
  }),
} as const

/** A trigger with its current state, such as the time of its next firing. */
export type TriggerStanding = Static<typeof TriggerStanding>

/** The data about a trigger that the gateway needs to admit a request that fires it. */
export interface TriggerFacts {
  readonly status: string
  readonly enabled: boolean
  readonly key: string
  readonly secret?: string
}
