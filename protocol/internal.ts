/**
 * Internal commands of queues, runs and interactions: commands that clients cannot send. The
 * internal commands of other kinds are in the folder of their resource; `queries/commands.ts` lists
 * all of them.
 */

import type { Definition } from './access/directory.ts'
import type { ActorOf, InvocationFacts } from './actions/invocation.ts'
import type { ArtifactQueueCommands, ArtifactRunCommands } from './artifacts/commands.ts'
import type { JsonObject } from './common.ts'
import type { EnvironmentQueueCommands } from './environments/commands.ts'
import type { Chain, SourceEvent } from './events/sources.ts'
import type { Approval } from './interactions/events.ts'
import type { Interaction, InteractionKind } from './interactions/schema.ts'
import type { Job, JobHeader } from './jobs/rows.ts'
import type { RunOpening } from './loops/events.ts'
import type { QueueReason } from './loops/run.ts'
import type { TurnDefined } from './runs/turns.ts'
import type { TurnReport } from './sessions/commands.ts'
import type { AppContext } from './sessions/turns/context.ts'

/**
 * Internal commands of a queue. A repeated command changes nothing, and neither does a command
 * about an unknown job.
 */
export type QueueCommands = ArtifactQueueCommands &
  EnvironmentQueueCommands & {
    /** Enqueues a job. Sent by the owner of the job, in the commit that requests it. */
    'queue.enqueue': { input: { job: JobHeader; record: Job }; reply: undefined }
    /** Cancels jobs. Waiting jobs end immediately. Workers are asked to stop leased jobs. */
    'queue.cancel': { input: { job_ids: readonly string[]; reason?: string }; reply: undefined }
    /** Assigns jobs to the workers of a gateway, or to an executor, in response to an offer. */
    'queue.claim': {
      input: { gateway: string; takes: readonly Take[] }
      reply: { claimed: readonly string[] }
    }
    /**
     * Reports the outcome of a job. Sent by the gateway of the worker, or by an executor. A report
     * that would end the job is accepted even after its lease was lost, unless the job has a new
     * lease.
     */
    'queue.report': {
      input: JobReport
      reply: { outcome: 'accepted' | 'duplicate' | 'lease_lost' }
    }
    /**
     * Extends the lease of a job. Sent by the gateway of the worker, or by an executor. `alive` is
     * false when the lease is lost. `cancel` is present when the job must stop.
     */
    'queue.heartbeat': {
      input: { job_id: string; lease_token: string; gateway: string }
      reply: { alive: boolean; cancel?: { reason?: string; requested_at: string } }
    }
    /**
     * Requeues a job that was not delivered to its worker. The claim does not count as an attempt.
     * Changes nothing if a heartbeat for the job has arrived, which shows that the worker has the
     * job.
     */
    'queue.release': { input: { job_id: string; lease_token: string }; reply: undefined }
    /**
     * Ends leases of a worker session that has ended permanently. Sent by a gateway, or by the
     * environment of the session.
     */
    'queue.lose': { input: { session: string; job_ids: readonly string[] }; reply: undefined }
    /**
     * Ends a lease whose last heartbeat is older than the duration of a lease. Sent by a gateway.
     * Affects only leases for which the queue has no record of heartbeats, because the owner of its
     * shard has changed.
     */
    'queue.expire': { input: { session: string; job_id: string }; reply: undefined }
    wake: { input: unknown; reply: undefined }
  }
/**
 * The assignment of a job to a worker session or an executor. `losses`: `max_losses` of the job is
 * raised to this number, because the work can be repeated safely; ignored for `strict` jobs.
 * `served`: the service itself performs the work.
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
  /** The application context that an HTTP action returned for the session whose turn called it. */
  readonly context?: readonly AppContext[]
  readonly error_type?: string
  readonly error_message?: string
  /** A retry cannot succeed, so the job fails even if attempts remain. */
  readonly final?: true
  /** Milliseconds until the next attempt, if there is one. */
  readonly retry_in?: number
  /** The facts that the executor contributes to the record of the call. */
  readonly invocation?: InvocationFacts
}

