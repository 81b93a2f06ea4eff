/**
 * Reports to the runs and channels that own turns. The end of each turn is reported once, as an
 * event in the commit that ends the turn. Runs also receive the usage of each answer of the model.
 */

import type { ExchangeOutcome } from '../../../protocol/channels/exchange.ts'
import { mentionsOf } from '../../../protocol/channels/mentions.ts'
import { limits as channels } from '../../../protocol/channels/schema.ts'
import type { Address } from '../../../protocol/entry.ts'
import type { RunCommands } from '../../../protocol/internal.ts'
import type { Ending, SessionBookkeeping } from '../../../protocol/sessions/bookkeeping.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import { textOf } from '../../../protocol/sessions/turns/blocks.ts'
import type { Effect } from '../../actor.ts'
import { type Draft, emit } from '../draft.ts'
import type { Turn } from '../state.ts'

type Of<T extends SessionBookkeeping['type']> = Extract<SessionBookkeeping, { type: T }>

/** Reports the end of a turn to the run that requested the turn, if any. */
export function reportTurn(
  draft: Draft,
  { record: { id: turn_id, run_id }, work: { output } }: Turn,
  { status, error_type, error_message, stalled }: Ending,
): void {
  if (run_id === undefined) return
  const said = draft.state.window.findLast(
    (row) => row.turn_id === turn_id && row.role === 'assistant',
  )
  const gave =
    status !== 'completed' ? {} : output ? { output } : { text: said ? textOf(said.content) : '' }
  emit(draft, {
    type: 'turn.reported',
    report: {
      run_id,
      turn_id,
      status,
      ...gave,
      ...(error_type !== undefined && { error_type }),
      ...(error_message !== undefined && { error: error_message }),
      ...(stalled && { stalled }),
    },
  })
}

const toRun = <N extends keyof RunCommands>(
  id: string,
  name: N,
  input: RunCommands[N]['input'],
): Effect[] => [{ tell: { to: { kind: 'run', id }, name, input } }]
/** Sends the end of a turn to its run. */
export const tellEnd = (
  { report: { run_id, ...rest } }: Of<'turn.reported'>,
  { id: session_id }: Address,
): Effect[] => toRun(run_id, 'turn.settled', { ...rest, session_id })
/** Sends the usage of an answer to the run that requested the turn, if any. */
export const tellSpending = ({
  spending: { run_id, usage_id, step_key, tokens, milli, agent_turn_id, provider, model, ends },
}: Of<'turn.spent'>): Effect[] =>
  run_id === undefined
    ? []
    : toRun(run_id, 'usage.record', {
        usage_id,
        category: 'llm.tokens',
        quantity: tokens,
        credit_cost_milli: milli,
        step_key,
        ...(agent_turn_id !== undefined && { agent_turn_id }),
        ...(provider !== undefined && { provider }),
        ...(model !== undefined && { model }),
        ...(ends && { ends }),
      })

/**
 * Returns the agent's last text in a turn, truncated to the maximum length of a channel message.
 * Returns undefined if there is no text.
 */
function lastWords({ state }: Draft, turn_id: string): string | undefined {
  const text = textOf(
    state.window.filter((row) => row.turn_id === turn_id && row.role === 'assistant').at(-1)
      ?.content ?? [],
  ).trim()
  return text === ''
    ? undefined
    : text.length <= channels.content
      ? text
      : `${text.slice(0, channels.content - 1).toWellFormed()}…`
}
/** Emits the outcome of an ending turn, if a channel owns the turn. */
export function reportExchange(draft: Draft, { record, work: { exchange, ending } }: Turn): void {
  const { id: turn_id, session_id, channel_exchange_id: exchange_id } = record
  if (!exchange || !ending || exchange_id === undefined) return
  const { status, error_type, error_message } = ending
  const text = status === 'completed' ? lastWords(draft, turn_id) : undefined
  const mentioned = text === undefined ? [] : mentionsOf(text, exchange.names)
  emit(draft, {
    type: 'exchange.answered',
    channel_id: exchange.id,
    exchange_id,
    session_id,
    turn_id,
    status,
    ...(text !== undefined && { text }),
    ...(mentioned.length > 0 && { mentioned }),
    ...(error_type !== undefined && { error_type }),
    ...(error_message !== undefined && { error_message }),
  })
}
/** Sends the outcome to the channel, which may be in another shard. */
export const tellChannel = ({
  type: _,
  channel_id,
  ...outcome
}: Extract<SessionEvent, { type: 'exchange.answered' }>): readonly Effect[] => [
  {
    tell: {
      to: { kind: 'channel', id: channel_id },
      name: 'exchange.settled',
      input: outcome satisfies ExchangeOutcome,
    },
  },
]
