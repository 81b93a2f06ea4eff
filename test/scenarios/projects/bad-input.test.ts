/**
 * Invalid requests over HTTP: bodies, fields, parameters, paths, origins and request ids. Also
 * covers the endpoints that need no key, and the rate limit of a key.
 */
import { Validator } from '@seriousme/openapi-schema-validator'
import t from 'tap'
import { api } from '../../../protocol/api.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import { faultsOf } from '../../../protocol/rules/schema-faults/faults.ts'
import { type Raw, service } from '../../support/service.ts'
import { fieldsOf, instant, listOf } from '../support/given.ts'

const s = await service({ BATON_CORS: 'https://app.example.org' })
t.teardown(() => s.stop())
const RUNS = '/v1/projects/default/runs'
const json = { 'content-type': 'application/json' }
const post = (body: string | Uint8Array, path = RUNS, headers: Record<string, string> = json) =>
  s.raw('POST', path, { body, headers })
const codeOf = ({ status, body }: Raw) =>
  `${status} ${String((body['error'] as { code?: string } | undefined)?.code)}`
const fieldsIn = ({ body }: Raw) => fieldsOf(body['error'] as unknown as { details: object })

t.test('bodies that are not JSON objects are rejected', async (t) => {
  for (const body of ['{', '[1, 2', '{"a": NaN}', 'hello', ''])
    t.match(
      [codeOf(await post(body)), fieldsIn(await post(body))],
      ['400 bad_request', ['body']],
      body,
    )
  for (const body of ['[]', '"text"', '1', 'null'])
    t.match(
      [codeOf(await post(body)), fieldsIn(await post(body))],
      ['400 bad_request', ['body']],
      body,
    )
  t.match(
    fieldsIn(await post(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]))),
    ['body'],
    'no UTF-8',
  )
  t.equal(
    codeOf(await post('a=b', RUNS, { 'content-type': 'application/x-www-form-urlencoded' })),
    '415 unsupported_media_type',
  )
})

t.test('bodies that are too large, too deep, or set a prototype are rejected', async (t) => {
  const large = await post(
    JSON.stringify({ spec: instant(), input: { text: 'x'.repeat(1_100_000) } }),
  )
  t.equal(codeOf(large), '413 payload_too_large')
  t.match(large.body, { error: { details: { limit: 1_048_576 } } })
  t.equal(codeOf(await post('x'.repeat(1_100_000), '/v1/projects')), '413 payload_too_large')
  const deep = await post(
    `{"spec":${JSON.stringify(instant())},"input":${'{"a":'.repeat(100)}1${'}'.repeat(101)}`,
  )
  t.match([codeOf(deep), fieldsIn(deep)[0]], ['400 bad_request', /^input\.a\.a/])
  t.equal(codeOf(await post('['.repeat(200_000))), '400 bad_request')
  for (const body of [
    '{"__proto__": {"admin": true}}',
    '{"input": {"__proto__": {"x": 1}}}',
    '{"input": {"constructor": {"prototype": {"x": 1}}}}',
  ])
    t.equal(codeOf(await post(body)), '400 bad_request', body)
  t.equal(({} as { admin?: boolean }).admin, undefined)
})

t.test('integers that cannot be stored exactly are rejected', async (t) => {
  const { id } = await s.ok('loop.create', { name: 'Spending', steps: instant().steps })
  const start = (budget: string) =>
    post(
      `{"credit_budget":${budget},"event":{"n":${budget}}}`,
      `/v1/projects/default/loops/${id}/runs`,
    )
  for (const budget of ['9007199254740992', '9007199254740993', '1e300']) {
    const got = await start(budget)
    t.strictSame([codeOf(got), fieldsIn(got)], ['400 bad_request', ['credit_budget']], budget)
  }
  t.equal((await start('9007199254740991')).status, 202)
})

t.test(
  'every invalid field is reported with its exact path, the expected type and the value',
  async (t) => {
    const faulty = await s.refused(
      'run.start',
      {
        spec: {
          steps: [
            { kind: 'sleep', config: { duration: 5 } },
            { kind: 'action', config: { action_name: '' }, retry: { max_attempts: 99 } },
          ],
        },
        input: 'x',
        priority: 1.5,
        queue: '',
        color: 'red',
      },
      400,
      'bad_request',
    )
    t.strictSame(fieldsOf(faulty).sort(), [
      'color',
      'input',
      'priority',
      'queue',
      'spec.steps[0].config.duration',
      'spec.steps[1].config.action_name',
      'spec.steps[1].retry.max_attempts',
    ])
    t.ok(
      listOf(faulty.details, 'fields').every(
        (one) => typeof one['message'] === 'string' && one['message'] !== '',
      ),
    )
    t.match(
      listOf(faulty.details, 'fields').find(({ field }) => field === 'input'),
      { expected: 'object', actual: 'x' },
    )
    t.match(faulty.message, /\S/)
    t.strictSame(
      fieldsOf(
        await s.refused(
          'principal.create',
          { name: 1, role_ids: 'x', tags: { a: 1 } },
          400,
          'bad_request',
        ),
      ).sort(),
      ['name', 'role_ids', 'tags.a'],
    )
    t.strictSame(fieldsOf(await s.refused('workflow.create', {}, 400, 'bad_request')).sort(), [
      'name',
      'spec',
    ])
    t.match(await s.refused('secret.put', { secret_name: 'x', entries: {} }, 400, 'bad_request'), {
      details: { fields: [{ field: 'entries', message: 'must have at least 1 member' }] },
    })
    for (const [name, value] of [
      ['', 'v'],
      ['a b', 5],
      ['a\nb', null],
      ['x'.repeat(129), 'v'],
    ] as const) {
      const entries = { ok: 'v', [name]: value }
      const error = await s.refused('secret.put', { secret_name: 'x', entries }, 400, 'bad_request')
      t.strictSame(fieldsOf(error), [`entries.${name.slice(0, 128)}`])
    }
    const extra = await s.raw('DELETE', '/v1/projects/default/workflows/x', {
      body: '{"force": true}',
      headers: json,
    })
    t.strictSame(fieldsIn(extra), ['force'], 'a body that is not documented')
  },
)

