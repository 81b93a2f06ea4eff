/** Reads of artifacts over HTTP: ranges, signed URLs, lists, and the text of Office files. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { docx, paragraph } from '../../nodes/executor/documents/office.ts'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { as, editor } from '../support/people.ts'
import { artifactClient, codeOf, type Open, sha256 } from './client.ts'

t.setTimeout(120_000)
const s = await service()
t.teardown(() => s.stop())
const client = artifactClient(s.url, s.key)
const { put, content } = client
const created = async (t: Test, name: string, bytes: Uint8Array, options = {}): Promise<Open> => {
  const { status, body } = await put(name, bytes, options)
  t.equal(status, 201)
  return body
}

t.test('a download ends when the caller loses its access', async (t) => {
  const leaver = await editor(s, 'leaver')
  const { id, size_bytes } = await created(t, 'large.bin', Buffer.alloc(48 << 20), as(leaver))
  const { body } = await fetch(`${s.url}/v1/projects/default/artifacts/${id}/content`, {
    headers: { authorization: `Bearer ${leaver.key}` },
  })
  let received = 0
  await t.rejects(async () => {
    for await (const chunk of body ?? []) {
      if (received === 0) await s.ok('principal.update', { id: leaver.id, state: 'disabled' })
      received += chunk.length
    }
  })
  t.ok(received > 0 && received < Number(size_bytes))
})

t.test('ranges and conditions', async (t) => {
  const bytes = randomBytes(1_300_000)
  const { id } = await created(t, 'parts.bin', bytes)
  const ask = (range: string, more = {}) => content(id, { headers: { range, ...more } })
  for (const [range, start, end] of [
    ['bytes=0-0', 0, 1],
    ['bytes=262143-262144', 262_143, 262_145],
    ['bytes=1299999-', 1_299_999, 1_300_000],
    ['bytes=-5', 1_299_995, 1_300_000],
    ['bytes=1000000-9999999', 1_000_000, 1_300_000],
  ] as const) {
    const part = await ask(range)
    t.equal(part.status, 206)
    t.equal(part.headers.get('content-range'), `bytes ${start}-${end - 1}/1300000`)
    t.ok(part.bytes.equals(bytes.subarray(start, end)), range)
  }
  const beyond = await ask('bytes=1300000-')
  t.match([beyond.status, codeOf(beyond)], [416, 'range_not_satisfiable'])
  t.equal(beyond.headers.get('content-range'), 'bytes */1300000')
  t.equal((await ask('bytes=0-1,5-6')).bytes.length, bytes.length)
  const etag = `"sha256-${sha256(bytes)}"`
  const same = await content(id, { headers: { 'if-none-match': etag } })
  t.equal(same.status, 304)
  t.equal((await ask('bytes=0-0', { 'if-range': etag })).status, 206)
  t.equal((await ask('bytes=0-0', { 'if-range': '"other"' })).status, 200)
  const head = await content(id, { method: 'HEAD' })
  t.equal(head.headers.get('content-length'), '1300000')
  t.equal(head.bytes.length, 0)
  const ranged = await content(id, { method: 'HEAD', headers: { range: 'bytes=0-9' } })
  t.equal(ranged.status, 200, 'ranges are for GET only')
  t.equal(ranged.headers.get('content-length'), '1300000')
  t.equal((await ask('bytes=0-0', { 'if-match': etag })).status, 206)
  const other = await ask('bytes=0-0', { 'if-match': '"other"' })
  t.match([other.status, codeOf(other)], [412, 'precondition_failed'])
})

