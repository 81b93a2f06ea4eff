/**
 * The rows of environments. The published contract leaves these points open, and this service
 * decides them as follows:
 * - Creating, changing, leasing and destroying an environment require `project.edit`. Attaching an
 *   environment and requesting a credential for a repository require `work.execute`.
 * - An environment of a run, an agent or a loop has an id derived from its owner. A destroyed
 *   environment of an agent or a loop is created again, empty and under the same id, at its next
 *   use.
 * - `destroy_on_success` destroys the environment of a run after any outcome of the run.
 *   `retain_on_failure` retains the environment of a failed or cancelled run.
 */
import { Type } from 'typebox'
import { Closed, pageOf, paging, Timestamp } from '../common.ts'
import { command, query, stream } from '../contract.ts'
import type { FieldError } from '../errors.ts'
import { prefixes } from '../ids.ts'
import {
  Acquired,
  AcquireEnvironment,
  AcquireMatching,
  AttachEnvironment,
  CreateEnvironment,
  Environment,
  type EnvironmentMode,
  EnvironmentStatus,
  environmentAdditions,
  environmentLimits,
  GitCredential,
  GitCredentialRequest,
  type Lifetime,
  LogName,
  LogTail,
  ReleaseEnvironment,
  StartWorker,
  UpdateEnvironment,
  WorkerLogs,
  WorkerStarted,
} from './schema.ts'

const PRINCIPAL = new RegExp(
  `^(${prefixes.user}|${prefixes.principal}|${prefixes.agent})_[A-Za-z0-9_-]+$`,
)
/**
 * Returns the fault of an owner whose text cannot be the id of a principal, such as a name. An owner
 * may be a principal that was deleted or that is created later, so its existence is not required.
 */
const checkOwner = ({ owned_by }: { readonly owned_by?: string | null }): FieldError[] =>
  owned_by === undefined || owned_by === null || PRINCIPAL.test(owned_by)
    ? []
    : [
        {
          field: 'owned_by',
          message: 'is not the id of a principal, such as user_…, svc_… or agt_…',
          actual: owned_by,
        },
      ]

/**
 * Returns the faults of a new environment: those of its owner, and a lifetime that could never end
 * because the environment belongs to no run.
 */
const checkCreation = (body: {
  readonly owned_by?: string
  readonly lifetime?: Lifetime
  readonly mode?: EnvironmentMode
}): FieldError[] => [
  ...checkOwner(body),
  ...(body.lifetime === 'run' && body.mode !== 'run'
    ? [{ field: 'lifetime', message: 'run requires the mode run', actual: body.lifetime }]
    : []),
]

const P = '/projects/:project/environments'
const E = `${P}/:environment_id` as const
const tag = 'environments'
const read = { tag, permission: 'project.view' } as const
const write = {
  tag,
  permission: 'project.edit',
  to: { kind: 'environment', slot: 'environment_id', prefix: 'environment' },
} as const
const { include, ...shownAdditions } = environmentAdditions
const shown = { ...shownAdditions, query: Closed({ include }) } as const

