/**
 * What viewers read of source events: those of private artifacts, and of sessions that they may no
 * longer read.
 */
import t from 'tap'
import { View } from '../../../views/view.ts'
import { ask, at, Journal } from '../support/journal.ts'

const said = (id: string, artifact: string, more: object = {}) => ({
  type: 'source.published',
  id,
  event_type: 'artifact.created',
  source_kind: 'artifact',
  source_id: artifact,
  event: { name: 'plan.txt', visibility: 'private' },
  meta: {},
  depth: 0,
  occurred_at: '2031-02-03T04:05:06.000Z',
  ...more,
})
const stored = (id: string) => ({
  type: 'artifact.completed',
  id,
  artifact: {
    id,
    visibility: 'private',
    name: 'plan.txt',
    mime_type: 'text/plain',
    size_bytes: 1,
    created_at: '2031-02-03T04:05:06.000Z',
    owned_by: 'user_1',
  },
  organization: 'org_1',
})
const journal = new Journal()
const commit = (kind: 'artifact' | 'events', id: string, ...events: { type: string }[]) =>
  journal.commit(0, { kind, project: 'prj_a', id, events })
commit('artifact', 'art_1', stored('art_1'))
commit('events', 'prj_a', said('sevt_1', 'art_1', { private_owner: 'user_1' }))
commit('events', 'prj_a', said('sevt_2', 'art_1'))
commit('events', 'prj_a', said('sevt_3', 'art_0'))
commit('events', 'prj_a', said('sevt_4', 'art_2', { event: { visibility: 'shared' } }))
commit('events', 'prj_a', said('sevt_5', 'x', { source_kind: 'custom' }))
const view = View.open(':memory:')
view.apply(journal.messages)

const listed = (viewer?: { id: string; admin: boolean }) =>
  ask<{ items: { id: string }[] }>(
    view,
    'event.list',
    { limit: 100, ...(viewer && { viewer }) },
    'prj_a',
  ).items.map(({ id }) => id)

t.test('only the owner reads the events of a private artifact', async (t) => {
  const owner = { id: 'user_1', admin: false }
  t.strictSame(listed(owner), ['sevt_5', 'sevt_4', 'sevt_2', 'sevt_1'])
  for (const viewer of [
    { id: 'user_2', admin: false },
    { id: 'user_3', admin: true },
  ]) {
    t.strictSame(listed(viewer), ['sevt_5', 'sevt_4'])
    for (const id of ['sevt_1', 'sevt_2'])
      t.match(ask(view, 'event.get', { id, viewer }, 'prj_a'), { refused: 'not_found' })
  }
  t.match(ask(view, 'event.get', { id: 'sevt_2', viewer: owner }, 'prj_a'), { id: 'sevt_2' })
})
t.test('an earlier event whose artifact is unknown is readable only by the service', async (t) => {
  t.notOk(listed({ id: 'user_1', admin: true }).includes('sevt_3'))
  t.ok(listed().includes('sevt_3'))
})

t.test('messages of deleted sessions and of hidden channels have no content', async (t) => {
  const journal = new Journal()
  const record = { agent_id: 'agt_1', status: 'active', scope: 'agent', created_at: at(0) }
  const talk = (id: string, session_key: string) => {
    const session = { ...record, id, session_key } as never
    const created = { type: 'session.created', session, root: id, generation: 0 }
    journal.commit(0, { kind: 'session', project: 'prj_a', id, events: [created] })
    const event = { role: 'user', content: [{ type: 'text', text: id }] }
    const message = { event_type: 'session.message.created', source_kind: 'session', event }
    const events = [said(`sevt_${id}`, id, message)]
    journal.commit(0, { kind: 'events', project: 'prj_a', id: 'prj_a', events })
  }
  talk('ses_kept', 'a')
  talk('ses_gone', 'b')
  talk('ses_hidden', 'channel:chan_1')
  const gone = { type: 'session.updated', session: { status: 'deleted' } }
  journal.commit(0, { kind: 'session', project: 'prj_a', id: 'ses_gone', events: [gone] })
  const view = View.open(':memory:')
  view.apply(journal.messages)
  const read = (viewer?: object) =>
    ['ses_kept', 'ses_gone', 'ses_hidden'].map((id) => {
      const found = ask<{ event: object }>(view, 'event.get', { id: `sevt_${id}`, viewer }, 'prj_a')
      return 'content' in found.event
    })
  t.strictSame(read({ id: 'user_1', admin: true }), [true, false, false])
  t.strictSame(read(), [true, true, true], 'the service reads the whole event')
})
