/**
 * Stores and lists the exchanges with agents in channels, with their outcomes. A viewer who may
 * read a channel may read its exchanges.
 */
import type { ExchangeEvent, ExchangeRecord } from '../../../protocol/channels/exchange.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Refusal } from '../../../protocol/errors.ts'
import { equalityConditions } from '../../conditions.ts'
import { type Page, type Paging, readPage } from '../../page.ts'
import type { Store } from '../../store.ts'
import { type ChannelRow, missingChannel, readableChannel, type WithViewer } from './channels.ts'

type Of<T extends ExchangeEvent['type']> = Extract<ExchangeEvent, { type: T }>
interface ExchangeRow {
  readonly cursor: number
  readonly record: string
}

/**
 * Records the beginning of an exchange.
 * @param at Unix milliseconds.
 */
export function addExchange(
  store: Store,
  channel: ChannelRow,
  { exchange }: Of<'exchange.begun'>,
  cursor: number,
  at: number,
): void {
  const record: ExchangeRecord = {
    id: exchange.id,
    channel_id: channel.id,
    agent_id: exchange.agent_id,
    message_id: exchange.message_id,
    ...(exchange.root !== undefined && { reply_to: exchange.root }),
    status: 'running',
    turn_id: exchange.turn_id,
    created_at: timestamp(at),
  }
  store.run(
    'INSERT INTO channel_exchanges (cursor, id, channel, agent, status, record) VALUES (?, ?, ?, ?, ?, ?)',
    cursor,
    exchange.id,
    channel.n,
    exchange.agent_id,
    record.status,
    JSON.stringify(record),
  )
}

/**
 * Records the end of an exchange. An exchange whose beginning was trimmed from the journal is
 * ignored.
 * @param at Unix milliseconds.
 */
export function endExchange(
  store: Store,
  channel: ChannelRow,
  { id, status, error_type, error_message, session_id }: Of<'exchange.ended'>,
  at: number,
): void {
  const row = store.one<ExchangeRow>(
    'SELECT cursor, record FROM channel_exchanges WHERE id = ? AND channel = ?',
    id,
    channel.n,
  )
  if (!row) return
  const record: ExchangeRecord = {
    ...(JSON.parse(row.record) as ExchangeRecord),
    status,
    ...(session_id !== undefined && { session_id }),
    ...(error_type !== undefined && { error_type }),
    ...(error_message !== undefined && { error_message }),
    ended_at: timestamp(at),
  }
  store.run(
    'UPDATE channel_exchanges SET status = ?, record = ? WHERE cursor = ?',
    status,
    JSON.stringify(record),
    row.cursor,
  )
}

/**
 * Returns exchanges of a channel, newest first, or `not_found` if the viewer may not read the
 * channel.
 */
export function exchangeList(
  store: Store,
  project: number,
  input: Paging &
    WithViewer & { readonly id: string; readonly agent_id?: string; readonly status?: string },
): Page<ExchangeRecord> | Refusal {
  const channel = readableChannel(store, project, input)
  if (!channel) return missingChannel
  const { agent_id, status } = input
  return readPage<ExchangeRow, ExchangeRecord>(
    store,
    {
      select: 'SELECT cursor, record FROM channel_exchanges',
      conditions: equalityConditions({ channel: channel.n, agent: agent_id, status }),
      order: ['cursor'],
      direction: 'DESC',
    },
    input,
    ({ record }) => JSON.parse(record) as ExchangeRecord,
  )
}
