/**
 * The HTTP edge over real sockets: routing, validation, errors, retries, caches and graceful
 * shutdown.
 */
import net from 'node:net'
import { gzipSync } from 'node:zlib'
import { Validator } from '@seriousme/openapi-schema-validator'
import t, { type Test } from 'tap'
import { type Code, refuse } from '../../../protocol/errors.ts'
import { type Body, gateway, home, RUN, type TestGateway, until } from '../support/edge-world.ts'
import { ORG } from '../support/given.ts'

const run = { id: RUN, status: 'running', queue: 'default' }
const spec = { steps: [{ kind: 'action', config: { action_name: 'mail.send' } }] }
/** Runs a test with a gateway that is stopped afterwards. */
const on = (
  name: string,
  test: (t: Test, at: TestGateway) => Promise<void>,
  more: Parameters<typeof gateway>[0] = {},
) =>
  t.test(name, async (t) => {
    const at = await gateway(more)
    at.on['run.start'] = ({ id }) => ({ reply: { ...run, id } })
    t.teardown(() => at.server.stop())
    await test(t, at)
  })
const fieldsOf = (body: Body): string[] => body.error.details.fields.map(({ field }) => field)

on('a row answers on its route with its status, its reply and a request id', async (t, at) => {
  const started = await at.call(
    'POST',
    '/v1/projects/default/runs',
    { spec },
    { 'x-request-id': 'mine-1' },
  )
  t.equal(started.status, 202)
  t.match(started.body, { status: 'running' })
  t.equal(started.headers['content-type'], 'application/json')
  t.equal(started.headers['content-length'], String(started.text.length))
  t.equal(started.headers['x-request-id'], 'mine-1')
  t.match(at.sent('run.start')[0], {
    project: home,
    kind: 'run',
    name: 'run.start',
    input: { spec, project: home },
    origin: {
      request_id: 'mine-1',
      principal: { type: 'service_account' },
      credential: { type: 'api_key' },
      ip: '127.0.0.1',
    },
  })
  const other = await at.call('GET', '/v1/projects', undefined, {
    'x-request-id': 'not sane\u00e9',
  })
  t.match(other.headers['x-request-id'], /^req_[0-9a-f]{24}$/)
  t.match(other.body, { items: [{ handle: 'default' }], has_more: false })
  t.notMatch(JSON.stringify(at.logs), at.root, 'no log line carries the credential')
})

on('literal segments precede slots, and segments are decoded after routing', async (t, at) => {
  at.views['run.get'] = ({ id }) => (id === RUN ? run : refuse('not_found'))
  t.equal((await at.call('GET', `/v1/projects/default/runs/${RUN}`)).status, 200)
  t.equal(
    (await at.call('GET', `/v1/projects/d%65fault/runs/${RUN.replace('_', '%5F')}`)).status,
    200,
  )
  const bulk = await at.call('POST', '/v1/projects/default/runs/cancellations', {
    run_ids: ['nonsense'],
  })
  t.match(bulk.body, { results: [{ run_id: 'nonsense', ok: false, error: { code: 'not_found' } }] })
  const broken = await at.call('GET', '/v1/projects/default/runs/%zz')
  t.equal(broken.status, 400)
  t.same(fieldsOf(broken.body), ['path'])
})

on('unknown paths, methods and records have distinct answers', async (t, at) => {
  t.match(await at.call('GET', '/v1/nothing'), {
    status: 404,
    body: { error: { code: 'not_found' } },
  })
  const other = await at.call('PUT', '/v1/projects/default/runs')
  t.match(other, { status: 405, body: { error: { code: 'method_not_allowed' } } })
  t.equal(other.headers.allow, 'POST, GET, HEAD, OPTIONS')
  t.match(await at.call('GET', '/v1/projects/other/runs'), {
    status: 404,
    body: { error: { code: 'not_found' } },
  })
  t.match(
    await at.call('POST', '/v1/projects/default/runs/run_7/cancel'),
    { status: 404 },
    'an invalid id is not found',
  )
  t.equal(at.commands.length, 0)
  const head = await at.call('HEAD', '/v1/projects')
  t.match(head, { status: 200, text: '' })
  t.match(await at.call('HEAD', '/nowhere'), { status: 404, text: '' })
})

