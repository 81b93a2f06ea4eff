/** Requests that exceed the context of the model, which has 8000 tokens. */
import t from 'tap'
import type { ModelMessage } from '../../../protocol/sessions/turns/request.ts'
import { chunk, stubProvider } from './stub-provider.ts'

const hello = [chunk({ content: 'hello' }), chunk({}, 'stop')]
const said = (role: ModelMessage['role'], text: string): ModelMessage => ({
  role,
  content: [{ type: 'text', text }],
})
const question = [{ type: 'text', text: 'and now?' }]
/** Returns a call and its result. */
const call = (id: string, content: string): ModelMessage[] => [
  { role: 'assistant', content: [{ type: 'tool_use', id, name: 'read', input: {} }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] },
]
const lengthOf = (body: string, letter: string): number => body.split(letter).length - 1

t.test('old and large tool results are shortened', async (t) => {
  const stub = await stubProvider(t, () => hello)
  const before = [
    said('user', 'go'),
    ...call('a', 'X'.repeat(300_000)),
    ...call('b', 'Y'.repeat(1000)),
    ...call('c', 'Z'.repeat(300_000)),
  ]
  t.match(await stub.generate(question, ['read'], before), { status: 'completed' })
  t.equal(stub.seen.length, 1)
  const [body = ''] = stub.seen
  t.ok(body.length < 3 * 8000)
  t.match(body, 'characters more were left out')
  t.match(body, 'and now?')
  t.equal(lengthOf(body, 'Y'), 1000, 'a small result is kept')
  t.ok(lengthOf(body, 'Z') > lengthOf(body, 'X'), 'the newest result keeps the most')
  t.ok(lengthOf(body, 'X') > 100)
})
t.test('a request that fits is sent unchanged', async (t) => {
  const stub = await stubProvider(t, () => hello)
  await stub.generate(question, ['read'], [said('user', 'go'), ...call('a', 'X'.repeat(20_000))])
  t.equal(lengthOf(stub.seen[0] ?? '', 'X'), 20_000)
})
t.test('texts with more tokens than expected are shortened once more', async (t) => {
  for (const before of [
    [said('user', 'go'), ...call('a', 'X'.repeat(300_000))],
    [said('user', 'X'.repeat(100_000)), said('assistant', 'Y'.repeat(100_000))],
    Array.from({ length: 400 }, (_, n) => said(n % 2 ? 'assistant' : 'user', 'X'.repeat(150))),
  ]) {
    const stub = await stubProvider(t, (body) => (body.length > 12_000 ? 400 : hello))
    t.match(await stub.generate(question, ['read'], before), { status: 'completed' })
    t.equal(stub.seen.length, 2)
    t.match(stub.seen[1], 'left out')
    t.match(stub.seen[1], 'and now?')
  }
})
t.test('a result never loses its call', async (t) => {
  const stub = await stubProvider(t, (body) => (body.length > 16_000 ? 400 : hello))
  const before = Array.from({ length: 60 }, (_, n) => [
    said('user', `go ${'X'.repeat(200)}`),
    ...call(`call_${n}`, 'Y'.repeat(200)),
    said('assistant', 'done'),
  ]).flat()
  t.match(await stub.generate(question, ['read'], before), { status: 'completed' })
  const { messages } = JSON.parse(stub.seen[1] ?? '') as {
    messages: { role: string; tool_calls?: { id: string }[]; tool_call_id?: string }[]
  }
  t.equal(messages[0]?.role, 'user')
  const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id))
  const results = messages.flatMap(({ tool_call_id }) => tool_call_id ?? [])
  t.strictSame(results, calls)
  t.equal(calls.at(-1), 'call_59')
})
t.test('a request that the provider refuses for another reason is not repeated', async (t) => {
  const stub = await stubProvider(t, () => 401)
  const before = [said('user', 'X'.repeat(20_000)), said('assistant', 'ok')]
  t.match(await stub.generate(question, [], before), { error_type: 'provider_refused' })
  t.equal(stub.seen.length, 1)
})
