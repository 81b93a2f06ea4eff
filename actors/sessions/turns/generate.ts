/**
 * Generations: the model is shown the session's window, and its answer becomes the next row. The
 * row is opened when the job is queued, so that followers can see the output while it streams. The
 * committed content comes from the job's report alone.
 */

import type { JsonObject } from '../../../protocol/common.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { costOf } from '../../../protocol/loops/credits.ts'
import { extended } from '../../../protocol/rules/extended.ts'
import { isJsonObject } from '../../../protocol/rules/json-object.ts'
import { valueFaults } from '../../../protocol/rules/json-schema/validate.ts'
import type { TurnSpending } from '../../../protocol/sessions/commands.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { textOf, toolUses } from '../../../protocol/sessions/turns/blocks.ts'
import {
  type Answer,
  addUsage,
  conversationFault,
} from '../../../protocol/sessions/turns/request.ts'
import { change, count, type Draft, noteTurn, now, streamRow, turnOf, write } from '../draft.ts'
import type { SessionState, Turn } from '../state.ts'
import { enqueueJob, generationFields, queueOf } from './jobs.ts'
import { failureStep, type TurnStep } from './next.ts'
import { deliverNudges } from './nudges.ts'
import { openSegment } from './segment.ts'

/**
 * Returns the rows that the model is shown in a generation of a turn: those that were final when
 * the generation began, with the rows of the turn last. This changes the order if the turn was
 * queued. Its input can then precede the answer of an earlier turn in the window, but the model
 * must see it after that answer. For the same reason, the inputs of turns that are still queued are
 * omitted.
 */
export function generationRows(
  { window, turns }: Pick<SessionState, 'window' | 'turns'>,
  turn_id: string,
  through: number,
): TranscriptMessage[] {
  const isShown = ({ turn_id: of = '' }: TranscriptMessage): boolean =>
    of === turn_id || getOwn(turns, of)?.work.generations !== 0
  const rows = window.filter(
    (row) => row.entry_type === 'compaction' || ((row.sequence ?? 0) <= through && isShown(row)),
  )
  return [
    ...rows.filter((row) => row.turn_id !== turn_id),
    ...rows.filter((row) => row.turn_id === turn_id),
  ]
}

/**
 * Requests the next row of a turn from the model, or returns the `TurnStep` that ends the turn if
 * no further generation is possible.
 */
export function generate(draft: Draft, id: string): TurnStep {
  const turn = turnOf(draft, id)
  if (!turn) return undefined
  const { definition, generations, next_index } = turn.work
  const most = Math.min(definition.max_generations ?? limits.generations, limits.generations)
  if (generations >= most)
    return failureStep(
      'max_iterations',
      `The model was called ${most} times in this turn, which is the maximum.`,
    )
  if (definition.memory_fault !== undefined)
    return failureStep('memory_context_too_large', definition.memory_fault)
  const { sequence } = draft.state
  const fault = conversationFault(generationRows(draft.state, id, sequence))
  if (fault !== undefined) return failureStep('invalid_conversation_state', fault)
  const [message_id, job_id] = [draft.cause.mint('session_message'), draft.cause.mint('job')]
  noteTurn(draft, id, {
    generations: generations + 1,
    next_index: next_index + 1,
    generation: {
      job_id,
      message_id,
      turn_index: next_index,
      created_at: now(draft),
      through: sequence,
    },
  })
  streamRow(draft, {
    id: message_id,
    turn: { id, index: next_index },
    role: 'assistant',
    content: [],
  })
  enqueueJob(
    draft,
    queueOf(definition),
    extended(generationFields(definition, job_id, definition.route.model), {
      agent_turn_id: id,
      max_attempts: limits.attempts,
      max_losses: limits.attempts,
    }),
    turn,
  )
  return undefined
}

/** Resets the open row of a generation for the next attempt of its job. */
export function restartRow(draft: Draft, id: string): void {
  const open = turnOf(draft, id)?.work.generation
  if (open)
    streamRow(draft, {
      id: open.message_id,
      turn: { id, index: open.turn_index },
      role: 'assistant',
      content: [],
      created_at: open.created_at,
    })
}

/** Continues a turn with its model's answer. */
export function continueWithAnswer(draft: Draft, id: string, answer: Answer): TurnStep {
  const uses = toolUses(answer.content)
  if (uses.length === 0) return concluding(draft, id, answer)
  if (answer.stop_reason === 'max_tokens')
    return failureStep('max_tokens', 'The answer was truncated within a tool call.')
  return openSegment(draft, id, answer.content)
}

/**
 * Records the usage of an answer.
 * @returns the spending to report; undefined if the turn has no open generation.
 */
export function recordUsage(
  draft: Draft,
  id: string,
  { usage, model }: Answer,
): TurnSpending | undefined {
  const {
    work,
    record: { run_id, step_key = '' },
  } = turnOf(draft, id) as Turn
  const tokens =
    (usage.input_tokens ?? 0) +
    (usage.output_tokens ?? 0) +
    (usage.cache_read_input_tokens ?? 0) +
    (usage.cache_creation_input_tokens ?? 0)
  noteTurn(draft, id, { usage: addUsage(work.usage, usage) }, tokens)
  count(draft, {
    token_input_total: usage.input_tokens,
    token_output_total: usage.output_tokens,
    cache_read_input_total: usage.cache_read_input_tokens,
    cache_creation_input_total: usage.cache_creation_input_tokens,
  })
  change(draft, { model, model_provider: work.definition.route.provider })
  if (!work.generation) return undefined
  const { provider } = work.definition.route
  return {
    ...(run_id !== undefined && { run_id }),
    usage_id: work.generation.job_id,
    step_key,
    tokens,
    milli: work.definition.price ? costOf(usage, work.definition.price) : 0,
    agent_turn_id: id,
    ...(provider !== undefined && { provider }),
    model,
  }
}

/**
 * Handles an answer without tool calls: ends the turn, unless nudges have arrived in the meantime.
 */
function concluding(draft: Draft, id: string, { content }: Answer): TurnStep {
  const { generation, output_schema } = (turnOf(draft, id) as Turn).work
  if (!generation) return undefined
  noteTurn(draft, id, { generation: null })
  // An empty answer is not stored, because providers reject empty messages.
  if (content.some((block) => block.type !== 'text' || block.text !== '' || 'original' in block)) {
    write(draft, {
      id: generation.message_id,
      turn: { id, index: generation.turn_index },
      role: 'assistant',
      content,
      metadata: { response_message_index: generation.turn_index },
      created_at: generation.created_at,
    })
  }
  if (deliverNudges(draft, id)) return generate(draft, id)
  if (!output_schema) return { end: { status: 'completed' } }
  const output = parsed(textOf(content))
  if (!output || valueFaults(output_schema, output, '').length > 0)
    return failureStep(
      'output_schema_unsatisfied',
      'The turn ended without an output that matches its schema.',
    )
  noteTurn(draft, id, { output, output_source: 'text' })
  return { end: { status: 'completed' } }
}
/**
 * Parses a text that is a JSON object, bare or in a code fence. Returns undefined for any other
 * text.
 */
function parsed(text: string): JsonObject | undefined {
  const inner = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text)?.[1] ?? text
  try {
    const value: unknown = JSON.parse(inner)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
