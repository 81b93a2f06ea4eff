/**
 * Schemas and limits of environments. An environment is a durable workspace in which jobs check out
 * repositories, run commands and keep files. The published contract defines the members of the
 * record; `environmentAdditions` lists the additions of this service.
 */
import { type Static, Type } from 'typebox'
import { additions } from '../additions.ts'
import { Closed, QueueName, Tags, Timestamp } from '../common.ts'
import { REPOSITORY_NAME, REPOSITORY_NAME_LENGTH } from '../repositories/name.ts'

/**
 * Limits of environments. `repositories` and `capabilities` are numbers of entries. Lengths are in
 * characters and times in milliseconds unless stated otherwise.
 */
export const environmentLimits = {
  name: 63,
  path: 4096,
  /** Maximum duration of a lease without a renewal, in seconds. */
  lease_seconds: 3600,
  /** Time without a report after which an environment or its worker is considered lost. */
  stale: 90_000,
  /** Time between two reports of a host about an environment. */
  report: 30_000,
  /** Time after which an attached environment that remains orphaned is destroyed. */
  orphaned: 24 * 3_600_000,
  /** Maximum number of bytes from a log in one response. */
  log_bytes: 128_000,
  /** Maximum number of lines from a log in one response. */
  log_lines: 5000,
  repositories: 20,
  capabilities: 64,
} as const

const environmentStatuses = [
  'provisioning',
  'ready',
  'running',
  'retained',
  'destroying',
  'destroyed',
  'failed',
  'orphaned',
] as const
export const EnvironmentStatus = Type.Enum([...environmentStatuses])
export type EnvironmentStatus = Static<typeof EnvironmentStatus>

export const EnvironmentMode = Type.Enum(['manual', 'run', 'agent', 'loop'])
export type EnvironmentMode = Static<typeof EnvironmentMode>
export const RetentionPolicy = Type.Enum([
  'manual',
  'destroy_on_success',
  'retain_on_failure',
  'retain_always',
])
export type RetentionPolicy = Static<typeof RetentionPolicy>
export const Lifetime = Type.Enum(['run', 'lease', 'explicit'])
export type Lifetime = Static<typeof Lifetime>

const RepositoryName = Type.String({
  minLength: 3,
  maxLength: REPOSITORY_NAME_LENGTH,
  pattern: REPOSITORY_NAME,
  description: 'Name of the repository, as owner/name',
})
/** A repository that the jobs of an environment may use. */
export const EnvironmentRepository = Closed({
  full_name: RepositoryName,
  push: Type.Boolean({ description: 'Whether jobs may get a credential that can push' }),
  provider: Type.Optional(
    Type.String({ maxLength: 64, description: 'Name of the repository host; github by default' }),
  ),
})
export type EnvironmentRepository = Static<typeof EnvironmentRepository>

/** The run, agent, loop, principal or worker that uses an environment through a lease or a job. */
export const Holder = Closed({
  kind: Type.Enum(['run', 'agent', 'loop', 'principal', 'worker']),
  id: Type.String({ minLength: 1, maxLength: 128 }),
})
export type Holder = Static<typeof Holder>

const EnvironmentLease = Type.Object({
  id: Type.String(),
  holder: Holder,
  acquired_at: Timestamp,
  expires_at: Timestamp,
})

/** The additions of an environment record. `Environment` contains their schemas. */
export const environmentAdditions = additions({
  worker_state: {},
  place: {},
  isolation: {},
  jobs_in_progress: {},
})

const Name = Type.String({
  minLength: 1,
  maxLength: environmentLimits.name,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$',
})
const Id = Type.String({ minLength: 1, maxLength: 128 })
/** The name of a provider, or an alias that the installation maps to a provider. */
export const Provider = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[a-z][a-z0-9_-]*$',
  description:
    'Name of a provider of this installation, or a name that the installation maps to a provider',
})
const template = Type.Optional(Type.Enum(['coding-default']))

