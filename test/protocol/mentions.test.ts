/** Mentions of agents in a text. */
import t from 'tap'
import { isAmbiguous, mentionsOf } from '../../protocol/channels/mentions.ts'

const agents = { agt_1: 'Ops', agt_2: 'Ops-Bot', agt_3: 'Ada the Helper', agt_4: 'İnci', agt_5: '' }
const called = (text: string) => mentionsOf(text, agents).sort()

t.test('a name after an at sign mentions its agent, in any case, as a whole word', async (t) => {
  t.strictSame(called('hello @ops, how are you?'), ['agt_1'])
  t.strictSame(called('@OPS'), ['agt_1'])
  t.strictSame(called('(@ops)'), ['agt_1'])
  t.strictSame(called('@ada the helper: go'), ['agt_3'])
  t.strictSame(called('@agt_2 and @AGT_3'), ['agt_2', 'agt_3'])
  for (const nobody of [
    'ops',
    '@ opsy',
    '@opsy',
    '@ops_x',
    'mail@ops',
    'x@ops.example',
    '@',
    '@@',
    '',
    '@nobody',
    '@ada',
  ])
    t.strictSame(called(nobody), [], nobody)
  t.strictSame(called('@@ops'), ['agt_1'])
})
t.test('a mention refers only to agents that can be mentioned', async (t) => {
  const all = { agt_1: 'Ops', agt_2: 'ops', agt_3: 'data', agt_4: 'data team' }
  t.strictSame(mentionsOf('@ops', all), ['agt_1', 'agt_2'], 'names that differ only in case')
  t.strictSame(
    [
      isAmbiguous('@ops', all),
      isAmbiguous('@data team', all),
      isAmbiguous('@data, @agt_1', all),
      isAmbiguous('ops', all),
    ],
    [true, true, false, false],
  )
  t.strictSame(mentionsOf('@data team', all), ['agt_4'])
  t.strictSame(mentionsOf('@data team', { agt_3: 'data' }), ['agt_3'])
})
t.test('the longest matching name counts, and each agent is mentioned once', async (t) => {
  t.strictSame(called('@ops-bot'), ['agt_2'])
  t.strictSame(called('@ops-bots'), ['agt_1'], 'a hyphen ends a name')
  t.strictSame(called('@ops @ops-bot @Ops'), ['agt_1', 'agt_2'])
  t.strictSame(called(`${'@x '.repeat(499)}@ops`), ['agt_1'])
  t.strictSame(called(`${'@'.repeat(40_000)}ops`), [], 'more at signs than any person types')
})