t.test('a signed URL needs no credential, and ends', async (t) => {
  const bytes = randomBytes(50_000)
  const { id: artifact_id } = await created(t, 'signed.html', bytes, {
    fields: { mime: 'text/html' },
  })
  const signed = await s.ok('artifact.signed_url', { artifact_id, ttl_seconds: 100_000 })
  t.match(signed, { method: 'GET', url: new RegExp(`^${s.url}/v1/artifact-downloads/`) })
  const left = Date.parse(String(signed['expires_at'])) - Date.now()
  t.ok(left > 3_500_000 && left <= 3_600_000, 'capped at an hour')
  const path = new URL(String(signed['url'])).pathname
  const read = await client.get(path, { key: null })
  t.equal(read.status, 200)
  t.ok(read.bytes.equals(bytes))
  t.match(read.headers.get('content-disposition'), /^attachment;/)
  t.equal(read.headers.get('content-type'), 'application/octet-stream')
  const part = await client.get(path, { key: null, headers: { range: 'bytes=1-2' } })
  t.equal(part.status, 206)
  t.equal((await client.get(path, { key: null, method: 'HEAD' })).bytes.length, 0)
  for (const forged of [
    `${path}x`,
    path.slice(0, -1),
    path.replace(/.{4}$/, 'AAAA'),
    '/v1/artifact-downloads/x',
  ])
    t.equal((await client.get(forged, { key: null })).status, 404, forged)
  await s.refused('artifact.signed_url', { artifact_id, ttl_seconds: 0 }, 400, 'bad_request')
  await s.refused('artifact.signed_url', { artifact_id: 'art_x' }, 404, 'not_found')
  const short = await s.ok('artifact.signed_url', { artifact_id, ttl_seconds: 1 })
  const soon = new URL(String(short['url'])).pathname
  t.equal((await client.get(soon, { key: null })).status, 200)
  await until(
    () => client.get(soon, { key: null }),
    ({ status }) => status === 404,
  )
  t.equal((await client.get(path, { key: null })).status, 200)
  t.equal((await s.call('artifact.delete', { artifact_id })).status, 204)
  t.equal((await client.get(path, { key: null })).status, 404)
})

t.test('the list is filtered and paged, newest first', async (t) => {
  const mine = await editor(s, 'lists')
  const ids: unknown[] = []
  for (const [n, mime] of ['image/png', 'image/gif', 'text/csv', 'image/webp'].entries())
    ids.unshift(
      (await created(t, `list ${n}`, Buffer.from('x'), { fields: { mime }, ...as(mine) }))['id'],
    )
  const page = async (input: Open) => mine.ok('artifact.list', input)
  t.same(
    listOf(await page({})).map(({ id }) => id),
    ids,
  )
  t.same(
    listOf(await page({ mime: 'image/' })).map(({ id }) => id),
    ids.filter((_, index) => index !== 1),
  )
  const first = await page({ limit: 3 })
  t.equal(first['has_more'], true)
  const rest = await page({ limit: 3, cursor: first['next_cursor'] })
  t.same(
    [...listOf(first), ...listOf(rest)].map(({ id }) => id),
    ids,
  )
  await mine.refused('artifact.list', { cursor: 'x' }, 400, 'bad_request')
  t.same(listOf(await page({ step_id: 'x' })), [])
})

t.test('the text of an Office file is extracted', async (t) => {
  const mime = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
  const whole = await created(t, 'a.docx', docx(paragraph('Hello')), {
    fields: { mime, convert: 'true' },
  })
  t.same(whole['conversion'], { state: 'converting' })
  const done = await until(
    () => s.ok('artifact.get', { artifact_id: whole['id'] }),
    ({ conversion }) => (conversion as Open | undefined)?.['state'] !== 'converting',
  )
  t.same(done['conversion'], { state: 'ready' })
  const broken = await created(t, 'b.docx', Buffer.from('no'), {
    fields: { mime, convert: 'true' },
  })
  const failed = await until(
    () => s.ok('artifact.get', { artifact_id: broken['id'] }),
    ({ conversion }) => (conversion as Open | undefined)?.['state'] !== 'converting',
  )
  t.match(failed, { conversion: { state: 'failed', error: /not a DOCX.*upload it again/ } })
  t.equal((await s.call('artifact.delete', { artifact_id: broken['id'] })).status, 204)
})
