/**
 * Compaction: a model summarizes the older rows, and the summary replaces them in the window.
 * Nothing is deleted: the rows stay readable. One pass runs at a time. A pass ends once, with a
 * summary or a failure. Its deadline is 30 s after its start.
 */

import type { Pass } from '../../../protocol/sessions/events.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import { textOf } from '../../../protocol/sessions/turns/blocks.ts'
import type { TurnDefinition } from '../../../protocol/sessions/turns/definition.ts'
import {
  type GenerationSpec,
  generationSpec,
  messagesOf,
  readAnswer,
  tokensOf,
} from '../../../protocol/sessions/turns/request.ts'
import { change, count, type Draft, emit, tellQueue, write } from '../draft.ts'
import { withFiles } from '../files.ts'
import type { SessionState } from '../state.ts'
import { enqueueJob, generationFields, queueOf, type Settled } from '../turns/jobs.ts'
import { endOf } from './shorten.ts'
import { isNearlyFull } from './window.ts'

const INSTRUCTIONS =
  'You maintain the memory of a long conversation. Summarize it so far for the participant ' +
  'who continues it: goals, decisions, facts, names, numbers, open questions, and tool results ' +
  'that still matter. Write plain text, as short as possible.'

/**
 * Begins a pass if one is needed.
 * @param trigger `manual` ignores the compaction strategy and the thresholds.
 * @returns whether a pass began. No pass begins while another is in progress, without a definition,
 * or if there is nothing new to summarize. An automatic pass also requires that the strategy is
 * `auto` and that a threshold has been reached.
 */
export function beginCompaction(
  draft: Draft,
  trigger: Pass['trigger'],
  definition: TurnDefinition | undefined = draft.state.definition,
): boolean {
  const { state } = draft
  if (!definition || state.compacting) return false
  const { strategy, threshold_tokens, summary_model } = definition.compaction
  const estimated_tokens = Math.max(state.tokens, tokensOf(state.size))
  if (
    trigger !== 'manual' &&
    (strategy !== 'auto' || (estimated_tokens < threshold_tokens && !isNearlyFull(state)))
  )
    return false
  const rows = coverable(state)
  const [first, last] = [rows[0], rows.at(-1)]
  if (!first || !last) return false
  const pass: Pass = {
    trigger,
    from_sequence: first.sequence ?? 0,
    through_sequence: last.sequence ?? 0,
    message_count: rows.length,
    estimated_tokens,
    summary_model: summary_model ?? definition.route.model,
    ...(strategy === 'auto' && { threshold_tokens }),
  }
  const job_id = draft.cause.mint('job')
  emit(draft, {
    type: 'compaction.started',
    at: draft.cause.at,
    deadline: draft.cause.at + limits.compaction,
    job_id,
    pass,
    definition,
  })
  enqueueJob(
    draft,
    queueOf(definition),
    {
      ...generationFields(definition, job_id, pass.summary_model),
      max_attempts: 1,
      max_losses: 1,
    },
    undefined,
  )
  return true
}
/**
 * Returns the rows that the next summary covers in addition to the last one: those that are older
 * than all turns that have not ended.
 */
function coverable({ window, turns }: SessionState): SessionState['window'] {
  const before = Math.min(...Object.values(turns).map(({ work }) => work.before))
  return withoutOpenCalls(
    window.filter(
      ({ sequence, entry_type }) => entry_type !== 'compaction' && (sequence ?? 0) <= before,
    ),
  )
}
/**
 * Removes the newest tool uses, with the rows after them, if some of their results have not been
 * appended yet. A summary would otherwise separate the results from their tool uses.
 */
function withoutOpenCalls(rows: SessionState['window']): SessionState['window'] {
  const open = new Set<string>()
  let begin = 0
  for (const [index, { role, content }] of rows.entries()) {
    if (role === 'assistant' && rows[index - 1]?.role !== 'assistant') open.clear()
    for (const block of content) {
      if (block.type === 'tool_use') {
        if (open.size === 0) begin = index
        open.add(block.id)
      } else if (block.type === 'tool_result') open.delete(block.tool_use_id)
    }
  }
  return open.size > 0 ? rows.slice(0, begin) : rows
}

/**
 * Returns the request for the summary, as the model receives it. Returns undefined if no compaction
 * is in progress.
 */
export function summarySpec(state: SessionState, brand: string): GenerationSpec | undefined {
  const { compacting, window } = state
  if (!compacting) return undefined
  const { pass, definition } = compacting
  const rows = window.filter(
    ({ sequence, entry_type }) =>
      entry_type === 'compaction' || (sequence ?? 0) <= pass.through_sequence,
  )
  const messages = messagesOf([
    ...withFiles(state, rows),
    {
      ...(rows[0] as (typeof rows)[number]),
      entry_type: 'message',
      role: 'user',
      content: [{ type: 'text', text: 'Summarize the conversation above.' }],
    },
  ])
  return generationSpec(
    {
      ...definition,
      instructions: INSTRUCTIONS,
      route: { ...definition.route, model: pass.summary_model },
    },
    brand,
    messages,
    [],
  )
}

/** Ends the pass with the outcome of its job. */
export function endCompaction(draft: Draft, { outcome, result, error_message }: Settled): void {
  const { compacting } = draft.state
  if (!compacting) return
  const { pass } = compacting
  if (outcome !== 'completed')
    return void failPass(draft, 'summarizer_error', error_message ?? 'The summary was not created.')
  const answer = readAnswer(result)
  if (typeof answer === 'string') return void failPass(draft, 'summarizer_error', answer)
  const { usage } = answer
  count(draft, {
    token_input_total: usage.input_tokens,
    token_output_total: usage.output_tokens,
    cache_read_input_total: usage.cache_read_input_tokens,
    cache_creation_input_total: usage.cache_creation_input_tokens,
  })
  // The model summarizes the rows in order, so a summary that is too long is cut at its beginning,
  // which covers the oldest rows.
  const text = endOf(textOf(answer.content).trim(), limits.summary)
  if (text === '') return void failPass(draft, 'empty_summary', 'The summary was empty.')
  const { last_message_at, expires_at } = draft.state.record
  const row = write(draft, {
    role: 'compaction',
    content: [{ type: 'text', text }],
    covers: pass.through_sequence,
  })
  // A summary does not count as activity in the session.
  change(draft, { ...(last_message_at && { last_message_at }), ...(expires_at && { expires_at }) })
  emit(draft, {
    type: 'compaction.created',
    message_id: row.id,
    sequence: row.sequence ?? 0,
    covers_through_sequence: pass.through_sequence,
    pass,
  })
}
function failPass(draft: Draft, error_type: string, error_message: string): void {
  const pass = draft.state.compacting?.pass
  if (!pass) return
  emit(draft, { type: 'compaction.failed', error_type, error_message, pass })
  change(draft, { status: draft.state.record.status })
}
/** Fails the compaction pass if its deadline has been reached. */
export function expirePass(draft: Draft): void {
  const { compacting } = draft.state
  if (!compacting || compacting.deadline > draft.cause.at) return
  tellQueue(draft, queueOf(compacting.definition), 'queue.cancel', {
    job_ids: [compacting.job_id],
    reason: 'timeout',
  })
  failPass(draft, 'timeout', 'The summary was not created in time.')
}
