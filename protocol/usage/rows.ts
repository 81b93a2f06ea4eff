/**
 * The row that lists the expenses in all projects of the organization as usage events. Each paid
 * answer of a model causes one event.
 */
import { type Static, Type } from 'typebox'
import { Closed, JsonObject, pageOf, paging, Timestamp, valuesOf } from '../common.ts'
import { query } from '../contract.ts'

/** One expense. Text fields that do not apply are empty. */
export const UsageEvent = Type.Object({
  id: Type.String(),
  project_id: Type.String(),
  api_key_id: Type.String(),
  period_start: Type.String({
    format: 'date-time',
    description: 'Start of the calendar month in UTC in which the event was recorded',
  }),
  counter: Type.String({ description: 'Name of the counted quantity, such as llm.tokens' }),
  raw_quantity: Type.Integer(),
  credit_cost: Type.Number(),
  credit_cost_milli: Type.Integer({
    description: 'Cost in thousandths of a credit; authoritative',
  }),
  credit_weight_version: Type.Integer(),
  zero_credits: Type.Boolean({ description: 'Whether the event is not billed' }),
  source_type: Type.String({
    description: 'Kind of the source that caused the usage, such as agent_turn',
  }),
  source_id: Type.String(),
  idempotency_key: Type.String({
    description: 'Key of the event; one event is recorded for each key',
  }),
  run_id: Type.String(),
  step_id: Type.String(),
  step_key: Type.String(),
  job_id: Type.String(),
  agent_turn_id: Type.String(),
  provider: Type.String(),
  model: Type.String(),
  model_class: Type.String(),
  metadata: JsonObject,
  occurred_at: Timestamp,
  recorded_at: Timestamp,
  created_at: Timestamp,
})
export type UsageEvent = Static<typeof UsageEvent>
/** The totals of all events that match the filters, not only of the events on the page. */
const totals = {
  total_raw_quantity: Type.Integer(),
  total_credit_cost: Type.Number(),
  total_credit_cost_milli: Type.Integer(),
}
const text = Type.Optional(Type.String({ minLength: 1, maxLength: 256 }))

export const usage = {
  'usage.list': query('GET /billing/usage-events', {
    summary:
      'Usage events, newest first; with recorded_after, oldest first from that time, and the ' +
      'following pages must repeat the parameter',
    tag: 'billing',
    permission: 'project.admin',
    query: Closed({
      period_start: Type.Optional(Timestamp),
      project_id: Type.Optional(valuesOf(Type.String({ minLength: 1, maxLength: 128 }))),
      recorded_after: Type.Optional(Timestamp),
      counter: text,
      source_type: text,
      source_id: text,
      run_id: text,
      job_id: text,
      api_key_id: text,
      ...paging,
    }),
    reply: Type.Object({ ...pageOf(UsageEvent).properties, ...totals }),
  }),
} as const
