/** Events of runs, and their form in the timeline. */
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { RunRecord } from '../loops/record.ts'
import type { Patch } from '../patch.ts'
import type { Spec } from '../workflows/spec.ts'
import type { RunEventRecord, RunStep } from './schema.ts'

/** The event types in the timeline of a run. */
export const timelineTypes: ReadonlySet<string> = new Set([
  'run.started',
  'run.suspended',
  'run.resumed',
  'run.completed',
  'run.failed',
  'run.cancelled',
  'step.started',
  'step.suspended',
  'step.resumed',
  'step.completed',
  'step.failed',
  'step.retried',
  'step.skipped',
  'wait.opened',
  'wait.resumed',
  'wait.timed_out',
  'action.called',
  'action.completed',
  'action.failed',
  'action.retried',
  'limit.reached',
  'interaction.requested',
  'interaction.responded',
  'check.passed',
  'check.failed',
  'branch.completed',
  'branch.failed',
  'usage.recorded',
  'run.budget_exceeded',
  'loop.auto_paused',
  'turn.opened',
  'run.progress_stalled',
  'artifact.created',
])

/** The source of an expense; absent in events of earlier releases. */
export interface UsageSource {
  readonly usage_id: string
  readonly agent_turn_id?: string
  readonly provider?: string
  readonly model?: string
}

/**
 * An event of a run. `payload` is the data that the timeline shows. `run` and `row` are patches of
 * the run record and of the step record. The actor and the views apply the same patch, so no rule
 * is duplicated.
 */
export interface RunEvent extends Event {
  readonly type: RunEventType
  readonly step?: string
  readonly payload?: JsonObject
  readonly run?: Patch<RunRecord>
  readonly row?: Patch<RunStep>
  /**
   * Only in `run.resumed`: prefixes of step keys. The records of these steps are removed, because the
   * run begins their branches and items again, which may be others.
   */
  readonly drops?: readonly string[]
  /** Only in `run.created`: the spec that the run executes. */
  readonly spec?: Spec
  /**
   * Only in `usage.recorded`: the data that the list of usage events shows in addition to the
   * payload.
   */
  readonly usage?: UsageSource
  /** Data that only the engine uses. It is never shown to clients. */
  readonly private?: JsonObject
}
export type RunEventType =
  | 'run.created'
  | 'run.started'
  | 'run.suspended'
  | 'run.resumed'
  | 'run.completed'
  | 'run.failed'
  | 'run.cancelled'
  | 'run.cancel_requested'
  | 'step.started'
  | 'step.suspended'
  | 'step.resumed'
  | 'step.completed'
  | 'step.failed'
  | 'step.retried'
  | 'step.skipped'
  | 'step.cancelled'
  | 'wait.opened'
  | 'wait.resumed'
  | 'wait.timed_out'
  | 'wait.closed'
  | 'action.called'
  | 'action.completed'
  | 'action.failed'
  | 'action.retried'
  | 'signal.stored'
  | 'limit.reached'
  | 'interaction.requested'
  | 'interaction.responded'
  | 'interaction.settled'
  | 'check.passed'
  | 'check.failed'
  | 'wait.asked'
  | 'event.delivered'
  | 'cleanup.begun'
  | 'run.paused'
  | 'run.held'
  | 'usage.recorded'
  | 'run.budget_exceeded'
  | 'loop.auto_paused'
  | 'loop.asked'
  | 'branches.begun'
  | 'branch.started'
  | 'branch.completed'
  | 'branch.failed'
  | 'branch.cancelled'
  | 'turn.asked'
  | 'turn.opened'
  | 'turn.stopped'
  | 'run.progress_stalled'
  | 'artifact.created'
  /** An environment was created whose use ends with the run. The timeline does not show it. */
  | 'environment.bound'
  /** An artifact was published after the end of the run. The timeline does not show it. */
  | 'artifact.published'

/**
 * Returns the wait for a source event that this run event opens or closes; undefined if it does
 * neither. An event that ends the run also ends all of its waits, but this function does not report
 * them.
 */
export function waitChange({ type, payload = {} }: RunEvent):
  | {
      readonly opens: {
        readonly wait_id: string
        readonly event_type: string
        readonly source_id?: string
      }
    }
  | { readonly closes: string }
  | undefined {
  const { wait_id, wait_kind, event_type, source_id } = payload
  if (wait_kind !== 'event' || typeof wait_id !== 'string') return undefined
  if (type === 'wait.opened')
    return {
      opens: {
        wait_id,
        event_type: String(event_type),
        ...(typeof source_id === 'string' && { source_id }),
      },
    }
  return type === 'wait.resumed' ||
    type === 'wait.timed_out' ||
    type === 'wait.closed' ||
    type === 'step.cancelled'
    ? { closes: wait_id }
    : undefined
}

/**
 * Returns the timeline record of an event, as every client sees it.
 * @param cursor cursor of the event.
 * @param created_at time of the entry of the event, as RFC 3339.
 */
export function timelineRecord(
  runId: string,
  cursor: number,
  created_at: string,
  event: RunEvent,
): RunEventRecord {
  return {
    id: `${runId}:evt:${cursor}`,
    run_id: runId,
    sequence: cursor,
    event_type: event.type,
    ...(event.step !== undefined && { step_id: `${runId}:${event.step}`, step_key: event.step }),
    ...(event.payload && { payload: event.payload }),
    created_at,
  }
}
