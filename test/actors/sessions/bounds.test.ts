/**
 * Rows whose parts have the maximum length and consist of characters that take the most bytes on a
 * line of a stream. Invariant: no line reaches 8 MiB, in either version of the stream.
 */
import t from 'tap'
import { beginningOf, endOf } from '../../../actors/sessions/history/shorten.ts'
import { type Change, frameText } from '../../../gateway/sessions/transcript/change.ts'
import { toOlderEvent } from '../../../gateway/sessions/transcript/notes.ts'
import { numberedDialect } from '../../../gateway/sessions/transcript/v1.ts'
import { transcriptDialect } from '../../../gateway/sessions/transcript/v2.ts'
import { isFrame, rowIn, type SessionEvent } from '../../../protocol/sessions/events.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { sizes } from '../../../protocol/workers/socket.ts'
import { begun, definition, message, Story, say, tool, use } from './story.ts'

type Open = Record<string, unknown>
const MAX_LINE_LENGTH = 8 * 1_048_576
/** A character that takes six bytes on a line of a stream, and two bytes in storage. */
const WIDE = '\u0085'
/** The number of these characters with which a job result is just below its size limit. */
const most = (sizes.result - 1000) / 2
const dialects = [numberedDialect('ses_1', 0), transcriptDialect('ses_1', String, 0)]

/**
 * Returns the length in bytes of the longest line that followers receive for these events. Only the
 * two largest events and the largest result of a call are considered.
 */
function longest(log: readonly SessionEvent[]): number {
  const sizes = new Map(log.map((event) => [event, JSON.stringify(event).length]))
  const largest = [...log].sort((a, b) => (sizes.get(b) ?? 0) - (sizes.get(a) ?? 0)).slice(0, 2)
  const results = log
    .filter((event) => event.type === 'call.noted' && event.call.result)
    .sort((a, b) => (sizes.get(b) ?? 0) - (sizes.get(a) ?? 0))
    .slice(0, 1)
  return Math.max(
    ...[...largest, ...results].flatMap(linesOf).map((line) => Buffer.byteLength(line)),
  )
}
function linesOf(event: SessionEvent): string[] {
  if (!isFrame(event)) {
    const note = toOlderEvent(event, 0, undefined)
    return note ? [frameText(note.type, note.data)] : []
  }
  const changes: Change[] = [
    { kind: 'frame', revision: 1, frame: event, at: 0 },
    ...(event.type === 'message.upsert'
      ? [{ kind: 'row' as const, row: rowIn(event), again: false, at: 0 }]
      : []),
  ]
  return dialects.flatMap((dialect) =>
    changes.flatMap((change) => dialect.change(change).split('\n\n')),
  )
}
const last = (s: Story): TranscriptMessage =>
  s.log
    .flatMap((event) =>
      event.type === 'message.upsert' && event.status === 'final' ? [rowIn(event)] : [],
    )
    .at(-1) as TranscriptMessage

t.test(
  'the results of one row share a limit; one result alone may be as long as a job result',
  async (t) => {
    const s = begun('go', {}, definition([tool('act')]))
    s.answers(...Array.from({ length: 8 }, (_, n) => use(`c${n}`, 'act', { n })))
    for (let n = 0; n < 8; n++)
      s.settle(s.job('action_execution'), {
        outcome: 'completed',
        result: n === 0 ? { text: 'short' } : { text: WIDE.repeat(most) },
      })
    t.ok(longest(s.log) < MAX_LINE_LENGTH, String(longest(s.log)))
    const [first, second] = last(s).content as { content: string }[]
    t.equal(first?.content, '{"text":"short"}')
    t.match(second?.content, /\n\[\d+ characters more were left out\]$/)
  },
)
t.test('a truncated text does not end or begin with half of a character', (t) => {
  for (const most of [100, 101]) {
    const text = '😀'.repeat(100)
    t.ok(beginningOf(text, most).isWellFormed())
    t.ok(endOf(text, most).isWellFormed())
  }
  t.end()
})
t.test('a single result of any valid length is not truncated', async (t) => {
  const s = begun('go', {}, definition([tool('act')]))
  s.answers(use('c', 'act'))
  const result = { text: 'x'.repeat(sizes.result - 100) }
  s.settle(s.job('action_execution'), { outcome: 'completed', result })
  t.equal((last(s).content as { content: string }[])[0]?.content, JSON.stringify(result))
})
t.test('error messages about a call are short', async (t) => {
  const s = begun('go', {}, definition([tool('act')]))
  s.answers(
    use('c', `no ${WIDE.repeat(most)}`),
    use('d', 'service_invoke_skill', { name: WIDE.repeat(1000) }),
  )
  t.ok(longest(s.log) < MAX_LINE_LENGTH, String(longest(s.log)))
})
t.test('a message is limited by its bytes, also if it contains its arguments twice', async (t) => {
  const s = begun('go', {}, definition([tool('act')]))
  s.answers(use('c', 'act', { text: WIDE.repeat(most - 500) }))
  s.settle(s.job('action_execution'), { outcome: 'completed', result: {} })
  t.ok(longest(s.log) < MAX_LINE_LENGTH, String(longest(s.log)))
})
t.test('a summary of summaries loses its oldest part', async (t) => {
  const s = new Story()
  s.invoke()
  s.answers(say('hi'))
  for (let n = 0, summary = ''; n < 3; n++) {
    s.do('session.append', { messages: [{ role: 'user', content: [say(`${n}`)] }] })
    s.do('session.compact', { session_id: 'ses_1', definition: definition() })
    s.settle(s.job(), {
      outcome: 'completed',
      result: message([say(`${summary}part ${n} ${WIDE.repeat(150_000)}`)]) as Open,
    })
    summary = (last(s).content as { text: string }[])[0]?.text ?? ''
  }
  const row = last(s)
  const [{ text = '' } = {}] = row.content as { text?: string }[]
  t.equal(row.role, 'compaction')
  t.equal(text.length <= limits.summary, true)
  t.match(text, /^\[\d+ characters before this were left out\]\n/)
  t.match(text, /part 2 /)
  t.notMatch(text, /part 0 /)
  t.ok(longest(s.log) < MAX_LINE_LENGTH)
})
