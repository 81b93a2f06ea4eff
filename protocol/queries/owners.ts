/**
 * Owner queries: the queries that the owner of an actor answers from the committed state of the
 * actor, by kind and name. An answer may come from another process as JSON, which cannot represent
 * undefined. An absent optional reply is therefore either null or undefined.
 */

import type {
  AccountUsers,
  ConsoleOwner,
  ConsoleSessionState,
  FoundConsoleSession,
} from '../access/console-rows.ts'
import type { DeviceRequest } from '../access/device-rows.ts'
import type {
  Definition,
  OrganizationDirectory,
  ProjectDirectory,
  ReachablePerson,
  SpentBudget,
} from '../access/directory.ts'
import type { FoundSecret, Secret } from '../access/secret-rows.ts'
import type { ActionCall } from '../actions/invocation.ts'
import type { OrganizationActionWithSecrets } from '../actions/organization-rows.ts'
import type { ActionWithSecret } from '../actions/rows.ts'
import type { Equipped } from '../agents/capabilities.ts'
import type { MessagingBinding } from '../agents/messaging-bindings.ts'
import type { Api } from '../api.ts'
import type { ArtifactState, LeaseFacts } from '../artifacts/commands.ts'
import type { Artifact, ArtifactQuota } from '../artifacts/schema.ts'
import type { KnownResource } from '../blueprints/compare.ts'
import type { ResourceTypeName } from '../blueprints/resources.ts'
import type { Identity } from '../blueprints/stored.ts'
import type { Reply } from '../contract.ts'
import type { Address, Kind } from '../entry.ts'
import type { EnvironmentCredential } from '../environments/commands.ts'
import type { EnvironmentStanding } from '../environments/events.ts'
import type { Environment } from '../environments/schema.ts'
import type { Refusal } from '../errors.ts'
import type { ConditionFaults } from '../events/sources.ts'
import type { Interaction } from '../interactions/schema.ts'
import type { GrantedLease, Renewal } from '../jobs/leases.ts'
import type { JobHeader } from '../jobs/rows.ts'
import type { HandleOwner } from '../loops/handles.ts'
import type { TriggerFacts, TriggerStanding } from '../loops/rows.ts'
import type { LoopStanding } from '../loops/standing.ts'
import type { Preferences, SavedView } from '../preferences/schema.ts'
import type { RepositoryHost, RepositoryHostWithMaterial } from '../repositories/rows.ts'
import type { Run } from '../runs/schema.ts'
import type { Compacting, KnownResult, Standing } from '../sessions/commands.ts'
import type { Generating } from '../sessions/transcript/previews.ts'
import type { Skill } from '../skills/schema.ts'
import type { Table } from '../tables/schema.ts'
import type { DeliveryOpening, DeliveryOutcome } from '../webhooks/delivery.ts'
import type { WebhookWithSecret } from '../webhooks/rows.ts'
import type { Registration } from '../workers/socket.ts'
import type { Spec } from '../workflows/spec.ts'

type Optional<T> = T | null | undefined
/** The content of a job, for the worker or executor that performs it. */
interface JobSpec {
  input: { readonly job_id: string }
  reply: unknown
}
interface NoInput {
  readonly [name: string]: never
}

