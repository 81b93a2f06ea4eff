/** Formats events of runs and channels as lines of text. */

import type { ChannelEventRecord } from '../../protocol/channels/schema.ts'
import type { RunEventRecord } from '../../protocol/runs/schema.ts'
import { escapeControls } from '../plain.ts'
import { clipText } from './output.ts'

/** Payload fields to omit, because the line already contains them or only programs need them. */
const silent: ReadonlySet<string> = new Set([
  'step',
  'kind',
  'wait_id',
  'subject',
  'status',
  'run_id',
  'definition_id',
  'definition_version',
  'source',
  'job_id',
])
/**
 * Maximum number of characters of the details of a run's event. The limit for a channel's event is
 * 40 characters higher.
 */
const MAX_LINE_LENGTH = 110

/** Formats one event of a run: time, event type, step, and the details that fit. */
export function lineOf({ created_at, event_type, step_key, payload }: RunEventRecord): string {
  const details = Object.entries(payload ?? {})
    .filter(([name]) => !silent.has(name))
    .map(([name, value]) => `${name}=${shown(value)}`)
    .join(' ')
  return escapeControls(
    `${created_at.slice(11, 23)}  ${event_type.padEnd(16)}  ${(step_key ?? '').padEnd(12)}  ` +
      clipText(details, MAX_LINE_LENGTH),
  ).trimEnd()
}
/**
 * Formats one event of a channel: time, event type, and the message, member or channel that the
 * event is about. Long text is truncated.
 */
export function channelLine({ created_at, event_type, payload }: ChannelEventRecord): string {
  const { message, member, channel } = payload as {
    message?: { seq: number; sender_id: string; content: string }
    member?: { member_id: string }
    channel?: { name: string }
  }
  const about = message
    ? `${message.seq}  ${message.sender_id}  ${shown(message.content)}`
    : (member?.member_id ?? channel?.name ?? '')
  return escapeControls(
    `${created_at.slice(11, 23)}  ${event_type.padEnd(16)}  ${clipText(about, MAX_LINE_LENGTH + 40)}`,
  ).trimEnd()
}
const shown = (value: unknown): string =>
  typeof value === 'string'
    ? /^[\w.:/-]*$/.test(value)
      ? value
      : JSON.stringify(value)
    : JSON.stringify(value)
