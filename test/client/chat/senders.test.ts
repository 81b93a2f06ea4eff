/** The senders of messages on the chat page. */
import t from 'tap'
import { type SenderReads, Senders } from '../../../client/chat/people/senders.ts'
import { Refused } from '../../../client/chat/service.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'

const message = (turn_id: string, nudge?: string, turn_index = 0): TranscriptMessage =>
  ({
    role: 'user',
    turn_id,
    turn_index,
    ...(nudge !== undefined && { metadata: { session_nudge_id: nudge } }),
  }) as unknown as TranscriptMessage
const reads = (more: Partial<SenderReads> = {}): SenderReads => ({
  me: async () => 'ann',
  askers: async (turns) =>
    new Map(
      Object.entries({ t1: 'ann', t2: 'bob', t3: 'system' }).filter(([id]) => turns.includes(id)),
    ),
  nudgeSender: async () => 'bob',
  nameOf: async (id) => id.toUpperCase(),
  ...more,
})

t.test('only the own messages have the label "You"', async (t) => {
  const senders = new Senders(reads())
  const all = [message('t1'), message('t2'), message('t3'), message('t1', 'n1', 2)]
  t.equal(senders.labelOf(message('t1')), undefined, 'unknown until it is looked up')
  t.equal(await senders.load(all), 'found')
  t.strictSame(
    all.map((one) => senders.labelOf(one)),
    ['You', 'BOB', 'User', 'BOB'],
  )
  t.equal(await senders.load(all), 'complete')
})
t.test('a message that this page sent needs no request', async (t) => {
  const senders = new Senders(reads({ me: () => Promise.reject(new Refused(500, 'x')) }))
  senders.sentHere('t9')
  t.equal(await senders.load([message('t9')]), 'complete')
  t.equal(senders.labelOf(message('t9')), 'You')
})
t.test('a sender that is not found is looked up a few times', async (t) => {
  const senders = new Senders(reads())
  for (let n = 1; n < 4; n++) t.equal(await senders.load([message('t7')]), 'missing')
  t.equal(await senders.load([message('t7')]), 'found')
  t.equal(senders.labelOf(message('t7')), 'User')
})