export interface OwnerQueries {
  organization: {
    directory: { input: { readonly id?: string }; reply: OrganizationDirectory }
    skills: { input: { readonly ids: readonly string[] }; reply: readonly Skill[] }
    skill_grants: { input: { readonly id: string }; reply: number }
    action: { input: { readonly name: string }; reply: Optional<OrganizationActionWithSecrets> }
    /** The projects that hold these workflow handles, in the same order; null for a free handle. */
    handle_projects: {
      input: { readonly handles: readonly string[] }
      reply: readonly (string | null)[]
    }
    device: { input: { readonly user_code: string }; reply: DeviceRequest | null }
    /** The unexpired console session with this hash, or null. */
    console_session: { input: { readonly hash: string }; reply: FoundConsoleSession | null }
    /** The console sessions that act as one of these principals. */
    console_sessions: { input: ConsoleOwner; reply: readonly ConsoleSessionState[] }
    /** The users of an account; none for an unknown account. */
    console_account: { input: { readonly id: string }; reply: AccountUsers }
    /** Whether any console session has ever been opened. */
    console_used: { input: NoInput; reply: boolean }
    /** The given principal ids that belong to no organization key. */
    unknown_principals: {
      input: { readonly ids: readonly string[] }
      reply: readonly string[]
    }
    /** Whether a project sends email for interactions that do not specify a delivery. */
    email_notifications: { input: { readonly project: string }; reply: boolean }
    /** The storage that artifacts use. The gateway adds the time. */
    artifact_quota: { input: NoInput; reply: Omit<ArtifactQuota, 'generated_at'> }
  }
  project: {
    directory: { input: { readonly id: string }; reply: ProjectDirectory }
    definition: { input: { readonly id: string }; reply: Optional<Definition> }
    reach: { input: { readonly targets: readonly string[] }; reply: readonly ReachablePerson[] }
    unknown_targets: { input: { readonly targets: readonly string[] }; reply: readonly string[] }
    equipment: { input: { readonly id: string }; reply: Optional<Equipped> }
    bindings: { input: { readonly id: string }; reply: Optional<{ items: MessagingBinding[] }> }
    action: { input: { readonly name: string }; reply: Optional<ActionWithSecret> }
    webhook: { input: { readonly webhook_id: string }; reply: WebhookWithSecret | null }
    secret: { input: { readonly ref: string }; reply: FoundSecret | null }
    secrets: { input: NoInput; reply: readonly Secret[] }
    /** A repository host with its sealed secrets, or null. */
    repository_host: { input: { readonly name: string }; reply: RepositoryHostWithMaterial | null }
    repository_hosts: { input: NoInput; reply: readonly RepositoryHost[] }
    /**
     * The resources with the given ids, and the resources whose `match` field (`TypeFacts`) has one
     * of the given values.
     */
    resources: {
      input: {
        readonly ids: readonly string[]
        readonly named: readonly (readonly [type: ResourceTypeName, name: string])[]
      }
      reply: readonly KnownResource[]
    }
    /** Ids of the resources that the project itself stores and that a blueprint can describe. */
    resource_ids: { input: NoInput; reply: readonly string[] }
    /**
     * The first of these actions, toolkits and skills that a blueprint may not delete, or null.
     * `changed_loops`: loops that the same request deletes, or whose steps it replaces, so that they
     * do not prevent the deletion of an action.
     */
    refused_deletion: {
      input: {
        readonly ids: readonly string[]
        readonly requester: Identity
        readonly changed_loops?: readonly string[]
      }
      reply: { readonly id: string; readonly refusal: Refusal } | null
    }
    job_spec: JobSpec
  }
  run: {
    /** The content of a job, or null when the run no longer waits for the job. */
    job_spec: JobSpec
    /** The data for an action call by an executor, including its parameters, or null. */
    action_call: { input: { readonly job_id: string }; reply: Optional<ActionCall> }
    /** The status and outcome of an action that was called directly. */
    invoked: { input: NoInput; reply: Optional<Reply<Api['action.invoke']>> }
    /** The event types for which steps wait, with the ids of their waits. */
    awaiting: {
      input: NoInput
      reply: readonly { readonly wait_id: string; readonly event_type: string }[]
    }
    /**
     * The spec of a run without a stored definition, which was started with an inline spec or as a
     * direct call. Null for other runs, and when there is no such run.
     */
    inline_spec: { input: NoInput; reply: Optional<Spec> }
    /** The record of the run, or null when there is no such run. */
    get: { input: NoInput; reply: Run | null }
  }
  preferences: {
    get: { input: NoInput; reply: Preferences }
  }
  saved_views: {
    /** The shared views, and the private ones of a principal, oldest first. */
    visible: { input: { readonly principal_id: string }; reply: readonly SavedView[] }
  }
  environment: {
    /** The environment as a blueprint resource, or null. */
    resource: { input: NoInput; reply: KnownResource | null }
    /** The record, or null when there is no such environment. */
    get: { input: NoInput; reply: Environment | null }
    /** The record with the state of the worker, or null. */
    standing: { input: NoInput; reply: EnvironmentStanding | null }
    /** The worker to which a credential belongs, or null when the credential is not current. */
    credential: { input: { readonly token_hash: string }; reply: EnvironmentCredential | null }
  }
  queue: {
    /** The headers of the next jobs to offer, in order, at most `limit` for each capability. */
    waiting: { input: { readonly limit: number }; reply: readonly JobHeader[] }
    /**
     * `waiting`: number of jobs without a lease, including those in back-off. `leased`: number of
     * leased jobs.
     */
    depth: { input: NoInput; reply: { readonly waiting: number; readonly leased: number } }
    /** The jobs whose leases a worker session holds, with the lease tokens. */
    leases: { input: { readonly session: string }; reply: readonly GrantedLease[] }
    /** The current leases of the given jobs. */
    renewals: { input: { readonly job_ids: readonly string[] }; reply: readonly Renewal[] }
    /**
     * The job that is under this lease in this shard, or null. With `job_id`, only that job is
     * examined, which is faster.
     */
    lease: {
      input: { readonly lease_token: string; readonly job_id?: string }
      reply: LeaseFacts | null
    }
  }
  worker: {
    /** Whether a connection is the current connection of its session. */
    current: {
      input: { readonly session: string; readonly generation: number }
      reply: boolean
    }
    /** The registration of a connected worker, or null. */
    registration: { input: NoInput; reply: Registration | null }
  }
  interaction: {
    /** The record of the interaction; null if it does not exist or was deleted. */
    get: { input: NoInput; reply: Interaction | null }
  }
  channel: {
    job_spec: JobSpec
    /** The channel as a blueprint resource, or null. */
    resource: { input: NoInput; reply: KnownResource | null }
  }
  events: {
    /** The number of registered triggers, and of registered waits. */
    listening: { input: NoInput; reply: { readonly triggers: number; readonly waits: number } }
    /**
     * The id of the event that was stored under an idempotency key, or null when the actor does not
     * remember the key.
     */
    published: { input: { readonly key: string }; reply: string | null }
    /** Faults in the trigger conditions of a loop, by trigger id. */
    faults: {
      input: { readonly loop_id: string }
      reply: Readonly<Record<string, ConditionFaults>>
    }
  }
  loop: {
    /** The loop as a blueprint resource, or null. */
    resource: { input: NoInput; reply: KnownResource | null }
    /**
     * The version that a new run uses, and the daily budget if it is spent. Null when there is no
     * such loop.
     */
    version: {
      input: NoInput
      reply: { readonly number: number; readonly spent_budget?: SpentBudget } | null
    }
    trigger: { input: { readonly trigger_id: string }; reply: TriggerFacts | null }
    triggers: { input: NoInput; reply: TriggerStanding[] | null }
    standing: { input: { readonly loop_id: string }; reply: LoopStanding }
    job_spec: JobSpec
  }
  trigger_handle: {
    /** The trigger to which the handle belongs, or null. */
    owner: { input: { readonly handle: string }; reply: HandleOwner | null }
  }
  plan: {
    /** The number of slots in use, and the number of runs that wait for a slot. */
    places: { input: NoInput; reply: { readonly given: number; readonly waiting: number } }
  }
  table: {
    /** The table as a blueprint resource, or null. */
    resource: { input: NoInput; reply: KnownResource | null }
    /**
     * The definition of the table, or null when there is no such table. The key columns of its
     * schema never change.
     */
    definition: { input: NoInput; reply: Table | null }
  }
  session: {
    /** Whether the session is live, and the data that a gateway needs to request a turn. */
    standing: { input: NoInput; reply: Standing }
    /** The content of a job, or null when the session no longer waits for the job. */
    job_spec: JobSpec
    /** The data for an action call by an executor, including its parameters, or null. */
    action_call: { input: { readonly job_id: string }; reply: Optional<ActionCall> }
    /**
     * The transcript row to which the output of a generation belongs, for previews of that output.
     */
    generation: { input: { readonly job_id: string }; reply: Optional<Generating> }
    /** The progress of the compaction of the session. */
    detail: { input: NoInput; reply: Compacting }
    /**
     * Results of tool calls whose rows are not yet committed, for gateways that show them early.
     */
    results: { input: NoInput; reply: readonly KnownResult[] }
    attachments: { input: NoInput; reply: Optional<{ readonly items: readonly Artifact[] }> }
    attachment: { input: { readonly artifact_id: string }; reply: Optional<Artifact> }
  }
  delivery: {
    /** The content and the destination of a delivery, or null when there is no such delivery. */
    content: { input: NoInput; reply: DeliveryOpening | null }
    /** The outcome so far, or null when there is no such delivery. */
    outcome: { input: NoInput; reply: DeliveryOutcome | null }
  }
  artifact: {
    /** The artifact in any state, or null when its id was never used. */
    content: { input: NoInput; reply: ArtifactState | null }
    job_spec: JobSpec
  }
}
export type OwnerKind = keyof OwnerQueries
export type OwnerQuery<
  K extends OwnerKind,
  N extends keyof OwnerQueries[K],
> = OwnerQueries[K][N] & {
  input: unknown
  reply: unknown
}
/** The address of an actor of one kind. */
export type AddressOf<K extends Kind> = Omit<Address, 'kind'> & { readonly kind: K }
