/** Pages of transcripts: their limits, and where they begin. */
import t from 'tap'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import type { TranscriptPage } from '../../../protocol/sessions/transcript/pages.ts'
import { View } from '../../../views/view.ts'
import { at, type Draft, Journal } from '../support/journal.ts'

const SESSION = {
  id: 'ses_1',
  agent_id: 'agt_1',
  status: 'active',
  session_key: 'k',
  scope: 'agent',
  created_at: at(0),
}
const row = (n: number, text: string): SessionEvent =>
  ({
    type: 'message.upsert',
    id: `sesmsg_${n}`,
    session_id: 'ses_1',
    agent_id: 'agt_1',
    role: 'user',
    content: [{ type: 'text', text }],
    entry_type: 'message',
    status: 'final',
    turn_index: null,
    sequence: n,
    created_at: at(n),
  }) satisfies TranscriptMessage & { type: 'message.upsert' }
const entry = (events: readonly SessionEvent[]): Draft => ({
  kind: 'session',
  project: 'prj_a',
  id: 'ses_1',
  events,
})

/** Returns a function that queries a session of `count` messages of `length` characters each. */
function session(count: number, length: number): (question: object) => TranscriptPage {
  const journal = new Journal()
  const view = View.open(':memory:')
  journal.commit(
    0,
    entry([{ type: 'session.created', session: SESSION as never, root: 'ses_1', generation: 0 }]),
  )
  for (let n = 1; n <= count; n++) journal.commit(0, entry([row(n, 'x'.repeat(length))]))
  view.apply(journal.messages)
  return (question) =>
    view.ask('session.transcript', 'prj_a', { session_id: 'ses_1', ...question }) as TranscriptPage
}
const numbers = ({ messages }: TranscriptPage): (number | null)[] =>
  messages.map(({ record }) => record.sequence)

t.test('pages are limited by number and bytes, and continue where they end', async (t) => {
  const ask = session(12, 200_000)
  t.strictSame(numbers(ask({ limit: 20 })), [11, 12], 'the newest that fit')
  const first = ask({ after: 0, limit: 20 })
  t.match([numbers(first), first.more, first.through], [[1, 2], true, 2])
  t.strictSame(numbers(ask({ after: first.through, limit: 1 })), [3])
  const last = ask({ after: 10, limit: 20 })
  t.match([numbers(last), last.more, last.through, last.revision], [[11, 12], false, 12, 12])
  t.strictSame(numbers(session(2, 900_000)({ after: 0, limit: 20 })), [1], 'at least one message')
})

t.test('a page can start after a message number', async (t) => {
  const ask = session(5, 10)
  t.match(
    [numbers(ask({ after_sequence: 3, limit: 20 })), ask({ after_sequence: 3, limit: 20 }).after],
    [[4, 5], 3],
  )
  t.strictSame(numbers(ask({ after_sequence: 0, limit: 20 })), [1, 2, 3, 4, 5])
  t.match(ask({ after_sequence: 99, limit: 20 }), { after: 5, messages: [], more: false })
  t.match(ask({ session_id: 'ses_2', limit: 1 }), { refused: 'not_found' })
})
