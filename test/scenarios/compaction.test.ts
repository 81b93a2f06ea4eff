/** Compaction over HTTP: with an append, and on a stream that is open. */
import t from 'tap'
import { service, type Frame } from '../service.ts'
import { agentOf, modelOf, says, shown, text, turnIn } from './talk.ts'

const s = await service({ BATON_STREAM_IDLE: '0' })
t.teardown(() => s.stop())

const ended = ({ event }: Frame): boolean => event === 'stream.end'
const said = (name: string) => ({ role: 'user', content: [text(name.repeat(100))] })
const small = { threshold_tokens: 50 }

t.test('an append past the threshold is answered with its summary', async (t) => {
  const agent = await agentOf(s, 'keeper')
  const model = await modelOf(s, 'keeper')
  const { id: session_id, compaction_policy } = await s.ok('session.create', {
    agent_id: agent['id'],
    compaction_policy: { strategy: 'manual' },
  })
  t.strictSame(compaction_policy, { strategy: 'manual', threshold: 'sm' }, 'a whole policy')
  await s.ok('session.append', { session_id, messages: [said('one ')] })
  t.match(
    await s.ok('session.update', { session_id, compaction_policy: { strategy: 'auto', ...small } }),
    { compaction_policy: { strategy: 'auto', ...small }, message_count: 1 },
  )
  const appended = s.ok('session.append', { session_id, messages: [said('two ')] })
  t.match(shown(await says(model, [text('They counted.')])).at(-1), /Sum up/)
  t.match(await appended, { message_count: 3, compacting: undefined })
  t.match(await s.ok('session.get', { session_id }), {
    latest_compaction: { sequence: 3, covers_through_sequence: 2 },
    compaction: { in_progress: false, threshold_tokens: 50 },
  })
  model.close()
})

t.test('a pass that begins on an open older stream ends there', async (t) => {
  const agent = await agentOf(s, 'talker')
  const model = await modelOf(s, 'talker')
  const { id: session_id } = await s.ok('session.create', {
    agent_id: agent['id'],
    compaction_policy: small,
  })
  const turn = await s.ok('session.start_turn', {
    session_id,
    content: [text('how? '.repeat(100))],
  })
  const open = s.follow('session.stream', { session_id, after_sequence: 0 }, ended)
  await says(model, [text('So.')])
  await turnIn(s, turn, 'completed')
  await says(model, [text('They asked.')])
  t.match((await open).map(({ event }) => event).slice(-4), [
    'turn.completed',
    'compaction.started',
    'compaction.created',
    'stream.end',
  ])
  model.close()
})
