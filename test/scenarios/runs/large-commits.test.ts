/**
 * The numbered stream of a session contains the events of entries above 256 KiB, which are stored
 * outside the journal.
 */
import t from 'tap'
import { type Frame, service } from '../../support/service.ts'
import { agentOf, invoke, modelOf, placeOf, says, text, turnIn, use } from '../support/talk.ts'

const s = await service({ BATON_STREAM_IDLE: '0' })
t.teardown(() => s.stop())

t.test('the older stream contains large calls and results of one commit', async (t) => {
  const agent = await agentOf(s, 'large')
  const model = await modelOf(s, 'large', ['look'])
  const ack = await invoke(s, agent, 'hello', {
    config: { toolkits: [{ name: 'x', actions: ['look'] }] },
  })
  const { session_id } = placeOf(ack)
  const following = s.follow(
    'session.stream',
    { session_id, after_sequence: 0 },
    ({ event }: Frame) => event === 'stream.end',
  )
  const large = 'x'.repeat(140_000)
  await says(model, [use('w1', 'look', { large }), use('w2', 'look', { large: `${large}!` })])
  for (const result of [{ large: `${large}${large}` }, { small: true }])
    await model.report(await model.job(), { status: 'completed', result })
  await says(model, [text('Done')])
  await turnIn(s, ack, 'completed')
  const frames = await following
  const of = (type: string) =>
    frames.filter(({ event }) => event === type).map(({ data }) => data['tool_call_id'])
  t.strictSame(of('tool.call'), ['w1', 'w2'])
  t.strictSame(of('tool.result').sort(), ['w1', 'w2'])
  t.strictSame(of('session.resync'), [])
  model.close()
})