export const environments = {
  'environment.list': query(`GET ${P}`, {
    ...read,
    ...shownAdditions,
    summary: 'Environments, newest first; destroyed environments only on request',
    query: Closed({
      status: Type.Optional(EnvironmentStatus),
      run_id: Type.Optional(Type.String()),
      include_destroyed: Type.Optional(Type.Boolean()),
      destroyed_since: Type.Optional(Timestamp),
      include,
      ...paging,
    }),
    reply: pageOf(Environment),
  }),
  'environment.create': command(`POST ${P}`, {
    tag,
    permission: 'project.edit',
    ...shown,
    summary: 'Create an environment; its provider prepares it after the answer',
    to: { kind: 'environment_name', found: 'environment_name' },
    body: CreateEnvironment,
    check: checkCreation,
    bodyOptional: true,
    reply: Environment,
    status: 201,
    errors: ['already_exists', 'not_found', 'conflict'],
  }),
  'environment.get': query(`GET ${E}`, {
    ...read,
    ...shown,
    environment: true,
    summary: 'One environment',
    answeredBy: 'gateway',
    reply: Environment,
    errors: ['not_found'],
  }),
  'environment.update': command(`PATCH ${E}`, {
    ...write,
    ...shown,
    summary: 'Change the scope, the owner or the tags of an environment',
    body: UpdateEnvironment,
    check: checkOwner,
    reply: Environment,
    errors: ['not_found', 'already_exists', 'conflict'],
  }),
  'environment.delete': command(`DELETE ${E}`, {
    ...write,
    ...shown,
    summary: 'Destroy an environment with its files; a repeated request returns its state',
    reply: Environment,
    errors: ['not_found'],
  }),
  'environment.attach': command(`POST ${P}/attach`, {
    tag,
    permission: 'work.execute',
    ...shown,
    summary: 'Offer the workspace of a connected worker as an environment',
    to: { kind: 'environment_name', found: 'environment_name' },
    body: AttachEnvironment,
    check: checkOwner,
    reply: Environment,
    status: 201,
    alsoStatus: [200],
    errors: ['not_found', 'conflict', 'environment_worker_conflict'],
  }),
  'environment.start_worker': command(`POST ${E}/workers/start`, {
    ...write,
    summary: 'Start the worker of an environment, or use the worker that is connected',
    body: StartWorker,
    bodyOptional: true,
    reply: WorkerStarted,
    status: 202,
    alsoStatus: [200],
    errors: ['not_found', 'environment_not_ready'],
  }),
  'environment.worker_logs': query(`GET ${E}/worker/logs`, {
    ...read,
    summary: 'The newest lines of a log of the worker of an environment',
    answeredBy: 'gateway',
    query: Closed({
      log_name: Type.Optional(LogName),
      tail: LogTail,
      max_bytes: Type.Optional(Type.Integer({ minimum: 1, maximum: environmentLimits.log_bytes })),
    }),
    reply: WorkerLogs,
    errors: ['not_found', 'environment_worker_unavailable'],
  }),
  'environment.git_credentials': query(`POST ${E}/git/credentials`, {
    tag,
    permission: 'work.execute',
    environment: true,
    summary: 'A short-lived credential for one repository of an environment',
    body: GitCredentialRequest,
    answeredBy: 'gateway',
    reply: GitCredential,
    errors: ['not_found', 'forbidden', 'service_unavailable'],
  }),
  'environment.terminal': stream(`GET ${E}/terminal`, {
    tag,
    permission: 'actions.execute.*',
    summary: 'A terminal in an environment (WebSocket); needs actions.execute.environment.bash',
    stream: 'socket',
  }),
  'environment.acquire': command(`POST ${E}/acquire`, {
    ...write,
    summary: 'Get or renew exclusive use of an environment for a limited time',
    body: AcquireEnvironment,
    bodyOptional: true,
    reply: Acquired,
    errors: ['not_found', 'environment_leased', 'environment_not_ready', 'lease_lost'],
  }),
  'environment.release': command(`POST ${E}/release`, {
    ...write,
    ...shown,
    summary: 'End the exclusive use of an environment',
    body: ReleaseEnvironment,
    reply: Environment,
    errors: ['not_found'],
  }),
  'environment.acquire_matching': command(`POST ${P}/acquire`, {
    tag,
    permission: 'project.edit',
    summary:
      'Find the live environment with a name or an owner, or create it, and acquire its lease',
    to: { kind: 'environment_name', found: 'environment_name' },
    body: AcquireMatching,
    check: checkCreation,
    bodyOptional: true,
    reply: Acquired,
    errors: [
      'already_exists',
      'not_found',
      'conflict',
      'environment_leased',
      'environment_not_ready',
      'lease_lost',
    ],
  }),
} as const