export const Environment = Type.Object({
  id: Type.String(),
  name: Type.String(),
  scope: Type.Optional(Type.Enum(['owner'])),
  provider: Type.String(),
  status: EnvironmentStatus,
  lifetime: Lifetime,
  owned_by: Type.Optional(Type.String()),
  current_worker_session_id: Type.Optional(Type.String()),
  tags: Type.Optional(Tags),
  cleanup_status: Type.Enum(['none', 'pending', 'succeeded', 'failed', 'skipped']),
  retention_policy: RetentionPolicy,
  last_seen_at: Type.Optional(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp,
  mode: Type.Optional(EnvironmentMode),
  run_id: Type.Optional(Type.String()),
  agent_id: Type.Optional(Type.String()),
  loop_id: Type.Optional(Type.String()),
  template_id: Type.Optional(Type.String()),
  lease: Type.Optional(EnvironmentLease),
  repositories: Type.Optional(Type.Array(EnvironmentRepository)),
  error: Type.Optional(Type.String({ description: 'The last error of the provider' })),
  worker_state: Type.Optional(
    Type.Enum(['stopped', 'starting', 'connected'], {
      description: 'State of the worker process of the environment',
    }),
  ),
  place: Type.Optional(
    Type.String({ description: 'Location of the environment, as its provider describes it' }),
  ),
  isolation: Type.Optional(
    Type.String({ description: 'Isolation and resource limits that apply to the worker' }),
  ),
  jobs_in_progress: Type.Optional(Type.Integer({ minimum: 0 })),
})
export type Environment = Static<typeof Environment>

const creation = {
  name: Type.Optional(Name),
  scope: Type.Optional(Type.Enum(['owner'])),
  provider: Type.Optional(Provider),
  owned_by: Type.Optional(Id),
  template_id: template,
  tags: Type.Optional(Tags),
  mode: Type.Optional(EnvironmentMode),
  lifetime: Type.Optional(Lifetime),
  retention_policy: Type.Optional(RetentionPolicy),
  run_id: Type.Optional(Id),
  agent_id: Type.Optional(Id),
  loop_id: Type.Optional(Id),
  repositories: Type.Optional(
    Type.Array(EnvironmentRepository, { maxItems: environmentLimits.repositories }),
  ),
}
export const creationMembers = Object.keys(creation) as (keyof typeof creation)[]
export const CreateEnvironment = Closed(creation)
export type CreateEnvironment = Static<typeof CreateEnvironment>

export const UpdateEnvironment = Closed({
  scope: Type.Optional(Type.Union([Type.Enum(['owner']), Type.Null()])),
  owned_by: Type.Optional(Type.Union([Id, Type.Null()])),
  tags: Type.Optional(Tags),
})
export type UpdateEnvironment = Static<typeof UpdateEnvironment>

const acquisition = {
  holder: Type.Optional(Holder),
  ttl_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: environmentLimits.lease_seconds,
      description: 'Duration of the lease in seconds; 300 by default',
    }),
  ),
  lease_token: Type.Optional(
    Type.String({ maxLength: 256, description: 'Token of the lease to renew' }),
  ),
}
export const AcquireEnvironment = Closed(acquisition)
export type AcquireEnvironment = Static<typeof AcquireEnvironment>
export const AcquireMatching = Closed({ ...creation, ...acquisition })
export type AcquireMatching = Static<typeof AcquireMatching>
export const Acquired = Type.Object({
  environment: Environment,
  lease: Type.Object({
    id: Type.String(),
    token: Type.String(),
    holder: Holder,
    acquired_at: Timestamp,
    expires_at: Timestamp,
  }),
})
export type Acquired = Static<typeof Acquired>
export const ReleaseEnvironment = Closed({
  lease_token: Type.String({ minLength: 1, maxLength: 256 }),
})

export const AttachEnvironment = Closed({
  name: Name,
  worker_instance_id: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  worker_session_token: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  scope: Type.Optional(Type.Enum(['owner'])),
  owned_by: Type.Optional(Id),
  tags: Type.Optional(Tags),
  workspace_path: Type.Optional(Type.String({ maxLength: environmentLimits.path })),
  capabilities: Type.Optional(
    Type.Array(Type.String({ maxLength: 128 }), { maxItems: environmentLimits.capabilities }),
  ),
})
export type AttachEnvironment = Static<typeof AttachEnvironment>

export const StartWorker = Closed({
  command: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), { minItems: 1, maxItems: 64 }),
  ),
  runtime_version: Type.Optional(Type.String({ maxLength: 64 })),
  concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 256 })),
  queues: Type.Optional(Type.Array(QueueName, { maxItems: 64 })),
  keep_warm: Type.Optional(
    Type.String({
      maxLength: 32,
      description: 'Keep-warm time: on-demand, a duration such as 5m, or forever',
    }),
  ),
  keep_warm_required: Type.Optional(Type.Boolean()),
})
export type StartWorker = Static<typeof StartWorker>
export const WorkerStarted = Type.Object({
  environment: Environment,
  started: Type.Boolean({ description: 'False if a connected worker is used' }),
  worker_session_id: Type.Optional(Type.String()),
})
export type WorkerStarted = Static<typeof WorkerStarted>

export const logNames = ['worker', 'stdout', 'stderr', 'bootstrap'] as const
export const LogName = Type.Enum([...logNames])
export type LogName = Static<typeof LogName>
/** The number of lines that are read from the end of a log. */
export const LogTail = Type.Optional(
  Type.Integer({ minimum: 1, maximum: environmentLimits.log_lines }),
)
export const WorkerLogs = Type.Object({
  environment_id: Type.String(),
  log_name: LogName,
  content: Type.String({
    description: 'Untrusted text; if it is too long, only its end is returned',
  }),
  truncated: Type.Boolean(),
  fetched_at: Timestamp,
})
export type WorkerLogs = Static<typeof WorkerLogs>

export const GitCredentialRequest = Closed({
  repo_full_name: RepositoryName,
  operation: Type.Optional(Type.Enum(['clone', 'fetch', 'push'])),
})
export type GitCredentialRequest = Static<typeof GitCredentialRequest>
export const GitCredential = Type.Object({
  host: Type.String(),
  username: Type.String(),
  token: Type.String(),
  expires_at: Timestamp,
  repo_full_name: Type.String(),
  url: Type.Optional(
    Type.String({ description: 'Base URL of the host, when it is not https://<host>' }),
  ),
})
export type GitCredential = Static<typeof GitCredential>
