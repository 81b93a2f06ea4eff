/** The logic of the inbox and of channels that needs no browser. */
import t from 'tap'
import {
  addEvent,
  addMessage,
  addPage,
  emptyFeed,
  lastReplies,
  linesOf,
  rootsOf,
} from '../../console/pages/channels/feed.ts'
import { complete, matching, mentionAt } from '../../console/pages/channels/mention.ts'
import {
  answerText,
  initialOf,
  partOf,
  pick,
  progressOf,
  readDraft,
  safeUrl,
  stepTo,
} from '../../console/pages/inbox/asked.ts'
import type { ChannelMessage } from '../../protocol/channels/schema.ts'
import { questionOf } from '../../protocol/interactions/question.ts'
import type { Interaction, Question } from '../../protocol/interactions/schema.ts'

const NOON = Date.UTC(2026, 0, 5, 12)
const at = (seconds: number): string => new Date(NOON + seconds * 1000).toISOString()
const message = (seq: number, more: Partial<ChannelMessage> = {}): ChannelMessage => ({
  id: `cmsg_${seq}`,
  channel_id: 'chan_1',
  seq,
  content: `text ${seq}`,
  pinned: false,
  sender_id: 'ada',
  sender_type: 'user',
  created_at: at(seq),
  ...more,
})
const seqs = (items: readonly ChannelMessage[]) => items.map(({ seq }) => seq)

t.test('a feed joins pages and events in any order, each message once', async (t) => {
  let feed = addEvent(emptyFeed, { payload: { message: message(5) } })
  feed = addPage(feed, [message(5), message(4), message(3)], 'older')
  feed = addMessage(feed, message(6))
  t.strictSame(seqs(feed.items), [3, 4, 5, 6])
  t.equal(feed.older, 'older')
  feed = addMessage(feed, message(1, { content: 'changed', edited_at: at(90) }))
  t.strictSame(seqs(feed.items), [3, 4, 5, 6], 'a message of an unknown page leaves no gap')
  feed = addPage(feed, [message(2), message(1)], undefined)
  t.strictSame(seqs(feed.items), [1, 2, 3, 4, 5, 6])
  t.equal(addEvent(feed, { payload: { member: {} } }), feed)
})

t.test('an older state of a message never replaces a newer one', async (t) => {
  const edited = message(1, { content: 'new', edited_at: at(60) })
  let feed = addMessage(emptyFeed, edited)
  feed = addPage(feed, [message(1)], undefined)
  t.equal(feed.items[0]?.content, 'new')
  feed = addMessage(feed, message(2, { reply_to: 'cmsg_1' }))
  feed = addMessage(feed, message(2, { reply_to: 'cmsg_1' }))
  t.equal(feed.items[0]?.reply_count, 1, 'a reply is counted once')
  t.strictSame(seqs(rootsOf(feed)), [1])
  feed = addMessage(feed, message(3, { reply_to: 'cmsg_1' }))
  t.equal(lastReplies(feed).get('cmsg_1')?.seq, 3)
  t.equal(addMessage(feed, edited).items[0]?.reply_count, 2, 'an event has no number of replies')
})

t.test('lines are grouped by day and author, with one mark of unread messages', async (t) => {
  const lines = linesOf(
    [
      message(1),
      message(2),
      message(3, { created_at: at(1000) }),
      message(4, { sender_id: 'me', created_at: at(1001) }),
      message(5, { created_at: at(1002) }),
      message(6, { created_at: at(3 * 86_400) }),
    ],
    3,
    'me',
  )
  t.strictSame(
    lines.map((line) =>
      line.kind === 'message' ? `${line.message.seq}${line.head ? '!' : ''}` : line.kind,
    ),
    ['day', '1!', '2', '3!', '4!', 'unread', '5!', 'day', '6!'],
  )
  t.notOk(linesOf([message(9)], undefined, 'me').some(({ kind }) => kind === 'unread'))
})

