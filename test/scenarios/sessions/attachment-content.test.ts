/** The bytes of a session's file over HTTP: conditional requests and ranges. */
import t from 'tap'
import { service } from '../../support/service.ts'

const s = await service()
t.teardown(() => s.stop())

const agent = await s.ok('agent.create', { name: 'reader', system_prompt: 'Be brief.' })
const { id: session_id } = await s.ok('session.create', { agent_id: agent['id'] })
const authorization = `Bearer ${s.key}`
const path = `${s.url}/v1/projects/default/sessions/${String(session_id)}/attachments`
const text = 'The quick brown fox jumps over the lazy dog.'
const form = new FormData()
form.append('file', new Blob([text], { type: 'text/plain' }), 'fox.txt')
const uploaded = await fetch(path, { method: 'POST', body: form, headers: { authorization } })
const { artifact } = (await uploaded.json()) as { artifact: { id: string; sha256: string } }
const read = (headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${path}/${artifact.id}/content`, { method, headers: { authorization, ...headers } })
const etag = `"sha256-${artifact.sha256}"`

t.test('a client that has the bytes receives 304 without a body', async (t) => {
  const whole = await read()
  t.equal(whole.headers.get('etag'), etag)
  t.equal(whole.headers.get('accept-ranges'), 'bytes')
  t.equal(await whole.text(), text)
  const known = await read({ 'if-none-match': etag })
  t.equal(known.status, 304)
  t.equal(known.headers.get('etag'), etag)
  t.equal(await known.text(), '')
  t.equal((await read({ 'if-none-match': '"other"' })).status, 200)
  t.equal(await (await read()).text(), text, 'the connection stays usable')
})

t.test('an interrupted download continues with a range', async (t) => {
  const first = await read({ range: 'bytes=0-8' })
  t.equal(first.status, 206)
  t.equal(first.headers.get('content-range'), `bytes 0-8/${text.length}`)
  t.equal(first.headers.get('content-length'), '9')
  const rest = await read({ range: 'bytes=9-', 'if-range': etag })
  t.equal(rest.status, 206)
  t.equal((await first.text()) + (await rest.text()), text)
  const other = await read({ range: 'bytes=9-', 'if-range': '"older"' })
  t.equal(other.status, 200, 'a range of another version would not fit')
  t.equal(await other.text(), text)
})

t.test('a range after the end of the file is refused', async (t) => {
  const refused = await read({ range: `bytes=${text.length}-` })
  t.equal(refused.status, 416)
  t.equal(refused.headers.get('content-range'), `bytes */${text.length}`)
  t.match(await refused.json(), {
    error: { code: 'range_not_satisfiable', details: { size_bytes: text.length } },
  })
  const head = await read({ range: 'bytes=0-8' }, 'HEAD')
  t.equal(head.status, 200, 'ranges are for GET only')
  t.equal(head.headers.get('content-length'), String(text.length))
  t.equal(await head.text(), '')
})
