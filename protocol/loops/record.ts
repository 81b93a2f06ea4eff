/**
 * The record of a run as the engine and the views store it. A run of a loop has additional fields.
 * Clients receive one of two shapes, depending on whether the run belongs to a loop. Only
 * `shownRun` produces these shapes.
 */
import type { Run, WorkflowRun } from '../runs/schema.ts'
import type { LoopRun } from './run.ts'

type OfLoop = 'loop_id' | 'loop_version_id' | 'loop_version'
type Besides =
  | 'loop_name'
  | 'attempt'
  | 'queue_reason'
  | 'plan_concurrency_limit'
  | 'stop_reason'
  | 'credit_budget'
  | 'credit_spent'
  | 'max_agent_turns'
  | 'agent_turns_used'
  | 'meta'
  | 'config'
  | 'source'
  | 'parent_loop_id'
  | 'parent_step_key'
  | 'wake_at'
  | 'wall_clock_deadline_at'
/** The stored record of a run. For a run of a loop, its `event` is stored as `input`. */
export interface RunRecord extends WorkflowRun, Partial<Pick<LoopRun, OfLoop | Besides>> {}

/** Whether a run belongs to a loop. */
export const isOfLoop = (record: RunRecord): record is RunRecord & Pick<LoopRun, OfLoop> =>
  record.loop_id !== undefined

/** Returns the run as clients receive it. */
export function shownRun(record: RunRecord): Run {
  if (!isOfLoop(record)) {
    if (
      record.stop_reason === undefined &&
      record.credit_budget === undefined &&
      record.credit_spent === undefined &&
      record.max_agent_turns === undefined &&
      record.agent_turns_used === undefined
    )
      return record
    const {
      stop_reason: _,
      credit_budget: _1,
      credit_spent: _2,
      max_agent_turns: _3,
      agent_turns_used: _4,
      ...run
    } = record
    return run
  }
  const {
    definition_id: _,
    definition_version: _1,
    cancel_requested: _2,
    cancel_requested_at: _3,
    queue: _4,
    initiated_by: _5,
    workflow_type: _6,
    external_id: _7,
    input,
    ...run
  } = record
  return { ...run, ...(input !== undefined && { event: input }) }
}
