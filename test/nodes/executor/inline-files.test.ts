/** Files inside messages that the model or its provider does not accept. */
import t from 'tap'
import { chunk, stubProvider } from './stub-provider.ts'

const hello = [chunk({ content: 'hello' }), chunk({}, 'stop')]
const question = { type: 'text', text: 'what is this?' }
const base64 = (media_type: string) => ({ type: 'base64', media_type, data: 'AAAA' })
const url = { type: 'url', url: 'https://example.org/a' }
const refused = 'the model did not accept this file'

t.test('a file that the model does not accept is replaced by a note', async (t) => {
  for (const block of [
    { type: 'image', source: url },
    { type: 'document', source: url, title: 'plan' },
    { type: 'document', source: base64('application/zip') },
    { type: 'document', source: base64('audio/ogg') },
  ]) {
    const stub = await stubProvider(t, () => hello)
    t.match(await stub.generate([block, question]), { status: 'completed' })
    t.equal(stub.seen.length, 1, 'the library refuses the first request')
    t.match(stub.seen[0], refused)
    t.match(stub.seen[0], 'what is this?')
  }
})
t.test('a file that the provider does not accept is replaced by a note', async (t) => {
  const stub = await stubProvider(t, (body) => (body.includes('image_url') ? 400 : hello))
  const image = { type: 'image', source: base64('image/png'), title: 'cat' }
  const text = { type: 'document', source: base64('text/plain'), title: 'read me' }
  t.match(await stub.generate([image, text, question]), { status: 'completed' })
  t.equal(stub.seen.length, 2)
  t.match(stub.seen[1], /image .{1,4}cat.{1,4}, image\/png: the model did not accept/)
  t.match(stub.seen[1], 'read me:', 'a text is not a file')
})
t.test('a file that the provider accepts is sent once', async (t) => {
  const stub = await stubProvider(t, () => hello)
  await stub.generate([{ type: 'image', source: base64('image/png') }, question])
  t.equal(stub.seen.length, 1)
  t.match(stub.seen[0], 'data:image/png;base64,AAAA')
})
t.test('a request without files is not repeated', async (t) => {
  const stub = await stubProvider(t, () => 400)
  t.match(await stub.generate([question]), { error_type: 'provider_refused', final: true })
  t.equal(stub.seen.length, 1)
})
