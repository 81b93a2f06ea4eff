/** Compaction of sessions over HTTP. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { agentOf, modelOf, says, shown, text } from '../support/talk.ts'

const s = await service()
t.teardown(() => s.stop())

const said = (name: string) => ({ role: 'user', content: [text(name.repeat(100))] })
const small = { threshold_tokens: 50 }

t.test('an append past the threshold responds after the summary is stored', async (t) => {
  const agent = await agentOf(s, 'keeper')
  const model = await modelOf(s, 'keeper')
  const { id: session_id, compaction_policy } = await s.ok('session.create', {
    agent_id: agent['id'],
    compaction_policy: { strategy: 'manual' },
  })
  t.strictSame(
    compaction_policy,
    { strategy: 'manual', threshold: 'sm' },
    'the policy is returned with its defaults',
  )
  await s.ok('session.append', { session_id, messages: [said('one ')] })
  t.match(
    await s.ok('session.update', { session_id, compaction_policy: { strategy: 'auto', ...small } }),
    { compaction_policy: { strategy: 'auto', ...small }, message_count: 1 },
  )
  const appended = s.ok('session.append', { session_id, messages: [said('two ')] })
  t.match(shown(await says(model, [text('They counted.')])).at(-1), /Summarize/)
  t.match(await appended, { message_count: 3, compacting: undefined })
  t.match(await s.ok('session.get', { session_id }), {
    latest_compaction: { sequence: 3, covers_through_sequence: 2 },
    compaction: { in_progress: false, threshold_tokens: 50 },
  })
  model.close()
})