t.test('mentions are completed before the caret', async (t) => {
  t.strictSame(mentionAt('hi @op', 6), { start: 3, typed: 'op' })
  t.equal(mentionAt('mail a@op', 9), undefined)
  t.equal(mentionAt('hi @op there', 12), undefined)
  const people = [
    { id: 'u', name: 'Ben Okafor', kind: 'user' },
    { id: 'a', name: 'ops-bot', kind: 'agent' },
  ] as const
  t.strictSame(
    matching(people, 'o').map(({ id }) => id),
    ['a', 'u'],
  )
  t.strictSame(complete('hi @op, ok', { start: 3, typed: 'op' }, 'ops-bot'), {
    text: 'hi @ops-bot , ok',
    caret: 12,
  })
})

const interaction = (more: Partial<Interaction> = {}): Interaction => ({
  id: 'iact_1',
  kind: 'request_approval',
  status: 'pending',
  title: 'Deploy?',
  target_user_ids: ['ada', 'role:Operator'],
  resolution_policy: { type: 'any_of' },
  consumer: { kind: 'none' },
  responses: [],
  lifecycle: [],
  created_at: at(0),
  updated_at: at(0),
  ...more,
})
const response = (responder_user_id: string) => ({
  id: `r_${responder_user_id}`,
  interaction_id: 'iact_1',
  response_kind: 'response' as const,
  state: 'submitted' as const,
  responder_user_id,
  value: true,
  responded_at: at(1),
  created_at: at(1),
  updated_at: at(1),
})

t.test('targets, roles and reviewers determine what a person can do', async (t) => {
  t.equal(partOf(interaction(), 'ada', new Set(['ada'])), 'answer')
  t.equal(partOf(interaction(), 'ben', new Set(['ben', 'role:Operator'])), 'answer')
  t.equal(partOf(interaction(), 'ben', new Set(['ben'])), 'none')
  const two = { resolution_policy: { type: 'quorum' as const, threshold: 2 } }
  const half = interaction({ ...two, responses: [response('ada')] })
  t.equal(partOf(half, 'ada', new Set(['ada'])), 'answered')
  t.strictSame(progressOf(half), { given: 1, needed: 2 })
  const review = interaction({
    status: 'in_review',
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['cy', 'ada'] } },
    responses: [response('ada')],
  })
  t.equal(partOf(review, 'cy', new Set(['cy'])), 'review')
  t.equal(partOf(review, 'ada', new Set(['ada'])), 'answered', 'no review of an own answer')
  t.equal(partOf(interaction({ status: 'completed' }), 'ada', new Set(['ada'])), 'none')
})

t.test('forms begin with the defaults, and drafts must fit the question', async (t) => {
  const options = [
    { value: 'a', label: 'First' },
    { value: 'b', label: 'Second' },
  ]
  const many: Question = { mode: 'multi_select', options }
  t.strictSame(initialOf({ ...many, default_values: ['b'] }), ['b'])
  t.strictSame(pick(many, ['b'], 0), ['a', 'b'])
  t.strictSame(pick(many, ['a', 'b'], 1), ['a'])
  t.equal(pick({ mode: 'select', options }, undefined, 1), 'b')
  t.equal(pick({ mode: 'select', options }, 'a', 7), 'a')
  t.equal(questionOf({ kind: 'request_approval' }).mode, 'confirm')
  t.equal(questionOf({ kind: 'assign_work' }).mode, 'input')
  t.strictSame(readDraft('{"value":["a"],"comment":"x"}', many), { value: ['a'], comment: 'x' })
  t.equal(readDraft('{"value":["c"]}', many), undefined)
  t.equal(readDraft('{', many), undefined)
  const words = { yes: 'Y', no: 'N', none: '–' }
  t.equal(answerText(many, ['a', 'b'], words), 'First, Second')
  t.equal(answerText({ mode: 'confirm' }, false, words), 'N')
  t.equal(answerText(many, { x: 1 }, words), undefined)
  t.equal(safeUrl('javascript:alert(1)'), undefined)
  t.equal(safeUrl('https://example.org/'), 'https://example.org/')
})

t.test('a list is walked through, also after its selected item has left', async (t) => {
  const ids = ['a', 'b', 'c']
  t.equal(stepTo(ids, undefined, 0, 1), 'a')
  t.equal(stepTo(ids, 'a', 0, 1), 'b')
  t.equal(stepTo(ids, 'c', 2, 1), 'c')
  t.equal(stepTo(ids, 'gone', 1, 1), 'b')
  t.equal(stepTo(ids, 'gone', 1, -1), 'a')
  t.equal(stepTo([], 'gone', 1, 1), undefined)
})
