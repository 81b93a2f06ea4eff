/** Events of runs, and the part of them that the timeline shows. */
import type { JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { RunRecord } from '../loops/record.ts'
import type { Patch } from '../patch.ts'
import type { Spec } from '../workflows/spec.ts'
import type { RunEventRecord, RunStep } from './schema.ts'

/** Event types in the timeline of a run; the others are its private bookkeeping. */
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
])

/** The source of a usage; absent in journals of earlier releases. */
export interface UsageSource {
  readonly usage_id: string
  readonly agent_turn_id?: string
  readonly provider?: string
  readonly model?: string
}

/**
 * An event of a run. `payload` is what the timeline shows. `run` and `row` are the fields of the
 * run record and of the step's record that the event sets (null removes a field). The actor and the
 * views apply the same patch, so no rule exists twice.
 */
export interface RunEvent extends Event {
  readonly type: RunEventType
  readonly step?: string
  readonly payload?: JsonObject
  readonly run?: Patch<RunRecord>
  readonly row?: Patch<RunStep>
  /** run.created only: the spec that the run executes. */
  readonly spec?: Spec
  /**
   * usage.recorded only: the data that the list of usage events shows in addition to the payload.
   */
  readonly usage?: UsageSource
  /** Private data of the engine; never shown. */
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

/**
 * The event wait that an event opens or closes; undefined when it does neither. An event that ends
 * a run also ends all its waits.
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
 * The timeline record of an event, as every client sees it.
 * @param cursor of the event.
 * @param created_at of its entry.
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
