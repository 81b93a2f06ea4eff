/** Encrypted reasoning of OpenAI: how it is stored, and which requests contain it. */
import t from 'tap'
import type { Outcome } from '../../../nodes/executor/handler.ts'
import { stubProvider } from './stub-provider.ts'

const item_id = 'rs_1'
const summary = (summary_index: number, delta: string) => [
  { type: 'response.reasoning_summary_part.added', item_id, summary_index },
  { type: 'response.reasoning_summary_text.delta', item_id, summary_index, delta },
  { type: 'response.reasoning_summary_part.done', item_id, summary_index },
]
const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'pay' }
/** The events of an answer with reasoning and a call. */
const answer = [
  { type: 'response.created', response: { id: 'resp_1', created_at: 1, model: 'm' } },
  {
    type: 'response.output_item.added',
    output_index: 0,
    item: { type: 'reasoning', id: item_id, encrypted_content: 'unfinished' },
  },
  ...summary(0, 'First'),
  ...summary(1, 'Second'),
  {
    type: 'response.output_item.done',
    output_index: 0,
    item: { type: 'reasoning', id: item_id, encrypted_content: 'sealed', summary: [] },
  },
  { type: 'response.output_item.added', output_index: 1, item: { ...call, arguments: '' } },
  {
    type: 'response.output_item.done',
    output_index: 1,
    item: { ...call, arguments: '{}', status: 'completed' },
  },
  { type: 'response.completed', response: { usage: { input_tokens: 1, output_tokens: 1 } } },
]
const contentOf = ({ result }: Outcome) =>
  (result as { llm_response: { content: object[] } }).llm_response.content
const question = { role: 'user' as const, content: [{ type: 'text', text: 'go' }] }
const thinking = { type: 'thinking', thinking: 'T', provider: 'stub', signature: 'sealed' }
const use = { type: 'tool_use', id: 'call_1', name: 'pay', input: {} }
const result = { type: 'tool_result', tool_use_id: 'call_1', content: 'paid' }

t.test('the reasoning of an answer is stored as one block', async (t) => {
  const stub = await stubProvider(t, () => answer, 'openai')
  t.match(contentOf(await stub.generate(question.content, ['pay'])), [
    { type: 'thinking', thinking: 'First\n\nSecond', provider: 'stub', signature: 'sealed' },
    { type: 'tool_use', id: 'call_1', name: 'pay' },
  ])
})

t.test('the next request of the same turn contains the reasoning before its call', async (t) => {
  const stub = await stubProvider(t, () => answer, 'openai')
  const { provider: _, ...unknown } = thinking
  const others = [
    { ...thinking, provider: 'other', signature: 'foreign' },
    { ...thinking, signature: '' },
    { ...unknown, signature: 'unknown' },
  ]
  const content = [...others, thinking, use]
  const before = [question, { role: 'assistant' as const, content }]
  await stub.generate([result, { type: 'text', text: 'a nudge' }], ['pay'], before)
  t.match((JSON.parse(stub.seen[0] ?? '') as { input: object[] }).input, [
    { role: 'user' },
    {
      type: 'reasoning',
      encrypted_content: 'sealed',
      summary: [{ type: 'summary_text', text: 'T' }],
    },
    { type: 'function_call', call_id: 'call_1' },
    { type: 'function_call_output', call_id: 'call_1' },
    { role: 'user' },
  ])
})

t.test('the next turn contains no reasoning of the turns before', async (t) => {
  const stub = await stubProvider(t, () => answer, 'openai')
  await stub.generate(
    question.content,
    ['pay'],
    [
      question,
      { role: 'assistant', content: [thinking, use] },
      { role: 'user', content: [result] },
      { role: 'assistant', content: [thinking, { type: 'text', text: 'Paid.' }] },
    ],
  )
  t.notMatch(stub.seen[0], /reasoning|sealed/)
  t.match(stub.seen[0], /Paid\./)
})