on(
  'credentials: 401 if invalid, 403 without the permission, 503 if they cannot be checked',
  async (t, at) => {
    t.match(await at.call('GET', '/v1/projects', undefined, { authorization: 'Bearer bat_0' }), {
      status: 401,
      body: { error: { code: 'unauthorized' } },
    })
    const viewer = at.change(home, 'principal.create', {
      name: 'reader',
      role_ids: ['role_viewer'],
    })
    const key = at.projectKey(home, 'reader', {
      principal_id: viewer.id,
      allow_unassigned_principal: true,
    })
    const refused = await at.call(
      'POST',
      '/v1/projects/default/runs',
      { spec },
      { authorization: `Bearer ${key.text}` },
    )
    t.equal(refused.status, 403)
    t.match(refused.body, {
      error: { code: 'permission_denied', details: { permission: 'service.runs.operate' } },
    })
    at.edge.fresh = false
    let waits = true
    const asking = at.call('GET', '/v1/projects').finally(() => {
      waits = false
    })
    await until(() => {
      if (waits) at.edge.advance(50)
      return !waits
    }, 'the end of the wait for a lease')
    const unsure = await asking
    t.match(unsure, { status: 503, body: { error: { code: 'service_unavailable' } } })
    t.equal(unsure.headers['retry-after'], '1')
  },
)

on('every invalid field of a body is reported with its path', async (t, at) => {
  const faulty = {
    zap: 1,
    priority: 'high',
    spec: {
      steps: [
        { kind: 'action', config: { action: 'x' } },
        { kind: 'sleep', config: { duration: 'soon' } },
        { kind: 'dance' },
      ],
    },
  }
  const { status, body } = await at.call('POST', '/v1/projects/default/runs', faulty)
  t.equal(status, 400)
  t.equal(body.error.code, 'bad_request')
  t.same(fieldsOf(body).sort(), [
    'priority',
    'spec.steps[0].config.action',
    'spec.steps[0].config.action_name',
    'spec.steps[1].config.duration',
    'spec.steps[2].kind',
    'zap',
  ])
  t.match(
    body.error.details.fields.find(({ field }) => field === 'spec.steps[2].kind'),
    { message: /action, sleep, wait_for_event/, actual: 'dance' },
  )
  t.same(
    fieldsOf((await at.call('POST', '/v1/projects/default/runs', {})).body),
    ['definition_id'],
    'rules beyond the schema are checked, too',
  )
  t.same(fieldsOf((await at.call('POST', '/v1/projects/default/runs')).body), ['body'])
  t.equal(at.commands.length, 0)
})