t.test('tag keys have 1 to 128 characters in every operation with tags', async (t) => {
  const long = 'x'.repeat(129)
  const faulty = { '': 'v', [long]: 'v', ['😀'.repeat(128)]: 'v', 'a\nb': 1 }
  const tagged = (Object.entries(api) as [string, Row][]).flatMap(
    ([
      name,
      {
        shape: { body },
      },
    ]) =>
      'tags' in ((body as { properties?: object } | undefined)?.properties ?? {})
        ? [{ name, body }]
        : [],
  )
  t.ok(tagged.length > 15)
  for (const { name, body } of tagged)
    t.strictSame(
      faultsOf(body as never, { tags: faulty })
        .map(({ field }) => field)
        .filter((field) => field.startsWith('tags')),
      ['tags[""]', `tags.${long}`, 'tags["a\\nb"]'],
      name,
    )
  t.match(
    await s.refused(
      'role.create',
      { name: 'r', permissions: [], tags: { [long]: 'v' } },
      400,
      'bad_request',
    ),
    {
      details: {
        fields: [
          {
            field: `tags.${long}`,
            message: 'its name must have at most 128 characters',
            actual: 129,
          },
        ],
      },
    },
  )
})

t.test(
  'invalid limits, unknown parameters and foreign or damaged cursors are rejected',
  async (t) => {
    for (const limit of ['0', '201', '-1', '1.5', 'ten', ''])
      t.strictSame(fieldsIn(await s.raw('GET', `${RUNS}?limit=${limit}`)), ['limit'], limit)
    t.strictSame(fieldsIn(await s.raw('GET', `${RUNS}?colour=red&limit=5&limit=6`)).sort(), [
      'colour',
      'limit',
    ])
    t.strictSame(fieldsIn(await s.raw('GET', `${RUNS}?queue=%ff`)), ['query'])
    t.strictSame(fieldsIn(await s.raw('GET', '/v1/projects/%ff/runs')), ['path'])
    for (let n = 0; n < 3; n++) await s.ok('run.start', { spec: instant() })
    const { next_cursor } = await s.ok('run.list', { limit: 1 })
    const cursor = String(next_cursor)
    await s.ok('run.list', { cursor, limit: 2 })
    const damaged = `${cursor.slice(0, 5)}${cursor[5] === 'A' ? 'B' : 'A'}${cursor.slice(6)}`
    for (const bad of ['x', 'AAAA', `${cursor}x`, cursor.slice(1), damaged])
      t.strictSame(
        fieldsOf(await s.refused('run.list', { cursor: bad }, 400, 'bad_request')),
        ['cursor'],
        bad,
      )
    for (const row of ['workflow.list', 'key.list', 'audit.list', 'project.list'] as const)
      t.strictSame(fieldsOf(await s.refused(row, { cursor }, 400, 'bad_request')), ['cursor'], row)
    await s.ok('project.create', { name: 'other' })
    t.strictSame(
      fieldsOf(await s.refused('run.list', { project: 'other', cursor }, 400, 'bad_request')),
      ['cursor'],
      'a cursor of another project',
    )
    await s.refused('run.events', { id: 'run_x', after_sequence: -1 }, 404, 'not_found')
  },
)

t.test('unknown paths and methods are rejected', async (t) => {
  for (const path of [
    '/v1/nothing',
    '/v2/projects',
    '/v1',
    '/v1/projects/default/nothing',
    '/etc/passwd',
  ])
    t.equal(codeOf(await s.raw('GET', path)), '404 not_found', path)
  for (const [method, path, allow] of [
    ['DELETE', '/v1/projects', 'GET, POST, HEAD, OPTIONS'],
    ['PUT', RUNS, 'POST, GET, HEAD, OPTIONS'],
    ['POST', '/v1/audit-logs', 'GET, HEAD, OPTIONS'],
    ['DELETE', `${RUNS}/events`, 'GET, OPTIONS'],
    ['GET', `${RUNS}/cancellations`, undefined],
  ] as const) {
    const answer = await s.raw(method, path)
    if (allow === undefined) continue
    t.equal(codeOf(answer), '405 method_not_allowed', path)
    t.strictSame(answer.headers.get('allow')?.split(', ').sort(), allow.split(', ').sort(), path)
  }
  const head = await s.raw('HEAD', RUNS)
  t.match([head.status, head.text], [200, ''])
})

