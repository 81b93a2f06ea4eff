/**
 * Commands that clients cannot send: those between actors, from the shard host, and from gateways
 * on behalf of workers.
 */

import type { Definition } from './access/directory.ts'
import type { ActorOf, InvocationFacts } from './actions/invocation.ts'
import type { CompactionPolicy, ModelRoute, ThinkingEffort } from './agents/schema.ts'
import type { JsonObject } from './common.ts'
import type { Chain, SourceEvent } from './events/sources.ts'
import type { Approval } from './interactions/events.ts'
import type { Interaction, InteractionKind } from './interactions/schema.ts'
import type { Job, JobHeader } from './jobs/rows.ts'
import type { RunOpening } from './loops/events.ts'
import type { QueueReason } from './loops/run.ts'
import type { Place, TurnOpening, TurnReport } from './sessions/commands.ts'
import type { AppContext } from './sessions/turns/context.ts'
import type { Registration } from './workers/socket.ts'

/** A lease of a session, as its queue stores it. */
export interface GrantedLease {
  readonly job_id: string
  readonly lease_token: string
}
/**
 * The current state of a lease in its queue. `last_heartbeat_at` is absent until the owner of the
 * queue receives a heartbeat of the worker.
 */
export interface Renewal {
  readonly job_id: string
  readonly lease_expires_at: string
  readonly last_heartbeat_at?: string
}
/**
 * Commands handled by a queue. All of them are total: a late, repeated or foreign message changes
 * nothing.
 */
