/**
 * The schema of a run of a loop as clients see it. Runs of workflows have a separate schema.
 * `record.ts` defines the stored form of both.
 */
import { type Static, Type } from 'typebox'
import { JsonObject, Timestamp } from '../common.ts'

export const runStatuses = [
  'queued',
  'running',
  'suspended',
  'completed',
  'failed',
  'cancelled',
] as const

const queueReasons = ['plan_concurrency', 'loop_policy', 'trigger_concurrency'] as const
export type QueueReason = (typeof queueReasons)[number]
const stopReasons = [
  'completed',
  'step_failed',
  'check_failed',
  'gate_rejected',
  'budget_exceeded',
  'turn_limit_reached',
  'wall_clock_exceeded',
  'step_limit_reached',
  'progress_stalled',
  'cancelled',
  'replaced',
] as const
export type StopReason = (typeof stopReasons)[number]
export const RunSource = Type.Object({
  type: Type.Optional(Type.Enum(['api', 'trigger', 'manual', 'signal'])),
  id: Type.Optional(Type.String()),
  label: Type.Optional(Type.String()),
  trigger_id: Type.Optional(Type.String()),
})
export type RunSource = Static<typeof RunSource>

/** Fields of a run of a loop that the schema of a run of a workflow does not contain. */
const ofLoops = {
  loop_name: Type.Optional(Type.String()),
  attempt: Type.Optional(Type.Integer({ minimum: 1 })),
  queue_reason: Type.Optional(Type.Enum([...queueReasons])),
  plan_concurrency_limit: Type.Optional(Type.Integer()),
  stop_reason: Type.Optional(Type.Enum([...stopReasons])),
  credit_budget: Type.Optional(Type.Number()),
  credit_spent: Type.Optional(Type.Number()),
  max_agent_turns: Type.Optional(Type.Integer()),
  agent_turns_used: Type.Optional(Type.Integer()),
  meta: Type.Optional(JsonObject),
  config: Type.Optional(JsonObject),
  source: Type.Optional(RunSource),
  parent_loop_id: Type.Optional(Type.String()),
  parent_step_key: Type.Optional(Type.String()),
  wake_at: Type.Optional(Timestamp),
  wall_clock_deadline_at: Type.Optional(Timestamp),
}
export const LoopRun = Type.Object({
  id: Type.String(),
  loop_id: Type.String(),
  loop_version_id: Type.String(),
  loop_version: Type.Integer({ minimum: 1 }),
  status: Type.Enum([...runStatuses]),
  name: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  ...ofLoops,
  event: Type.Optional(JsonObject),
  result: Type.Optional(JsonObject),
  parent_run_id: Type.Optional(Type.String()),
  error_message: Type.Optional(Type.String()),
  error_type: Type.Optional(Type.String()),
  created_at: Timestamp,
  updated_at: Timestamp,
  started_at: Type.Optional(Timestamp),
  completed_at: Type.Optional(Timestamp),
})
export type LoopRun = Static<typeof LoopRun>