on('bodies of invalid JSON are refused', async (t, at) => {
  const post = (body: string | Buffer, headers = {}) =>
    at.call('POST', `/v1/projects/default/runs/${RUN}/signals`, body, headers)
  const deep = `{"name":"x","payload":${'{"a":'.repeat(70)}1${'}'.repeat(70)}}`
  for (const [text, field] of [
    ['{"name"', 'body'],
    ['[]', 'body'],
    ['"x"', 'body'],
    ['{"name":"x","__proto__":{}}', '__proto__'],
    ['{"name":"x","payload":{"constructor":{"prototype":{}}}}', 'payload.constructor'],
    [deep, /^payload(\.a)+$/],
  ] as const) {
    const got = await post(text)
    t.equal(got.status, 400, text.slice(0, 40))
    t.match(fieldsOf(got.body)[0], field)
  }
  t.equal((await post(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).status, 400)
  t.match(await post('a=1', { 'content-type': 'application/x-www-form-urlencoded' }), {
    status: 415,
    body: { error: { code: 'unsupported_media_type' } },
  })
})

on('bodies with a content coding are refused', async (t, at) => {
  at.on['run.signal'] = () => ({ reply: run })
  const post = (path: string, body: string | Buffer, headers: Record<string, string>) =>
    at.call('POST', path, body, headers)
  const gzipped = gzipSync('{"name":"go"}')
  const signals = `/v1/projects/default/runs/${RUN}/signals`
  for (const [path, body, headers] of [
    [signals, gzipped, { 'content-encoding': 'gzip' }],
    [signals, '{"name":"go"}', { 'content-encoding': 'GZIP, identity' }],
    ['/v1/projects/default/mcp', gzipped, { 'content-encoding': 'gzip' }],
    ['/v1/projects/default/artifacts', gzipped, { 'content-encoding': 'br' }],
    ['/v1/triggers/http/hook', gzipped, { 'content-encoding': 'gzip' }],
  ] as const) {
    const got = await post(path, body, headers)
    t.equal(got.status, 415, path)
    t.equal(got.headers['accept-encoding'], 'identity')
    t.match(got.body.error, {
      code: 'unsupported_media_type',
      message: /Content-Encoding/,
      details: { content_encoding: headers['content-encoding'] },
    })
  }
  t.equal(at.commands.length, 0)
  t.equal((await post('/v1/no/path', gzipped, { 'content-encoding': 'gzip' })).status, 404)
  const plain = await post(signals, '{"name":"go"}', { 'content-encoding': 'Identity' })
  t.ok(plain.status < 300)
})

on('a refusal with a code of a newer release is answered with 503', async (t, at) => {
  at.on['key.revoke'] = () => refuse('code_of_a_newer_release' as Code)
  const path = '/v1/projects/default/api-keys/key_01AAAAAAAAAAAAAAAAAAAAAA0C'
  const got = await at.call('DELETE', path)
  t.equal(got.status, 503)
  t.equal(got.body.error.code, 'service_unavailable')
})

on('an empty body with a content type counts as no body', async (t, at) => {
  at.on['run.cancel'] = () => ({ reply: run })
  const cancelled = await at.call('POST', `/v1/projects/default/runs/${RUN}/cancellations`, '', {
    'content-type': 'application/json',
  })
  t.match(cancelled, { status: 204, text: '' })
  t.notOk('content-length' in cancelled.headers)
  t.match(await at.call('POST', `/v1/projects/default/runs/${RUN}/cancel`, { reason: 'late' }), {
    status: 200,
    body: run,
  })
  t.same(
    at.sent('run.cancel').map(({ id, input }) => [id, (input as { reason?: string }).reason]),
    [
      [RUN, undefined],
      [RUN, 'late'],
    ],
  )
})

on('oversized bodies are refused, and the connection stays usable', async (t, at) => {
  const big = JSON.stringify({ spec, input: { text: 'x'.repeat(2_000_000) } })
  t.match(await at.call('POST', '/v1/projects/default/runs', big), {
    status: 413,
    body: { error: { code: 'payload_too_large' } },
  })
  const socket = net.connect(at.port, '127.0.0.1')
  let got = ''
  socket.on('data', (chunk) => {
    got += chunk
  })
  const head = (length: number) =>
    `POST /v1/projects/default/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${at.root}\r\n` +
    `content-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
  const small = JSON.stringify({ spec })
  socket.write(head(big.length) + big + head(small.length) + small)
  await until(() => got.includes('202 Accepted'), 'the second answer')
  t.match(got, /^HTTP\/1\.1 413 /)
  socket.destroy()
})

on(
  'the query: numbers, booleans, repeated and comma-separated lists, unknown names',
  async (t, at) => {
    at.views['run.list'] = () => ({ items: [] })
    at.views['workflow.versions'] = () => ({ items: [] })
    t.match(
      await at.call('GET', '/v1/projects/default/runs?status=queued,running&status=failed&limit=7'),
      { status: 200, body: { items: [], data: [], has_more: false } },
    )
    t.match(at.questions.at(-1), {
      name: 'run.list',
      project: home,
      input: { status: ['queued', 'running', 'failed'], limit: 7 },
    })
    await at.call('GET', '/v1/projects/default/runs?status=queued,&include=')
    t.match(at.questions.at(-1)?.input, { status: ['queued'], include: [] })
    await at.call('GET', '/v1/projects/default/workflows/wfd_1/versions?include_spec=true')
    t.match(at.questions.at(-1)?.input, { id: 'wfd_1', include_spec: true, limit: 20 })
    for (const [query, field] of [
      ['limit=0', 'limit'],
      ['limit=201', 'limit'],
      ['limit=ten', 'limit'],
      ['status=lost', 'status[0]'],
      ['status=', 'status[0]'],
      ['status=,', 'status[0]'],
      ['colour=red', 'colour'],
      ['limit=1&limit=2', 'limit'],
      ['queue=%ff', 'query'],
    ] as const) {
      const got = await at.call('GET', `/v1/projects/default/runs?${query}`)
      t.equal(got.status, 400, query)
      t.same(fieldsOf(got.body), [field])
    }
  },
)

on('pages continue with sealed cursors that are valid only for their list', async (t, at) => {
  at.views['run.list'] = ({ after }) =>
    after ? { items: [{ id: 'b' }] } : { items: [{ id: 'a' }], position: [7, 'a'] }
  const first = await at.call('GET', '/v1/projects/default/runs?status=failed')
  t.match(first.body, { items: [{ id: 'a' }], has_more: true, next_cursor: String })
  const next = await at.call(
    'GET',
    `/v1/projects/default/runs?status=failed&cursor=${first.body.next_cursor}`,
  )
  t.same(next.body, { items: [{ id: 'b' }], data: [{ id: 'b' }], has_more: false })
  t.same(at.questions.at(-1)?.input.after, [7, 'a'])
  for (const query of [`status=queued&cursor=${first.body.next_cursor}`, 'cursor=zzzz'])
    t.same(fieldsOf((await at.call('GET', `/v1/projects/default/runs?${query}`)).body), ['cursor'])
})

on('the audit log of all partitions is one list, newest first', async (t, at) => {
  const entry = (id: string, second: number) => ({
    id,
    created_at: `2031-02-03T04:05:0${second}.000Z`,
  })
  at.world.everywhere = (async () => [
    { items: [entry('a', 5), entry('b', 3)], position: [0, 'b'] },
    { items: [entry('c', 4)] },
  ]) as never
  const page = await at.call('GET', '/v1/audit-logs?limit=2')
  t.same(
    page.body.items.map(({ id }) => id),
    ['a', 'c'],
  )
  t.equal(page.body.has_more, true)
})

on(
  'rate limits are in the headers of every answer, and end in 429',
  async (t, at) => {
    const first = await at.call('GET', '/v1/projects')
    t.match(first.headers, {
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-scope': 'key',
      'x-ratelimit-policy': '2;w=60',
      'x-ratelimit-reset': /^\d+$/,
    })
    t.match((await at.call('GET', '/v1/projects/nope')).headers, { 'x-ratelimit-remaining': '0' })
    const third = await at.call('GET', '/v1/projects')
    t.match(third, { status: 429, body: { error: { code: 'rate_limit_exceeded' } } })
    t.match(third.headers['retry-after'], /^\d+$/)
  },
  { rate: { key: 2, organization: 100, window_seconds: 60 } },
)

on(
  'refused requests of one key do not count towards the organization',
  async (t, at) => {
    const mine = async () => (await at.call('GET', '/v1/projects')).status
    t.same([await mine(), await mine(), await mine(), await mine()], [200, 429, 429, 429])
    const other = await at.call('GET', '/v1/projects', undefined, {
      authorization: `Bearer ${at.edge.projectKey(home, 'other').text}`,
    })
    t.match([other.status, other.headers['x-ratelimit-scope']], [200, /./])
  },
  { rate: { key: 1, organization: 2, window_seconds: 60 } },
)

on('CORS allows pages of configured origins only', async (t, at) => {
  const preflight = await at.call('OPTIONS', '/v1/projects/default/runs', undefined, {
    origin: 'https://console.example',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization',
  })
  t.match(preflight, {
    status: 204,
    headers: {
      'access-control-allow-origin': 'https://console.example',
      'access-control-allow-methods': 'POST, GET, HEAD, OPTIONS',
      'access-control-allow-headers': 'authorization',
    },
  })
  t.equal(
    (await at.call('GET', '/v1/projects', undefined, { origin: 'https://console.example' }))
      .headers['access-control-allow-origin'],
    'https://console.example',
  )
  t.notOk(
    'access-control-allow-origin' in
      (await at.call('OPTIONS', '/v1/projects', undefined, { origin: 'https://evil.example' }))
        .headers,
  )
})

on(
  'an idempotency key yields the same command, and the fingerprint shows another body',
  async (t, at) => {
    at.on['run.cancel'] = () => ({ reply: {} })
    const cancel = (body: object, key?: string) =>
      at.call(
        'POST',
        `/v1/projects/default/runs/${RUN}/cancellations`,
        body,
        key === undefined ? {} : { 'idempotency-key': key },
      )
    for (const key of ['k', 'k', 'l']) t.equal((await cancel({ reason: 'go' }, key)).status, 204)
    await cancel({ reason: 'stop' }, 'k')
    await cancel({ reason: 'go' })
    const [a, b, c, d, e] = at.sent('run.cancel')
    t.equal(a?.command_id, b?.command_id)
    t.equal(a?.fingerprint, b?.fingerprint)
    t.not(a?.command_id, c?.command_id)
    t.equal(a?.command_id, d?.command_id)
    t.not(a?.fingerprint, d?.fingerprint)
    t.equal(e?.fingerprint, undefined)
    t.equal((await cancel({ reason: 'go' }, 'x'.repeat(256))).status, 400)
  },
)

on(
  'the key in the body of a start yields the same run as a new command; the header repeats the command',
  async (t, at) => {
    const start = (idempotency_key: string | undefined, header?: string) =>
      at.call(
        'POST',
        '/v1/projects/default/runs',
        { spec, ...(idempotency_key !== undefined && { idempotency_key }) },
        header === undefined ? {} : { 'idempotency-key': header },
      )
    for (const [key, header] of [
      ['k'],
      [' k ', 'other'],
      ['l'],
      ['  ', 'same'],
      [undefined, 'same'],
    ] as const)
      await start(key, header)
    const [a, b, c, d, e] = at.sent('run.start')
    t.equal(a?.id, b?.id)
    t.not(a?.command_id, b?.command_id)
    t.not(a?.id, c?.id)
    t.not(a?.id, d?.id)
    t.equal(e?.id !== undefined, true)
    await start(undefined, 'again')
    await start(undefined, 'again')
    const [f, g] = at.sent('run.start').slice(-2)
    t.strictSame([f?.id, f?.command_id], [g?.id, g?.command_id], 'one command, sent twice')
    t.not(f?.fingerprint, undefined, 'another request under the key is found out')
    at.on['run.signal'] = () => ({ reply: { source_event_id: 'sevt_1' } })
    for (const _ of ['once', 'again'])
      await at.call(
        'POST',
        `/v1/projects/default/runs/${RUN}/signals`,
        { name: 'go', idempotency_key: 'k' },
        { 'idempotency-key': 'k' },
      )
    const [h, i] = at.sent('run.signal')
    t.not(h?.command_id, i?.command_id, 'the run itself knows the key')
    t.strictSame([h?.fingerprint, i?.fingerprint], [undefined, undefined])
  },
)

on('a new key is shown once, again for a repeat, and is valid at once', async (t, at) => {
  const created = await at.call(
    'POST',
    '/v1/api-keys',
    { name: 'ops', role: 'Viewer' },
    { 'idempotency-key': 'k' },
  )
  t.equal(created.status, 201)
  t.match(created.body, { name: 'ops', key: /^bat_/ })
  t.equal(created.body.key_prefix, created.body.key.slice(0, 8))
  t.notMatch(JSON.stringify(at.commands), created.body.key)
  t.same(at.forgotten, [ORG])
  t.equal(
    (
      await at.call('GET', '/v1/projects', undefined, {
        authorization: `Bearer ${created.body.key}`,
      })
    ).status,
    200,
  )
  t.equal((await at.call('DELETE', `/v1/organization/api-keys/${created.body.id}`)).status, 204)
  t.equal(
    (
      await at.call('GET', '/v1/projects', undefined, {
        authorization: `Bearer ${created.body.key}`,
      })
    ).status,
    401,
  )
  // The first request may have reached a gateway that died before it notified the other gateways. A
  // repeat therefore notifies them again.
  at.forgotten.length = 0
  t.equal((await at.call('DELETE', `/v1/organization/api-keys/${created.body.id}`)).status, 404)
  t.same(at.forgotten, [ORG], 'a repeat also clears the caches of all gateways')
})

on(
  'a workflow gets a handle from the organization, and is started by id or handle',
  async (t, at) => {
    at.on['handle.reserve'] = () => ({ reply: undefined })
    const created = await at.call('POST', '/v1/projects/default/workflows', {
      name: 'Send mail',
      spec,
    })
    t.match(created, { status: 201, body: { handle: 'send-mail', latest_version: 1 } })
    t.match(at.sent('handle.reserve')[0], {
      kind: 'organization',
      id: ORG,
      input: { id: created.body.id, handle: 'send-mail', project: home },
    })
    at.on['workflow.run'] = ({ id }) => ({ reply: { ...run, id } })
    for (const name of [created.body.id, 'send-mail'])
      t.equal((await at.call('POST', `/v1/projects/default/workflows/${name}/runs`)).status, 202)
    t.match(
      at.sent('workflow.run').map(({ input }) => input),
      [1, 2].map(() => ({ definition: { id: created.body.id, version: 1, spec } })),
    )
    t.equal(
      (await at.call('POST', '/v1/projects/default/runs', { definition_id: 'nothing' })).status,
      404,
    )
    at.on['handle.reserve'] = () => refuse('already_exists', { handle: 'send-mail' })
    t.match(await at.call('POST', '/v1/projects/default/workflows', { name: 'Send mail', spec }), {
      status: 409,
      body: { error: { code: 'already_exists' } },
    })
  },
)

on('a bulk request answers 200 with every outcome in order', async (t, at) => {
  const ids = [RUN, RUN.replace('0C', '0D'), RUN.replace('0C', '0E')]
  at.on['run.retry'] = ({ id }) =>
    id === ids[1] ? refuse('run_not_failed') : { reply: { ...run, id, status: 'queued' } }
  const got = await at.call('POST', '/v1/projects/default/runs/retries', {
    run_ids: ids,
    reason: 'again',
  })
  t.equal(got.status, 200)
  t.match(got.body.results, [
    { run_id: ids[0], ok: true, status: 'queued' },
    { run_id: ids[1], ok: false, error: { code: 'run_not_failed', message: String } },
    { run_id: ids[2], ok: true },
  ])
  t.same(at.sent('run.retry')[0]?.input, { reason: 'again', project: home, id: ids[0] })
})

on(
  'a run is found without its project in the path, but not by the key of another project',
  async (t, at) => {
    at.views['locate'] = ({ run_id }) => (run_id === RUN ? { project: home } : {})
    at.views['run.steps'] = () => ({ items: [] })
    t.match(await at.call('GET', `/v1/runs/${RUN}/steps`), { status: 200, body: { items: [] } })
    t.equal(at.questions.at(-1)?.project, home)
    t.equal((await at.call('GET', '/v1/runs/run_01AAAAAAAAAAAAAAAAAAAAAA0D/steps')).status, 404)
    const other = await at.call('POST', '/v1/projects', { name: 'Other' })
    const key = at.projectKey(other.body.id, 'foreign')
    t.equal(
      (
        await at.call('GET', `/v1/runs/${RUN}/steps`, undefined, {
          authorization: `Bearer ${key.text}`,
        })
      ).status,
      404,
    )
    t.equal(
      (
        await at.call('GET', `/v1/projects/default/runs/${RUN}/steps`, undefined, {
          authorization: `Bearer ${key.text}`,
        })
      ).status,
      403,
    )
  },
)

on('a bug answers 500 without its message', async (t, at) => {
  at.on['run.cancel'] = () => {
    throw new Error('secret detail')
  }
  const got = await at.call('POST', `/v1/projects/default/runs/${RUN}/cancel`)
  t.match(got, { status: 500, body: { error: { code: 'internal' } } })
  t.notMatch(got.text, 'secret detail')
})

on('health, metrics, the document and the reference page need no credential', async (t, at) => {
  const get = (path: string) => at.call('GET', path, undefined, { authorization: '' })
  t.match(await get('/healthz'), { status: 200 })
  t.match(await get('/readyz'), { status: 200, body: { status: 'ready' } })
  at.world.unready = async () => ['no shard owner']
  t.match(await get('/readyz'), { status: 503, body: { reasons: ['no shard owner'] } })
  t.match(await get('/metrics'), { status: 200, text: 'up 1\n' })
  const document = (await get('/v1/openapi.json')).body
  t.same((await new Validator().validate({ ...document })).errors ?? [], [])
  t.ok(document.paths['/projects/{project}/runs']?.['post'])
  t.same(document.paths['/projects/{project}/runs/{id}/cancel']?.['post']?.tags, ['compat'])
  const page = await get('/docs')
  t.match(page.text, '<title>Baton API</title>', 'without a brand')
  t.notMatch(page.text, /https?:\/\//)
  t.ok((await get('/docs/swagger-ui-bundle.js')).text.length > 100_000)
  t.equal((await get('/')).headers.location, '/docs')
})

t.test(
  'on stop, new connections are refused, pending requests answered, then all is closed',
  async (t) => {
    const at = await gateway()
    let finish = () => {}
    at.on['run.cancel'] = () =>
      new Promise((resolve) => {
        finish = () => resolve({ reply: run })
      })
    const waiting = at.call('POST', `/v1/projects/default/runs/${RUN}/cancel`)
    await until(() => at.commands.length > 0)
    const stopped = at.server.stop()
    await t.rejects(at.call('GET', '/healthz'))
    finish()
    t.match(await waiting, { status: 200, body: run })
    await stopped
  },
)
