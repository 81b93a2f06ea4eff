/** Tool calls in the answers of providers, and texts in requests to them. */
import t from 'tap'
import type { Outcome } from '../../../nodes/executor/handler.ts'
import { called, chunk, stubProvider } from './stub-provider.ts'

const question = [{ type: 'text', text: 'go' }]
const answerOf = ({ result }: Outcome) =>
  (result as { llm_response: { content: object[]; stop_reason: string } }).llm_response

/** Returns the events of an Anthropic answer with calls of the tool `pay`. */
const messages = (stop_reason: string, ...calls: (readonly [id: string, args: string])[]) => [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  },
  ...calls.flatMap(([id, partial_json], index) => [
    {
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id, name: 'pay', input: {} },
    },
    { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } },
    { type: 'content_block_stop', index },
  ]),
  {
    type: 'message_delta',
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 5 },
  },
  { type: 'message_stop' },
]

t.test('an answer that is cut off within a tool call has reached its maximum length', async (t) => {
  const cut = '{"title": "a long'
  const open = await stubProvider(t, () => [called('a', 'pay', cut), chunk({}, 'length')])
  const claude = await stubProvider(t, () => messages('max_tokens', ['a', cut]), 'anthropic')
  for (const stub of [open, claude])
    t.match(answerOf(await stub.generate(question, ['pay'])), {
      stop_reason: 'max_tokens',
      content: [{ type: 'tool_use', name: 'pay', input: {} }],
    })
})
t.test('arguments that are not an object make any other answer invalid', async (t) => {
  for (const args of ['{"title": "a long', '[1]', '"text"']) {
    const stub = await stubProvider(t, () => [called('a', 'pay', args), chunk({}, 'tool_calls')])
    t.match(await stub.generate(question, ['pay']), { error_type: 'invalid_response' }, args)
  }
})
t.test('two calls with the same id are two calls', async (t) => {
  const stub = await stubProvider(
    t,
    () => messages('tool_use', ['a', '{"n": 1}'], ['a', '{"n": 2}']),
    'anthropic',
  )
  t.match(answerOf(await stub.generate(question, ['pay'])).content, [
    { id: 'a', input: { n: 1 } },
    { id: 'a', input: { n: 2 } },
  ])
})
t.test('blank arguments are an empty object, also for an unknown tool', async (t) => {
  for (const tools of [[], ['pay']])
    for (const args of ['', ' ']) {
      const stub = await stubProvider(t, () => [
        called('a', 'other', args),
        chunk({}, 'tool_calls'),
      ])
      t.match(answerOf(await stub.generate(question, tools)), {
        stop_reason: 'tool_use',
        content: [{ type: 'tool_use', name: 'other', input: {} }],
      })
    }
})
t.test('lone surrogates are replaced in requests', async (t) => {
  const stub = await stubProvider(t, () => [chunk({ content: 'hello' }), chunk({}, 'stop')])
  const input = { 'k\udc00': ['a\ud800b'] }
  await stub.generate(
    [{ type: 'text', text: 'x\ud800y 😀' }],
    ['pay'],
    [
      { role: 'user', content: question },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'pay', input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r\udfff' }] },
    ],
  )
  const [body = ''] = stub.seen
  t.notMatch(body, /\\u[dD][89a-fA-F]/)
  for (const text of ['x\ufffdy 😀', 'a\ufffdb', 'r\ufffd']) t.match(body, text)
})
t.test('blank texts are not sent to the provider', async (t) => {
  const stub = await stubProvider(t, () => messages('end_turn'), 'anthropic')
  const blank = { type: 'text', text: '\n\n' }
  await stub.generate(
    [{ type: 'tool_result', tool_use_id: 'a', content: 'done' }, blank],
    ['pay'],
    [
      { role: 'user', content: question },
      {
        role: 'assistant',
        content: [blank, { type: 'tool_use', id: 'a', name: 'pay', input: {} }],
      },
    ],
  )
  const { messages: sent } = JSON.parse(stub.seen[0] ?? '') as {
    messages: { content: object[] }[]
  }
  t.match(sent, [
    { content: question },
    { content: [{ type: 'tool_use' }] },
    { content: [{ type: 'tool_result' }] },
  ])
  for (const { content } of sent) t.equal(content.length, 1)
})
t.test('an id of a call that another provider generated is sent in a valid form', async (t) => {
  const stub = await stubProvider(t, () => messages('end_turn'), 'anthropic')
  const id = 'functions.pay:0'
  await stub.generate(
    [{ type: 'tool_result', tool_use_id: id, content: 'done' }],
    ['pay'],
    [
      { role: 'user', content: question },
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'pay', input: {} }] },
    ],
  )
  const { messages: sent } = JSON.parse(stub.seen[0] ?? '') as { messages: object[] }
  t.match(sent.slice(1), [
    { content: [{ type: 'tool_use', id: 'functions_pay_0' }] },
    { content: [{ type: 'tool_result', tool_use_id: 'functions_pay_0' }] },
  ])
})