/** The data that a step of a run uses to start a child run. */
export interface ChildStart {
  readonly parent: { readonly run_id: string; readonly step: string; readonly waits: boolean }
  /** The depth of the child run: one more than the depth of the parent. */
  readonly depth: number
  /**
   * The depth of the parent in its causal chain. The child run has the same position in the chain.
   */
  readonly cause_depth?: number
  /** The causal chain of the source events of the parent. The child run has the same chain. */
  readonly chain?: Chain
  readonly definition: Definition
  readonly definitions: Readonly<Record<string, Definition>>
  readonly input: JsonObject
  readonly config: JsonObject
  readonly queue: string
  readonly priority: number
  readonly fairness_key?: string
  readonly actor?: ActorOf
  /** Id of the principal that started the parent. */
  readonly initiated_by?: string
  /** `source` from the `meta` of the parent. */
  readonly source?: JsonObject
}

/**
 * Internal commands of a run. The commands `job.*` are sent by the queue of the same shard, in the
 * commit that changes the job.
 */
export type RunCommands = ArtifactRunCommands & {
  /**
   * Reports that an environment was created whose use ends with the run. Sent by the environment,
   * unless a job of the run has created it. The run then reports its end to the environment. If the
   * run has already ended, it does so at once.
   */
  'run.environment': { input: { environment_id: string }; reply: undefined }
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
  /**
   * Reports that an attempt has failed or lost its lease, and that the job waits for its next
   * attempt.
   */
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
  /**
   * Reports that a client opened an interaction for this run. Sent by the interaction, in the same
   * commit.
   */
  'interaction.opened': { input: InteractionOpened; reply: undefined }
  /** Reports a response to an interaction of this run. Sent by the interaction. */
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
  /**
   * Reports that an interaction of this run has ended. Sent once by the interaction, unless this
   * run withdrew it.
   */
  'interaction.settled': { input: InteractionSettled; reply: undefined }
  /** Creates this run. Sent by a step of the parent run. */
  'child.start': { input: ChildStart; reply: undefined }
  /** Cancels this run. Sent by the parent run when the parent no longer needs this run. */
  'child.cancel': { input: { reason: string }; reply: undefined }
  /** Reports to the parent run that a child run has ended. Sent by the child run. */
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
   * Reports that a wait is registered, so matching events will arrive. Sent by the `events` actor.
   */
  'event.watched': { input: { wait_id: string }; reply: undefined }
  /**
   * Delivers an event that matches waits. Sent by the `events` actor. Without `wait_ids`, the run
   * itself determines which of its waits the event matches. A repeat changes nothing.
   */
  'event.deliver': { input: Delivered; reply: undefined }
  wake: { input: unknown; reply: undefined }
  /** Creates the run. Sent by its loop. */
  'run.open': { input: RunOpening; reply: undefined }
  /**
   * Starts or continues a waiting run. Sent by its loop. `later`: the run starts or continues in a
   * separate commit.
   */
  'run.begin': { input: { later?: true }; reply: undefined }
  /** Reports the reason why the run must wait. Sent by its loop. */
  'run.hold': { input: { queue_reason: QueueReason }; reply: undefined }
  /** Cancels the run, because another run replaces it or its loop is deleted. Sent by the loop. */
  'run.displace': { input: { deleted?: true }; reply: undefined }
  /**
   * Reports that the daily budget of the loop is spent. Sent by the loop. Amounts are in credits.
   * `until`: the time in Unix milliseconds at which the budget is available again; a time that is
   * not in the future releases the run. `continues`: an agent of the run continues the turn that
   * spent the budget, so the run ends now.
   */
  'run.halt': {
    input: { used: number; limit: number; until?: number; continues?: true }
    reply: undefined
  }
  /**
   * Ends a failed run after its loop has recorded the failure. Sent by the loop. `paused`: the
   * failure reached the threshold at which the loop is paused.
   */
  'run.end': {
    input: { paused?: { consecutive_failures: number; threshold: number } }
    reply: undefined
  }
  /**
   * Reports which run a loop started for a step of this run, or why it started none. Sent by that
   * loop.
   */
  'child.answered': {
    input: {
      wait_id: string
      run_id?: string
      fault?: { readonly error_type: string; readonly error: string }
    }
    reply: undefined
  }
  /**
   * Records usage of the run, such as its cost. Sent by the actor that incurred it. Each `usage_id`
   * counts once.
   */
  'usage.record': { input: Usage; reply: undefined }
  /** Delivers the definition of a turn of this run. Sent by the executor that looked it up. */
  'turn.defined': { input: TurnDefined; reply: undefined }
  /**
   * Reports that a turn has ended or cannot start. Sent once by the session. A repeat changes
   * nothing.
   */
  'turn.settled': { input: Omit<TurnReport, 'run_id'> & { session_id: string }; reply: undefined }
}
/** One expense. Costs are in whole thousandths of a credit. */
interface Usage {
  readonly usage_id: string
  readonly category: string
  readonly quantity: number
  readonly credit_cost_milli: number
  /** The cost that counts against budgets, if it differs from `credit_cost_milli`. */
  readonly budget_cost_milli?: number
  /** Id of the turn that caused the expense. */
  readonly agent_turn_id?: string
  readonly provider?: string
  readonly model?: string
  /** The number of agent turns that the expense covers. */
  readonly agent_turns?: number
  readonly step_key?: string
  /**
   * The turn has ended, and the next command reports its end. Even if the run is over budget, it
   * stores the results of the turn, because they were paid for.
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
/** The data that the timeline of the run shows about an opened interaction. */
export interface InteractionOpened {
  readonly interaction_id: string
  readonly protocol: InteractionKind
  readonly targets: readonly string[]
  readonly title: string
  readonly expires_at?: string
}
/**
 * The outcome of an interaction. If no step of the run waits for the interaction itself, the run
 * receives the outcome as the signal `signal_name`.
 */
export interface InteractionSettled {
  readonly interaction_id: string
  readonly signal_name: string
  readonly status: 'completed' | 'cancelled' | 'expired'
  readonly value?: unknown
  readonly responder?: { readonly user_id: string }
  readonly comment?: string
  readonly reason?: string
  /** Targets or reviewers do not exist: a fault of the step that opened the interaction. */
  readonly invalid?: true
}

/** Internal commands of an interaction. */
export type InteractionCommands = {
  /** Opens the interaction. Sent by a step of a run in the same shard. */
  'interaction.open': { input: InteractionOpening; reply: undefined }
  /**
   * Opens the interaction, which then reports every change to the session. Sent by a turn of a
   * session in the same shard.
   */
  'interaction.ask': {
    input: Omit<InteractionOpening, 'run_id' | 'signal_name' | 'step' | 'depth' | 'chain'> &
      Pick<Interaction, 'consumer'> & { depth?: number; withheld?: true; approval?: Approval }
    reply: undefined
  }
  /**
   * Cancels the interaction because some of its targets or reviewers do not exist (`unknown`). Sent
   * by the node that looked up the targets and reviewers. Ignored after the interaction has ended.
   */
  'interaction.invalidate': { input: { unknown: readonly string[] }; reply: undefined }
  /**
   * Cancels the interaction. Sent by its run or session, which no longer needs a response. Ignored
   * after the interaction has ended.
   */
  'interaction.withdraw': { input: { reason?: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
/** The interaction that a step of a run opens. The sender has already validated the data. */
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
  /** The `depth` of the source events of the interaction. */
  readonly depth: number
  readonly chain?: Chain
}
