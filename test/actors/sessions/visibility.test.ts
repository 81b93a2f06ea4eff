/** Visibility of new sessions, and of sessions in journals of earlier releases. */
import t from 'tap'
import { evolve } from '../../../actors/sessions/evolve.ts'
import { standing } from '../../../actors/sessions/find-or-create.ts'
import { initialSession } from '../../../actors/sessions/state.ts'
import type { Session } from '../../../protocol/sessions/schema.ts'

const stored = (more: Partial<Session>): Session => ({
  id: 'ses_1',
  agent_id: 'agt_1',
  title: '',
  status: 'active',
  origin: 'api',
  scope: 'agent',
  scope_ref_id: 'agt_1',
  scope_name: 'k',
  session_key: 'k',
  visibility: 'private',
  message_count: 0,
  token_input_total: 0,
  token_output_total: 0,
  cache_read_input_total: 0,
  cache_creation_input_total: 0,
  version: 1,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  ...more,
})
const replayed = (session: Session, requested?: true) =>
  evolve['session.created'](
    initialSession(),
    {
      type: 'session.created',
      session,
      root: session.id,
      generation: 0,
      ...(requested && { visibility_requested: requested }),
    },
    0,
  )

t.test('the old default visibility of stored sessions becomes project', async (t) => {
  t.equal(replayed(stored({})).record?.visibility, 'project')
  const snapshot = { ...initialSession(), record: stored({}) }
  t.equal(standing(snapshot, {}, 0).session?.visibility, 'project')
})
t.test('an explicitly requested visibility does not change', async (t) => {
  const state = replayed(stored({}), true)
  t.equal(state.record?.visibility, 'private')
  t.equal(standing(state, {}, 0).session?.visibility, 'private')
  t.equal(replayed(stored({ origin: 'loop', scope: 'loop' })).record?.visibility, 'private')
})
t.test('a session of a channel keeps the visibility that it got from the channel', async (t) => {
  const session_key = 'channel:chan_01ARZ3NDEKTSV4RRFFQ69G5FAV'
  t.equal(replayed(stored({ session_key })).record?.visibility, 'private')
})
