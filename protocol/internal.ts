/** Commands that no client sends: between actors, from the shard host, and from gateways on behalf of workers. */
import type { CompactionPolicy, ModelRoute, ThinkingEffort } from './agents/schema.ts'
import type { ActorOf, InvocationFacts } from './actions/invocation.ts'
import type { Job, JobHeader } from './jobs/rows.ts'
import type { AppContext } from './sessions/turns/context.ts'
import type { JsonObject } from './common.ts'
import type { Definition } from './access/directory.ts'
import type { Approval } from './interactions/events.ts'
import type { Interaction, InteractionKind } from './interactions/schema.ts'
import type { RunOpening } from './loops/events.ts'
import type { QueueReason } from './loops/run.ts'
import type { SourceEvent, Chain } from './events/sources.ts'
import type { Place, TurnOpening, TurnReport } from './sessions/commands.ts'
import type { Registration } from './workers/socket.ts'

/** Decided by a queue. All of them are total: a late, repeated or foreign message changes nothing. */
/** A lease of a session, as its queue knows it. */
export interface GrantedLease {
  readonly job_id: string
  readonly lease_token: string
}
/** A lease as its queue knows it now. `last_heartbeat_at` is absent until the worker gives a sign of life to the queue's owner. */
export interface Renewal {
  readonly job_id: string
  readonly lease_expires_at: string
  readonly last_heartbeat_at?: string
}
export type QueueCommands = {
  /** From a run: this job wants doing. */
  'queue.enqueue': { input: { job: JobHeader; record: Job }; reply: undefined }
  /** From a run: stop these jobs; a waiting one ends at once, a leased one is asked to stop. */
  'queue.cancel': { input: { job_ids: readonly string[]; reason?: string }; reply: undefined }
  /** From the matcher: these waiting jobs go to these sessions of one gateway. */
  'queue.claim': {
    input: { gateway: string; takes: readonly Take[] }
    reply: { claimed: readonly string[] }
  }
  /** From a gateway: a worker's terminal outcome. */
  'queue.report': { input: JobReport; reply: { outcome: 'accepted' | 'duplicate' | 'lease_lost' } }
  /** From a gateway: a sign of life; `alive: false` when the lease is lost. */
  'queue.heartbeat': {
    input: { job_id: string; lease_token: string; gateway: string }
    reply: { alive: boolean; cancel?: { reason?: string; requested_at: string } }
  }
  /** From a gateway or the host: the job could not be delivered; it waits again, no attempt used. */
  'queue.release': { input: { job_id: string; lease_token: string }; reply: undefined }
  /** From a gateway: the session that held these leases is gone for good. */
  'queue.lose': { input: { session: string; job_ids: readonly string[] }; reply: undefined }
  /** From a gateway: the connection of this session carried no sign of life of the job for longer than a lease lasts. */
  'queue.expire': { input: { session: string; job_id: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/**
 * A job that somebody takes. `losses`: an executor found the work safe to repeat, so that the lease may be lost this often;
 * `served`: the service does it itself.
 */
export interface Take {
  readonly job_id: string
  readonly session: string
  readonly instance: string
  readonly served?: true
  readonly losses?: number
}
export interface JobReport {
  readonly job_id: string
  readonly lease_token: string
  readonly status: 'completed' | 'failed' | 'cancelled'
  readonly result?: JsonObject
  /** What an HTTP action tells about the application, for the session whose turn called it. */
  readonly context?: readonly AppContext[]
  readonly error_type?: string
  readonly error_message?: string
  /** Trying again cannot help: whatever attempts are left. */
  readonly final?: true
  /** Milliseconds until the next attempt, if there is one. */
  readonly retry_in?: number
  /** What the executor knows of the call. */
  readonly invocation?: InvocationFacts
}

/** What the step of a run gives to the child that it starts. */
export interface ChildStart {
  readonly parent: { readonly run_id: string; readonly step: string; readonly waits: boolean }
  /** How many runs are above the child. */
  readonly depth: number
  /** Depth of the source event that caused the parent. */
  readonly cause_depth?: number
  /** Of that event. */
  readonly chain?: Chain
  readonly definition: Definition
  readonly definitions: Readonly<Record<string, Definition>>
  readonly input: JsonObject
  readonly config: JsonObject
  readonly queue: string
  readonly priority: number
  readonly fairness_key?: string
  readonly actor?: ActorOf
  /** Who started the parent, and from where, as its record and its `meta` have it. */
  readonly initiated_by?: string
  readonly source?: JsonObject
}

/** Decided by a run; sent by the queue of the same shard in the same commit. */
export type RunCommands = {
  'job.settled': {
    input: {
      job_id: string
      outcome: 'completed' | 'failed' | 'cancelled'
      attempt: number
      worker_instance_id?: string
      result?: JsonObject
      context?: readonly AppContext[]
      error_type?: string
      error_message?: string
    }
    reply: undefined
  }
  /** The job failed or lost its lease and waits for its next attempt. */
  'job.retried': {
    input: {
      job_id: string
      attempt: number
      max_attempts: number
      reason: 'failure' | 'lease_expired'
      error_type?: string
      error_message?: string
      worker_instance_id?: string
    }
    reply: undefined
  }
  /** From an interaction that a client opened for this run: it waits for an answer. */
  'interaction.opened': { input: InteractionOpened; reply: undefined }
  /** From an interaction of this run: somebody answered. */
  'interaction.responded': {
    input: {
      interaction_id: string
      response_id: string
      response: unknown
      responder: { user_id: string }
      comment?: string
      round?: number
    }
    reply: undefined
  }
  /** From an interaction of this run: it is over. Told once. */
  'interaction.settled': { input: InteractionSettled; reply: undefined }
  /** From a step of the run above. */
  'child.start': { input: ChildStart; reply: undefined }
  /** From the run above: it does not want this one any more. */
  'child.cancel': { input: { reason: string }; reply: undefined }
  /** From a run that a step of this one started: it has ended. */
  'child.settled': {
    input: {
      run_id: string
      status: string
      result?: JsonObject
      error_type?: string
      error_message?: string
    }
    reply: undefined
  }
  /** From the matcher of source events: from now on it knows this wait, and nothing is missed. */
  'event.watched': { input: { wait_id: string }; reply: undefined }
  /** From the matcher: something happened that these waits fit. Without `wait_ids` the run matches its waits itself. Total, and harmless when it is said twice. */
  'event.deliver': { input: Delivered; reply: undefined }
  wake: { input: unknown; reply: undefined }
  /** From its loop: begin to be. */
  'run.open': { input: RunOpening; reply: undefined }
  /** From its loop: its turn has come; `later`: in a commit of its own. */
  'run.begin': { input: { later?: true }; reply: undefined }
  /** From its loop: it has to wait. */
  'run.hold': { input: { queue_reason: QueueReason }; reply: undefined }
  /** From its loop: another run takes its place, or the loop is gone. */
  'run.displace': { input: { deleted?: true }; reply: undefined }
  /** From its loop: the daily budget is spent, in credits. */
  'run.halt': { input: { used: number; limit: number }; reply: undefined }
  /** From its loop, which has heard that the run fails: it ends now. `paused`: it was one failure too many. */
  'run.end': {
    input: { paused?: { consecutive_failures: number; threshold: number } }
    reply: undefined
  }
  /** From the loop that a step asked for a run. */
  'child.answered': {
    input: {
      wait_id: string
      run_id?: string
      fault?: { readonly error_type: string; readonly error: string }
    }
    reply: undefined
  }
  /** From whoever spends on behalf of the run: once per `usage_id`. */
  'usage.record': { input: Usage; reply: undefined }
  /** From the executor that looked up what a turn of this run runs with. */
  'turn.defined': { input: TurnDefined; reply: undefined }
  /** From the session: the turn has ended, or cannot begin. Told once; total, and harmless when it is said twice. */
  'turn.settled': { input: Omit<TurnReport, 'run_id'> & { session_id: string }; reply: undefined }
}
/** What a step that asks an agent wants; read by the executor that looks up the rest. Without `agent` the service's own reviewer is meant. */
export interface TurnWanted {
  readonly turn_id: string
  /** Id or name. */
  readonly agent?: string
  /** Whoever the run works for; absent: the service. */
  readonly asker?: string
  readonly session: {
    readonly scope: 'loop' | 'agent'
    readonly ref_id: string
    readonly name: string
    readonly title?: string
    readonly visibility?: 'project' | 'private'
    readonly compaction_policy?: CompactionPolicy
  }
  readonly step: {
    readonly timeout_seconds?: number
    readonly thinking_effort?: ThinkingEffort
    readonly model_route?: ModelRoute
    readonly tool_names?: readonly string[]
    readonly disable_tools?: boolean
    readonly max_turns?: number
    readonly max_duplicate_tool_calls?: number
  }
}
/** Where a turn of a run takes place, and what it runs with. */
export interface TurnDefined extends Pick<TurnOpening, 'seed' | 'definition'> {
  readonly turn_id: string
  readonly session_id: string
  readonly place: Place
}
/** Something was spent. Costs are whole thousandths of a credit. */
interface Usage {
  readonly usage_id: string
  readonly category: string
  readonly quantity: number
  readonly credit_cost_milli: number
  /** What counts against budgets, when that is something else than what is paid. */
  readonly budget_cost_milli?: number
  /** The turn that spent it, and the model that was asked. */
  readonly agent_turn_id?: string
  readonly provider?: string
  readonly model?: string
  /** Agent turns that it took. */
  readonly agent_turns?: number
  readonly step_key?: string
  /** The turn that spent it has ended, and its end is told next: what was paid for is kept. */
  readonly ends?: boolean
}
/** A source event as a run is given it. */
export interface Delivered
  extends Pick<SourceEvent, 'event_type' | 'event' | 'meta'>,
    Partial<Pick<SourceEvent, 'source_id' | 'source_kind'>> {
  readonly source_event_id: string
  readonly wait_ids?: readonly string[]
}
/** What the timeline of a run tells of an interaction that was opened. */
export interface InteractionOpened {
  readonly interaction_id: string
  readonly protocol: InteractionKind
  readonly targets: readonly string[]
  readonly title: string
  readonly expires_at?: string
}
/** How an interaction ended, and the signal that says so to a run in which no step waits for it. */
export interface InteractionSettled {
  readonly interaction_id: string
  readonly signal_name: string
  readonly status: 'completed' | 'cancelled' | 'expired'
  readonly value?: unknown
  readonly responder?: { readonly user_id: string }
  readonly comment?: string
  readonly reason?: string
  /** It was cancelled, because targets or reviewers do not exist: a fault of the step that asked. */
  readonly invalid?: true
}

/** Decided by an interaction, besides its rows. */
export type InteractionCommands = {
  /** From a step of a run of the same shard: ask. */
  'interaction.open': { input: InteractionOpening; reply: undefined }
  /** From a turn of a session of the same shard: ask, and tell the session of every change. */
  'interaction.ask': {
    input: Omit<InteractionOpening, 'run_id' | 'signal_name' | 'step' | 'depth' | 'chain'> &
      Pick<Interaction, 'consumer'> & { depth?: number; withheld?: true; approval?: Approval }
    reply: undefined
  }
  /** From the node that looked up its targets and reviewers: these do not exist. Nothing happens to one that is over. */
  'interaction.invalidate': { input: { unknown: readonly string[] }; reply: undefined }
  /** From the run that waits: it does not want an answer any more. Nothing happens to one that is over. */
  'interaction.withdraw': { input: { reason?: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/** What a step asks. It was checked by whoever tells it. */
export interface InteractionOpening
  extends Pick<
    Interaction,
    | 'kind'
    | 'title'
    | 'description'
    | 'target_user_ids'
    | 'spec'
    | 'resolution_policy'
    | 'expires_at'
    | 'context'
    | 'tags'
  > {
  readonly run_id: string
  readonly signal_name: string
  readonly step: string
  /** Of its source events. */
  readonly depth: number
  readonly chain?: Chain
}

/** Decided by the registry entry of one worker instance. */
export type WorkerCommands = {
  /** `conflict` when the instance is connected elsewhere; `session` and `token_hash` are used when a new session begins. */
  'worker.register': {
    input: Omit<Registration, 'generation' | 'connected_at'> & { given_token_hash?: string }
    reply: {
      registration: Registration
      resumed: boolean
      draining: boolean
      replaced?: { session: string; gateway: string }
    }
  }
  /** Sign of life of the connection, every heartbeat cadence; `leases`: jobs the session holds; `takes`: what it takes from now on, when it has just said so. */
  'worker.seen': {
    input: {
      session: string
      generation: number
      leases: number
      takes?: Pick<Registration, 'queues' | 'action_names' | 'models'>
    }
    reply: { current: boolean }
  }
  'worker.closed': {
    input: { session: string; generation: number; leases: number }
    reply: undefined
  }
  /** The worker says that it drains. */
  'worker.drained': { input: { session: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