t.test('pages of an allowed origin may send requests, others may not', async (t) => {
  const preflight = (origin: string) =>
    s.raw('OPTIONS', RUNS, {
      key: null,
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      },
    })
  const allowed = await preflight('https://app.example.org')
  t.equal(allowed.status, 204)
  t.match(Object.fromEntries(allowed.headers), {
    'access-control-allow-origin': 'https://app.example.org',
    'access-control-allow-methods': /POST/,
    'access-control-allow-headers': 'authorization,content-type',
    'access-control-max-age': /\d+/,
  })
  t.equal(
    (await preflight('https://evil.example.org')).headers.get('access-control-allow-origin'),
    null,
  )
  const answer = await s.raw('GET', RUNS, { headers: { origin: 'https://app.example.org' } })
  t.match(Object.fromEntries(answer.headers), {
    'access-control-allow-origin': 'https://app.example.org',
    'access-control-expose-headers': /X-Request-ID/,
  })
})

t.test('a valid request id is echoed, otherwise one is generated, in every response', async (t) => {
  const id = async (given: string | undefined, path = RUNS) =>
    (
      await s.raw('GET', path, { headers: given === undefined ? {} : { 'x-request-id': given } })
    ).headers.get('x-request-id')
  t.equal(await id('trace-1'), 'trace-1')
  t.equal(await id('trace-2', '/v1/nothing'), 'trace-2')
  t.match(await id(undefined), /^req_/)
  t.match(await id('x'.repeat(200)), /^req_/)
  t.match(await id('a b'), /^req_/)
})

t.test('the API reference, health and metrics need no key', async (t) => {
  const get = (path: string) => s.raw('GET', path, { key: null })
  const document = (await get('/v1/openapi.json')).body as unknown as {
    paths: Record<string, Record<string, unknown>>
  }
  const { valid, errors } = await new Validator().validate(structuredClone(document))
  t.ok(valid, JSON.stringify(errors ?? '').slice(0, 500))
  for (const [name, row] of Object.entries(api) as [string, Row][]) {
    const { method, path } = routeOf(row)
    const found = Object.entries(document.paths).some(
      ([listed, methods]) =>
        listed.replace(/^\/v1/, '') === path.replaceAll(/:(\w+)/g, '{$1}') &&
        method.toLowerCase() in methods,
    )
    t.ok(found, `${name} is listed`)
  }
  for (const path of [
    '/projects/{project}/agents/invoke',
    '/projects/{project}/sessions/{session_id}/turns',
  ]) {
    const row = document.paths[path]?.['post'] as
      | { responses: Record<string, { content?: object }> }
      | undefined
    t.strictSame(
      ['200', '202'].map((status) => Object.keys(row?.responses[status]?.content ?? {})),
      [['text/event-stream'], ['application/json']],
      path,
    )
  }
  t.match((await get('/v1/asyncapi.json')).body, { asyncapi: '3.0.0' })
  const page = await get('/docs')
  t.match(page.text, 'href="/v1/asyncapi.json"')
  const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) =>
    String(source),
  )
  t.ok(page.status === 200 && sources.length > 0)
  for (const source of sources)
    t.ok(
      source.startsWith('/') && (await get(source)).status === 200,
      `${source} is served from here`,
    )
  t.match(await get('/'), { status: 200 })
  t.match((await get('/healthz')).body, { status: 'alive' })
  t.match((await get('/readyz')).body, { status: 'ready' })
  t.match((await get('/metrics')).text, /^baton_\w+/m)
})

t.test(
  'a key over its rate limit is rejected until the window ends, and other keys are not',
  async (t) => {
    const node = await s.add({
      BATON_RATE_KEY: '3',
      BATON_RATE_WINDOW: '1',
      BATON_ROLES: 'gateway',
    })
    const url = node.url ?? ''
    const { key } = await s.ok('key.create', { name: 'busy' })
    const busy = () => s.raw('GET', RUNS, { url, key: String(key) })
    for (const left of ['2', '1', '0'])
      t.match(Object.fromEntries((await busy()).headers), {
        'x-ratelimit-limit': '3',
        'x-ratelimit-remaining': left,
        'x-ratelimit-scope': 'key',
        'x-ratelimit-policy': '3;w=1',
        'x-ratelimit-reset': /^\d{10}$/,
      })
    const refused = await busy()
    t.equal(codeOf(refused), '429 rate_limit_exceeded')
    t.match(Object.fromEntries(refused.headers), {
      'retry-after': '1',
      'x-ratelimit-remaining': '0',
    })
    t.equal((await s.raw('GET', RUNS, { url })).status, 200, 'another key')
    await new Promise((resolve) => setTimeout(resolve, 1100))
    t.equal((await busy()).status, 200)
  },
)
