/** Artifacts over HTTP: uploads of every form, read access, deletion and the storage quota. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { createBlobs } from '../../../nodes/nats/blobs.ts'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { as, editor, person } from '../support/people.ts'
import { artifactClient, codeOf, type FormPart, faultsOf, type Open, sha256 } from './client.ts'
import { connectTo, storedChunks, storedFiles } from './store.ts'

t.setTimeout(120_000)
const MIB = 1_048_576
const s = await service({ BATON_ARTIFACT_MAX: '16MiB', BATON_ARTIFACT_QUOTA: '40MiB' })
const nats = await connectTo(s.server.access)
t.teardown(() => s.stop())
t.teardown(() => nats.close())
const client = artifactClient(s.url, s.key)
const { upload, put, content } = client
const organization_quota = async (): Promise<Open> => {
  const { generated_at: _, ...quota } = await s.ok('artifact.quota')
  return quota
}
const stored = () => storedFiles(nats)
const chunks = () => storedChunks(nats)
const file = (bytes: Uint8Array, type = 'image/png'): FormPart => ['file', bytes, { type }]
const created = async (t: Test, name: string, bytes: Uint8Array, options = {}): Promise<Open> => {
  const { status, body } = await put(name, bytes, options)
  t.equal(status, 201)
  return body
}

t.test('an upload is private, exact, and counted', async (t) => {
  const bytes = randomBytes(700_000)
  const before = await organization_quota()
  const { status, body } = await upload([
    ['name', 'plans/a "b".png'],
    ['mime', 'image/png; charset=x'],
    ['size_bytes', String(bytes.length)],
    ['metadata', '{"kind":"plan","n":[1]}'],
    ['convert', 'true'],
    file(bytes, 'text/html'),
  ])
  t.equal(status, 201)
  t.same(Object.keys(body).sort(), [
    'created_at',
    'created_by',
    'id',
    'metadata',
    'mime_type',
    'name',
    'sha256',
    'size_bytes',
    'visibility',
  ])
  t.match(body, {
    id: /^art_[A-Za-z0-9]+$/,
    visibility: 'private',
    name: 'plans/a "b".png',
    mime_type: 'image/png',
    size_bytes: bytes.length,
    sha256: sha256(bytes),
    metadata: { kind: 'plan', n: [1] },
  })
  t.same(await organization_quota(), {
    ...before,
    used_bytes: Number(before['used_bytes']) + bytes.length,
    artifact_count: Number(before['artifact_count']) + 1,
    pending_count: 0,
  })
  t.match(await s.ok('artifact.quota_settings'), await organization_quota())
  const record = await s.ok('artifact.get', { artifact_id: body['id'] })
  t.match(record, { ...body, owned_by: body['created_by'] })
  t.match(listOf(await s.ok('artifact.list')), [record])
  const read = await content(body['id'])
  t.equal(read.status, 200)
  t.ok(read.bytes.equals(bytes))
  t.same(
    ['content-type', 'content-length', 'content-disposition', 'x-content-type-options', 'etag'].map(
      (name) => read.headers.get(name),
    ),
    [
      'image/png',
      String(bytes.length),
      "inline; filename*=utf-8''a%20%22b%22.png",
      'nosniff',
      `"sha256-${sha256(bytes)}"`,
    ],
  )
  t.match(
    (await content(body['id'], { query: '?download=true' })).headers.get('content-disposition'),
    /^attachment;/,
  )
})

t.test('forms of all clients: any order, without a length, with nothing in the file', async (t) => {
  const bytes = randomBytes(300_000)
  const fields: FormPart[] = [
    ['name', 'a'],
    ['size_bytes', '300000'],
    ['metadata', '{}'],
  ]
  for (const chunked of [false, true])
    for (const parts of [
      [...fields, file(bytes)],
      [file(bytes), ...fields],
      [...fields.slice(0, 1), file(bytes), ...fields.slice(1)],
    ]) {
      const { status, body } = await upload(parts, { chunked })
      t.equal(status, 201)
      t.match(body, {
        name: 'a',
        size_bytes: 300_000,
        sha256: sha256(bytes),
        mime_type: 'image/png',
      })
      t.ok((await content(body['id'])).bytes.equals(bytes))
      t.equal((await s.call('artifact.delete', { artifact_id: body['id'] })).status, 204)
    }
  const empty = await upload(
    [
      ['name', 'nothing'],
      ['size_bytes', '0'],
      ['file', '', {}],
    ],
    {
      chunked: true,
    },
  )
  t.match(empty, {
    status: 201,
    body: { size_bytes: 0, mime_type: 'application/octet-stream', sha256: sha256(Buffer.alloc(0)) },
  })
  const read = await content(empty.body['id'])
  t.equal(read.status, 200)
  t.equal(read.headers.get('content-length'), '0')
  t.equal(read.bytes.length, 0)
})

t.test('an invalid form is refused, names the fault and leaves nothing', async (t) => {
  const before = await organization_quota()
  const [names_before, chunks_before] = [await stored(), await chunks()]
  const bytes = randomBytes(400_000)
  const whole: FormPart[] = [['name', 'a'], file(bytes)]
  const cases: [readonly FormPart[], string[]][] = [
    ...[
      'run_id',
      'step_id',
      'job_id',
      'attempt',
      'visibility',
      'owner',
      'owned_by',
      'tags',
      'anything',
      '__proto__',
      'constructor',
    ].flatMap((name): [readonly FormPart[], string[]][] => [
      [[[name, 'x'], ...whole], [name]],
      [[...whole, [name, 'x']], [name]],
    ]),
    [[file(bytes)], ['name']],
    [[['name', ''], file(bytes)], ['name']],
    [[['name', 'é'.repeat(257)], file(bytes)], ['name']],
    [[['name', Buffer.from([0xff])], file(bytes)], ['name']],
    [[['name', 'a'], ...whole], ['name']],
    [[['name', 'a']], ['file']],
    [[...whole, file(bytes)], ['file']],
    [[['mime', 'no type'], ...whole], ['mime']],
    [[['size_bytes', '-1'], ...whole], ['size_bytes']],
    [[['size_bytes', '1e3'], ...whole], ['size_bytes']],
    [[['size_bytes', '399999'], ...whole], ['size_bytes']],
    [[['size_bytes', '400001'], ...whole], ['size_bytes']],
    [[...whole, ['size_bytes', '1']], ['size_bytes']],
    [[['metadata', '{'], ...whole], ['metadata']],
    [[['metadata', '[]'], ...whole], ['metadata']],
    [[['metadata', 'null'], ...whole], ['metadata']],
    [[...whole, ['metadata', '"text"']], ['metadata']],
    [[['metadata', `{"a":"${'x'.repeat(65_536)}"}`], ...whole], ['metadata']],
    [[['convert', 'yes'], ...whole], ['convert']],
  ]
  for (const [parts, fields] of cases) {
    const refused = await upload(parts)
    t.match([refused.status, codeOf(refused)], [400, 'bad_request'], fields.join())
    t.same(faultsOf(refused), fields)
  }
  const json = { name: 'a', file: 'eA==' }
  await s.refused('artifact.create', json, 415, 'unsupported_media_type')
  const cut = await client.get('/v1/projects/default/artifacts', {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=x', 'content-length': '0' },
  })
  t.equal(cut.status, 400)
  t.same(await organization_quota(), before)
  t.same([await stored(), await chunks()], [names_before, chunks_before])
})

t.test('a file over the limit, or over the quota, is refused', async (t) => {
  const before = await organization_quota()
  const kept = await stored()
  for (const options of [{}, { chunked: true }, { fields: { size_bytes: 17 * MIB } }]) {
    const large = await put('large', Buffer.alloc(17 * MIB), options)
    t.match([large.status, codeOf(large)], [413, 'payload_too_large'])
  }
  const filled: unknown[] = []
  for (let n = 0; n < 2; n++)
    filled.push((await created(t, `fill ${n}`, Buffer.alloc(15 * MIB)))['id'])
  const used = await organization_quota()
  for (const fields of [{}, { size_bytes: 12 * MIB }]) {
    const over = await put('over', Buffer.alloc(12 * MIB), { fields })
    t.match([over.status, codeOf(over)], [409, 'artifact_quota_exceeded'])
    t.match((over.body['error'] as Open)['details'], {
      used_bytes: used['used_bytes'],
      limit_bytes: 40 * MIB,
    })
    t.same(await organization_quota(), used, 'nothing stays reserved')
  }
  for (const artifact_id of filled) await s.call('artifact.delete', { artifact_id })
  t.same(await organization_quota(), before)
  t.same(await stored(), kept)
})

t.test('an upload whose client goes away leaves nothing', async (t) => {
  const before = await organization_quota()
  const kept = await stored()
  const socket = await client.begin(8 * MIB, 3 * MIB)
  await until(organization_quota, ({ pending_count }) => pending_count === 1)
  socket.destroy()
  await until(organization_quota, ({ pending_count }) => pending_count === 0)
  t.same(await organization_quota(), before)
  await until(stored, (now) => now.length === kept.length)
})

t.test('a repeat under the same key is answered with the first artifact', async (t) => {
  const headers = { 'idempotency-key': 'k1' }
  const first = await created(t, 'first', Buffer.from('one'), { headers })
  const before = await organization_quota()
  for (let n = 0; n < 2; n++) {
    const again = await put('second', randomBytes(2 * MIB), { headers })
    t.equal(again.status, 200)
    t.same(again.body, first)
  }
  t.same(await organization_quota(), before)
  const other = await editor(s, 'other key')
  t.equal((await put('mine', Buffer.from('x'), { headers, ...as(other) })).status, 201)
  const pending = await client.begin(MIB, 1000, { 'Idempotency-Key': 'k2' })
  await until(organization_quota, ({ pending_count }) => pending_count === 1)
  const second = { headers: { 'idempotency-key': 'k2' } }
  const during = await put('during', Buffer.from('x'), second)
  t.match([during.status, codeOf(during)], [409, 'artifact_conflict'])
  pending.destroy()
  await until(organization_quota, ({ pending_count }) => pending_count === 0)
  const after = await put('after', Buffer.from('x'), second)
  t.equal(after.status, 201, 'the key of an upload that was given up can be used again')
  const bad = { headers: { 'idempotency-key': 'k3' } }
  t.equal((await put('', Buffer.from('x'), bad)).status, 400)
  t.equal((await put('good', Buffer.from('x'), bad)).status, 201)
  await s.call('artifact.delete', { artifact_id: after.body['id'] })
  const deleted = await put('again', Buffer.from('x'), second)
  t.match([deleted.status, codeOf(deleted)], [409, 'artifact_conflict'])
  const long = await put('a', Buffer.from('x'), { headers: { 'idempotency-key': 'x'.repeat(256) } })
  t.equal(long.status, 400)
  const at_once = await Promise.all(
    Array.from({ length: 6 }, () =>
      put('at once', randomBytes(1000), { headers: { 'idempotency-key': 'k4' } }),
    ),
  )
  t.equal(at_once.filter(({ status }) => status === 201).length <= 1, true)
  t.ok(at_once.every(({ status }) => status === 201 || status === 200 || status === 409))
})

t.test(
  'private artifacts exist for their owner only; anyone else needs a permission',
  async (t) => {
    const [mine, other, viewer] = await Promise.all([
      editor(s, 'mine'),
      editor(s, 'other'),
      person(s, 'viewer', 'role_viewer'),
    ])
    const { id: artifact_id } = await created(t, 'secret', Buffer.from('secret'), as(mine))
    t.match(await mine.ok('artifact.get', { artifact_id }), { id: artifact_id, owned_by: mine.id })
    t.ok(listOf(await mine.ok('artifact.list')).some(({ id }) => id === artifact_id))
    for (const one of [other, viewer]) {
      await one.refused('artifact.get', { artifact_id }, 404, 'not_found')
      await one.refused('artifact.signed_url', { artifact_id }, 404, 'not_found')
      await one.refused('artifact.delete', { artifact_id }, 404, 'not_found')
      t.equal((await content(artifact_id, as(one))).status, 404)
      t.notOk(listOf(await one.ok('artifact.list')).some(({ id }) => id === artifact_id))
    }
    const refused = await put('x', Buffer.from('x'), as(viewer))
    t.match([refused.status, codeOf(refused)], [403, 'permission_denied'])
    t.match(refused.body, { error: { details: { permission: 'service.project.edit' } } })
    t.equal((await put('x', Buffer.from('x'), { key: null })).status, 401)
    t.match(await s.call('artifact.delete', { artifact_id }), { status: 204 }, 'an administrator')
    await mine.refused('artifact.get', { artifact_id }, 404, 'not_found')
  },
)

t.test('a deletion removes the bytes first', async (t) => {
  const before = await organization_quota()
  const { id: artifact_id } = await created(t, 'gone', randomBytes(500_000))
  const blobs = createBlobs(nats)
  const name = String((await stored()).find((one) => one.includes(String(artifact_id))))
  t.ok(await blobs.get(name))
  t.equal((await s.call('artifact.delete', { artifact_id })).status, 204)
  t.equal(await blobs.get(name), undefined)
  t.same(await organization_quota(), before)
  await s.refused('artifact.delete', { artifact_id }, 404, 'not_found')
  await s.refused('artifact.get', { artifact_id }, 404, 'not_found')
  await s.refused('artifact.content', { artifact_id }, 404, 'not_found')
  t.notOk(listOf(await s.ok('artifact.list')).some(({ id }) => id === artifact_id))
  t.same(await organization_quota(), before, 'a repeat refunds nothing')
})

t.test('a deleted project loses its artifacts, and its uploads in progress', async (t) => {
  const before = await organization_quota()
  const kept = (await stored()).sort()
  const project = String((await s.ok('project.create', { name: 'ends' }))['id'])
  for (const size of [0, 1000, 600_000])
    await created(t, `of ${size} bytes`, randomBytes(size), { project })
  const late = client.slow({}, project)
  await until(organization_quota, ({ pending_count }) => pending_count === 1)
  await s.call('project.delete', { project })
  t.match(await late.finish(), /^HTTP\/1.1 404 [\s\S]*"not_found"/)
  t.same(
    await until(organization_quota, (now) => now['artifact_count'] === before['artifact_count']),
    before,
  )
  t.same((await until(stored, (all) => all.length <= kept.length)).sort(), kept)
})