export type QueueCommands = {
  /** From a run: enqueue this job. */
  'queue.enqueue': { input: { job: JobHeader; record: Job }; reply: undefined }
  /**
   * From a run: stop these jobs. A waiting job ends at once; the worker of a leased job is asked to
   * stop.
   */
  'queue.cancel': { input: { job_ids: readonly string[]; reason?: string }; reply: undefined }
  /** From the matcher: assign these waiting jobs to these sessions of one gateway. */
  'queue.claim': {
    input: { gateway: string; takes: readonly Take[] }
    reply: { claimed: readonly string[] }
  }
  /** From a gateway: a worker's terminal outcome. */
  'queue.report': { input: JobReport; reply: { outcome: 'accepted' | 'duplicate' | 'lease_lost' } }
  /** From a gateway: a worker's heartbeat for the job; `alive: false` when the lease is lost. */
  'queue.heartbeat': {
    input: { job_id: string; lease_token: string; gateway: string }
    reply: { alive: boolean; cancel?: { reason?: string; requested_at: string } }
  }
  /**
   * From a gateway or the host: the job could not be delivered. It waits again without using an
   * attempt.
   */
  'queue.release': { input: { job_id: string; lease_token: string }; reply: undefined }
  /** From a gateway: the session that held these leases has ended permanently. */
  'queue.lose': { input: { session: string; job_ids: readonly string[] }; reply: undefined }
  /**
   * From a gateway: the connection of this session carried no heartbeat of the job for longer than
   * a lease lasts.
   */
  'queue.expire': { input: { session: string; job_id: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/**
 * The assignment of a job to a session. `losses`: an executor found the work safe to repeat, so the
 * lease may be lost this often; `served`: the service itself does the work.
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
  /**
   * The application context that an HTTP action reports, for the session whose turn called the
   * action.
   */
  readonly context?: readonly AppContext[]
  readonly error_type?: string
  readonly error_message?: string
  /** A retry cannot help: the job fails even if attempts are left. */
  readonly final?: true
  /** Milliseconds until the next attempt, if there is one. */
  readonly retry_in?: number
  /** The executor's facts about the call. */
  readonly invocation?: InvocationFacts
}

/** The data that a step of a run passes to the child run it starts. */
export interface ChildStart {
  readonly parent: { readonly run_id: string; readonly step: string; readonly waits: boolean }
  /** The number of ancestors of the child. */
  readonly depth: number
  /** Depth of the source event that caused the parent. */
  readonly cause_depth?: number
  /** The causal chain of that event. */
  readonly chain?: Chain
  readonly definition: Definition
  readonly definitions: Readonly<Record<string, Definition>>
  readonly input: JsonObject
  readonly config: JsonObject
  readonly queue: string
  readonly priority: number
  readonly fairness_key?: string
  readonly actor?: ActorOf
  /** The principal that started the parent, and the source in the parent's `meta`. */
  readonly initiated_by?: string
  readonly source?: JsonObject
}

/** Commands handled by a run. The queue of the same shard sends `job.*` in the same commit. */
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
  /** From an interaction that a client opened for this run: it waits for a response. */
  'interaction.opened': { input: InteractionOpened; reply: undefined }
  /** From an interaction of this run: a user responded. */
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
  /** From an interaction of this run: it has ended. Sent once. */
  'interaction.settled': { input: InteractionSettled; reply: undefined }
  /** From a step of the parent run. */
  'child.start': { input: ChildStart; reply: undefined }
  /** From the parent run: it no longer needs this child. */
  'child.cancel': { input: { reason: string }; reply: undefined }
  /** From a child run that a step of this run started: it has ended. */
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
  /**
   * From the matcher of source events: it has registered this wait, and delivers every matching
   * event from now on.
   */
  'event.watched': { input: { wait_id: string }; reply: undefined }
  /**
   * From the matcher: a source event fits these waits. Without `wait_ids` the run matches its waits
   * itself. Total, and idempotent.
   */
  'event.deliver': { input: Delivered; reply: undefined }
  wake: { input: unknown; reply: undefined }
  /** From its loop: create the run. */
  'run.open': { input: RunOpening; reply: undefined }
  /** From its loop: start now, because it is the run's turn. `later`: in a separate commit. */
  'run.begin': { input: { later?: true }; reply: undefined }
  /** From its loop: wait. */
  'run.hold': { input: { queue_reason: QueueReason }; reply: undefined }
  /** From its loop: another run replaces this one, or the loop is deleted. */
  'run.displace': { input: { deleted?: true }; reply: undefined }
  /** From its loop: the daily budget is spent. Amounts are in credits. */
  'run.halt': { input: { used: number; limit: number }; reply: undefined }
  /**
   * From its loop, which has recorded the failure of the run: end now. `paused`: this failure
   * reached the threshold that pauses the loop.
   */
  'run.end': {
    input: { paused?: { consecutive_failures: number; threshold: number } }
    reply: undefined
  }
  /** From the loop from which a step requested a run. */
  'child.answered': {
    input: {
      wait_id: string
      run_id?: string
      fault?: { readonly error_type: string; readonly error: string }
    }
    reply: undefined
  }
  /** From any component that spends on behalf of the run: once per `usage_id`. */
  'usage.record': { input: Usage; reply: undefined }
  /** From the executor that looked up the definition of a turn of this run. */
  'turn.defined': { input: TurnDefined; reply: undefined }
  /** From the session: the turn has ended, or cannot start. Sent once; total, and idempotent. */
  'turn.settled': { input: Omit<TurnReport, 'run_id'> & { session_id: string }; reply: undefined }
}
/**
 * The turn that an agent step requests; the executor that looks up the rest reads it. Without
 * `agent` it refers to the service's own reviewer.
 */
export interface TurnWanted {
  readonly turn_id: string
  /** Id or name of the agent. */
  readonly agent?: string
  /** The principal that the run works for; absent: the service. */
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
/** The session and position of a run's turn, and the definition it runs with. */
export interface TurnDefined extends Pick<TurnOpening, 'seed' | 'definition'> {
  readonly turn_id: string
  readonly session_id: string
  readonly place: Place
}
/** One expense. Costs are whole thousandths of a credit. */
interface Usage {
  readonly usage_id: string
  readonly category: string
  readonly quantity: number
  readonly credit_cost_milli: number
  /** The cost that counts against budgets, when it differs from the cost that is paid. */
  readonly budget_cost_milli?: number
  /** The turn that caused the expense, and the model that it called. */
  readonly agent_turn_id?: string
  readonly provider?: string
  readonly model?: string
  /** The number of agent turns that the expense covers. */
  readonly agent_turns?: number
  readonly step_key?: string
  /**
   * The turn that caused the expense has ended, and its end is sent next: the run retains the
   * results that were paid for.
   */
  readonly ends?: boolean
}
/** A source event as a run receives it. */
export interface Delivered
  extends Pick<SourceEvent, 'event_type' | 'event' | 'meta'>,
    Partial<Pick<SourceEvent, 'source_id' | 'source_kind'>> {
  readonly source_event_id: string
  readonly wait_ids?: readonly string[]
}
/** The facts about an opened interaction that the run's timeline shows. */
export interface InteractionOpened {
  readonly interaction_id: string
  readonly protocol: InteractionKind
  readonly targets: readonly string[]
  readonly title: string
  readonly expires_at?: string
}
/**
 * The outcome of an interaction, and the name of the signal that carries it to a run in which no
 * step waits for it.
 */
export interface InteractionSettled {
  readonly interaction_id: string
  readonly signal_name: string
  readonly status: 'completed' | 'cancelled' | 'expired'
  readonly value?: unknown
  readonly responder?: { readonly user_id: string }
  readonly comment?: string
  readonly reason?: string
  /** Cancelled because targets or reviewers do not exist: a fault of the step that opened it. */
  readonly invalid?: true
}

/** Commands handled by an interaction, in addition to its rows. */
export type InteractionCommands = {
  /** From a step of a run in the same shard: open the interaction. */
  'interaction.open': { input: InteractionOpening; reply: undefined }
  /**
   * From a turn of a session in the same shard: open the interaction, and report every change to
   * the session.
   */
  'interaction.ask': {
    input: Omit<InteractionOpening, 'run_id' | 'signal_name' | 'step' | 'depth' | 'chain'> &
      Pick<Interaction, 'consumer'> & { depth?: number; withheld?: true; approval?: Approval }
    reply: undefined
  }
  /**
   * From the node that looked up its targets and reviewers: these do not exist. A settled
   * interaction ignores it.
   */
  'interaction.invalidate': { input: { unknown: readonly string[] }; reply: undefined }
  /** From the run that waits: it no longer needs a response. A settled interaction ignores it. */
  'interaction.withdraw': { input: { reason?: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/** The interaction that a step opens. The sender has already checked it. */
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
  /** The depth of its source events. */
  readonly depth: number
  readonly chain?: Chain
}

/** Commands handled by the registry entry of one worker instance. */
export type WorkerCommands = {
  /**
   * `conflict` when the instance is connected elsewhere. `session` and `token_hash` apply when a
   * new session starts.
   */
  'worker.register': {
    input: Omit<Registration, 'generation' | 'connected_at'> & { given_token_hash?: string }
    reply: {
      registration: Registration
      resumed: boolean
      draining: boolean
      replaced?: { session: string; gateway: string }
    }
  }
  /**
   * Heartbeat of the connection, at every heartbeat interval. `leases`: the number of jobs the
   * session holds; `takes`: the work it accepts from now on, when it has just changed.
   */
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
  /** The worker announces that it is draining. */
  'worker.drained': { input: { session: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
