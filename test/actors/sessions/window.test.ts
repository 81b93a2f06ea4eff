/** Which rows the window keeps when it exceeds its bounds. */
import t from 'tap'
import { entered, type Window } from '../../../actors/sessions/history/window.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'

let sequence = 0
const row = (role: 'user' | 'assistant', turn_id?: string): TranscriptMessage => ({
  id: `sesmsg_${++sequence}`,
  session_id: 'ses_1',
  agent_id: 'agt_1',
  role,
  content: [{ type: 'text', text: 'x' }],
  entry_type: 'message',
  status: 'final',
  turn_index: turn_id === undefined ? null : 0,
  sequence,
  created_at: '2026-01-01T00:00:00.000Z',
  ...(turn_id !== undefined && { turn_id }),
})
const filled = (rows: readonly TranscriptMessage[], turn_id?: string): Window =>
  rows.reduce((window, one) => entered(window, one, turn_id), { window: [], size: 0 } as Window)
const many = (count: number, turn_id?: string) =>
  Array.from({ length: count }, () => row('assistant', turn_id))

t.test('a full window without a turn is cut to about half', async (t) => {
  const rows = Array.from({ length: limits.window.rows + 1 }, () => row('user'))
  const { window } = filled(rows)
  t.ok(window.length <= limits.window.rows / 2 && window.length > limits.window.rows / 3)
  t.equal(window.at(-1), rows.at(-1))
})

t.test('the input of the turn under way is kept, whatever is added during the turn', async (t) => {
  const before = [row('user', 'turn_1'), ...many(10, 'turn_1')]
  const input = row('user', 'turn_2')
  for (const later of [row('user'), row('user', 'turn_3')]) {
    const rows = [
      ...before,
      input,
      ...many(limits.window.rows - before.length - 1, 'turn_2'),
      later,
    ]
    const { window } = filled(rows, 'turn_2')
    t.equal(window[0], input, 'earlier turns are cut')
    t.equal(window.at(-1), later)
    t.equal(filled(rows).window[0], later, 'once the turn has ended, its rows are cut')
  }
})
