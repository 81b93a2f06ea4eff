/**
 * Sends invalid requests to every row of the table. Invariants: every response is documented, and a
 * refused request has no effect.
 */
import fc from 'fast-check'
import t from 'tap'
import { unauthenticated } from '../../protocol/access/unauthenticated-rows.ts'
import { api, type RowName } from '../../protocol/api.ts'
import { conditionalCommands } from '../../protocol/conditional.ts'
import { type Row, routeOf } from '../../protocol/contract.ts'
import type { Code } from '../../protocol/errors.ts'
import { type Answered, type Asked, encodedBody, serviceWithClient } from './support/ask.ts'
import { often, seed, tries } from './support/campaign.ts'
import { fitting } from './support/generate.ts'
import { bad } from './support/judge.ts'
import { mutated } from './support/mutate.ts'
import {
  bodyFor,
  furnish,
  idsOf,
  type Place,
  pathOf,
  placedPath,
  rows,
  slotsOf,
} from './support/rows.ts'
import { inTurn, SharedPlaces } from './support/shared.ts'
import { shownIn } from './support/shown.ts'

const { s, client } = await serviceWithClient(t)
const authorization = `Bearer ${s.key}`
const json = 'application/json'
/** Codes with which a request is refused if no row has its path and method. */
const nowhere: readonly Code[] = ['not_found', 'method_not_allowed']
t.comment(`HOSTILE_SEED=${seed}`)
t.setTimeout(tries(400_000))
/** The number of requests to each row with a body. Other rows receive half as many. */
const REQUESTS = 10

t.test('an update with If-Match is performed only if the record has not changed', async (t) => {
  const place = await furnish(s)
  const send = (name: RowName, tag: string, body: unknown = bodyFor(name, place)) =>
    s.raw(routeOf(api[name]).method, placedPath(name, place), {
      headers: { 'if-match': tag, 'content-type': json },
      body: JSON.stringify(body),
    })
  for (const name of conditionalCommands as RowName[]) {
    const read = async () =>
      (await s.raw('GET', placedPath(name, place))).headers.get('etag') ?? 'none'
    const tag = await read()
    t.match((await send(name, '"20200101000000000-0"')).body, {
      error: { code: 'precondition_failed' },
    })
    t.equal(await read(), tag, `${name} changed nothing`)
    const done = await send(name, `W/"other", ${tag}`)
    t.equal(done.status, 200, `${name}: ${JSON.stringify(done.body)}`)
    const next = await read()
    t.equal(done.headers.get('etag'), next, `${name} replies with the tag of the record`)
    if (next !== tag) t.equal((await send(name, tag)).status, 412, name)
    t.equal((await send(name, `W/${next}`)).status, 412, 'weak tags match nothing')
    t.equal((await send(name, '*')).status, 200, name)
    t.equal((await send(name, 'no tag')).status, 400, name)
  }
  const path = placedPath('agent.update', place)
  const tag = (await s.raw('GET', path)).headers.get('etag') ?? ''
  const both = await Promise.all(
    ['a', 'b'].map((description) => send('agent.update', tag, { description })),
  )
  t.strictSame(both.map(({ status }) => status).sort(), [200, 412], 'one of two writers wins')
})

const oddTexts = [
  '',
  '%',
  '%zz',
  '%ff',
  '%c0%80',
  '%00',
  '%20',
  '%2e%2e%2f%2e%2e',
  '..%2f..',
  '.',
  '..',
  '*',
  '%3E',
  'a%2Fb',
  '__proto__',
  'constructor',
  'toString',
  '-1',
  '1e400',
  '9007199254740993',
  '99999999999999999999',
  '0x10',
  '1.5',
  '%F0%9F%98%80',
  '%ED%A0%80',
  'true',
  'null',
  '%5B%5D',
  'x'.repeat(1025),
  '%E2%80%AE',
  'AAAA',
  'run_00000000000000000000000000',
  'run_01ARZ3NDEKTSV4RRFFQ69G5FAV',
  'x%0d%0aX-Injected:%201',
  ',,,',
  'a,b',
  '%2C',
]
const shortcut = (place: Place): string[] => [...idsOf(place), 'role_owner', 'default', ...oddTexts]

/** Generates query strings with known, unknown, repeated and malformed parameters. */
function queries(row: Row, place: Place): fc.Arbitrary<string> {
  const known = Object.keys(
    (row.shape.query as { properties?: object } | undefined)?.properties ?? {},
  )
  const name = fc.constantFrom(
    ...known,
    'unknown',
    '__proto__',
    'constructor',
    '',
    '%ff',
    'cursor',
    'limit',
  )
  const pair = fc
    .tuple(name, fc.constantFrom(...shortcut(place)))
    .map(([key, value]) => `${key}=${value}`)
  return fc.oneof(
    fc.array(pair, { maxLength: 4 }).map((pairs) => pairs.join('&')),
    fc.constantFrom(
      '&&&',
      '=',
      '?',
      '%',
      'limit',
      'limit=5&limit=6',
      `queue=${'x'.repeat(3000)}`,
      'a=b=c',
      'limit=5;limit=6',
      '#x'.replace('#', '%23'),
    ),
  )
}
const paths = (name: RowName, place: Place): fc.Arbitrary<string> =>
  fc
    .tuple(
      ...slotsOf(name).map((slot) =>
        fc.tuple(fc.constant(slot), fc.constantFrom(...shortcut(place))),
      ),
    )
    .map((slots) => pathOf(name, Object.fromEntries(slots as [string, string][])))
const headers: fc.Arbitrary<Record<string, string>> = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(
        'idempotency-key',
        'last-event-id',
        'x-request-id',
        'accept',
        'origin',
        'content-encoding',
        'user-agent',
        'expect-ct',
        'if-none-match',
        'range',
        'cookie',
      ),
      fc.constantFrom(
        '',
        ' ',
        'x'.repeat(256),
        'x'.repeat(3000),
        '\u00e9\u00ff',
        'gzip',
        'deflate, br',
        '-1',
        '1e9',
        '99999999999999999999',
        '0',
        'text/event-stream',
        '*/*',
        'null',
        '__proto__',
        'bytes=0-1',
        '"a"',
        '../x',
      ),
    )
    .map(([name, value]) => ({ [name]: value })),
  fc
    .constantFrom(
      '',
      'text/html',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json; charset=utf-16',
      'application/jsonx',
      'application/problem+json',
      'text/plain',
      '\u00ff',
      ';',
      'x'.repeat(2000),
    )
    .map((type) => ({ 'content-type': type })),
  fc
    .constantFrom(
      '',
      'Bearer',
      'Bearer ',
      'Basic eDp5',
      `bearer ${s.key}`,
      `Bearer  ${s.key}`,
      `Bearer ${s.key} x`,
      `Bearer ${s.key}.default`,
      `Bearer ${s.key}.nothing`,
      `Bearer ${'x'.repeat(3000)}`,
      'Bearer \u00ff',
      'Bearer __proto__',
      'Bearer .default',
    )
    .map((value) => ({ authorization: value })),
)

/** Generates requests to a row, most of which are invalid in some way. */
function hostile(name: RowName, row: Row, place: Place): fc.Arbitrary<Asked> {
  const { method } = routeOf(row)
  const path = placedPath(name, place)
  const sent = encodedBody(row, row.shape.body ? bodyFor(name, place) : undefined)
  const base = {
    authorization,
    ...(row.verb === 'command' && { 'content-type': json }),
    ...sent.headers,
  }
  const good: Asked = { ...sent, method, path, headers: base }
  const values = row.shape.body
    ? fc.oneof(fitting(row.shape.body, shortcut(place)), fc.constant(bodyFor(name, place)))
    : fc.jsonValue({ maxDepth: 2 })
  return fc.oneof(
    {
      weight: row.shape.body ? 12 : 2,
      arbitrary: (row.shape.upload === 'streamed'
        ? values.map((value) => encodedBody(row, Object(value) as object).body ?? '')
        : mutated(values)
      ).map((text) => ({ ...good, ...(method !== 'GET' && { body: text }) })),
    },
    {
      weight: row.shape.query ? 5 : 2,
      arbitrary: queries(row, place).map((query) => ({ ...good, path: `${path}?${query}` })),
    },
    {
      weight: slotsOf(name).length > 0 ? 4 : 0,
      arbitrary:
        slotsOf(name).length > 0
          ? paths(name, place).map((other) => ({ ...good, path: other }))
          : fc.constant(good),
    },
    { weight: 3, arbitrary: headers.map((more) => ({ ...good, headers: { ...base, ...more } })) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND')
        .map((other) => ({ ...good, method: other })),
    },
  )
}
const told = ({ method, path, headers: given, body }: Asked): string =>
  `${method} ${path.slice(0, 300)} ${JSON.stringify(given).slice(0, 300)} ` +
  `${body === undefined ? '' : Buffer.from(body).toString().slice(0, 1500)}`

/** All operations. Those without authentication share paths with rows. */
const operations = [
  ...rows,
  ...(Object.entries(unauthenticated) as unknown as readonly (readonly [string, Row])[]),
]
const patterns = new Map(
  operations.map(([, row]) => {
    const { method, path } = routeOf(row)
    return [row, { method, path: new RegExp(`^/v1${path.replaceAll(/:\w+/g, '[^/]*')}$`) }]
  }),
)
const routes = (row: Row, { method, path }: Asked): boolean => {
  const pattern = patterns.get(row)
  return pattern?.method === method && pattern.path.test(path.split('?')[0] ?? '')
}
/** Returns the fault of the response to a request, or undefined if the response is documented. */
function faultOf(name: RowName, row: Row, asked: Asked, answer: Answered): string | undefined {
  const { method } = routeOf(row)
  const elsewhere = !routes(row, asked)
  if (answer.status === 204 && asked.method === 'OPTIONS') return undefined
  if (asked.method === 'HEAD')
    return answer.status < 500 && answer.text === '' ? undefined : `${answer.status} to HEAD`
  if (answer.status === 426 && row.shape.stream === 'socket') return undefined
  if (answer.status < 300 && asked.method !== method) return undefined
  const other = operations.find(([, candidate]) => candidate !== row && routes(candidate, asked))
  const fault = bad(
    name,
    row,
    answer,
    asked.path.length + Buffer.byteLength(asked.body ?? ''),
    elsewhere ? nowhere : [],
  )
  return fault !== undefined && other ? bad(other[0], other[1], answer, 0, nowhere) : fault
}

const givesRoles = /^(principal|user)\.(create|update)$|^key\.create$/

const isReading = ({ method }: Asked): boolean => /^(GET|HEAD|OPTIONS)$/.test(method)
const shared = new SharedPlaces(s)
let allowed = 0
for (const [name, row] of inTurn(rows)) {
  t.test(name, { timeout: tries(30_000) }, async (t) => {
    const changed = (failure: string) => void t.fail(failure.slice(0, 3000))
    const current = await shared.next(row, changed)
    const { place } = current
    const made = new Set<string>()
    const accepted: (readonly [RowName, Row])[] = []
    await often(
      name,
      rows.findIndex(([other]) => other === name),
      row.shape.body ? REQUESTS : REQUESTS / 2,
      hostile(name, row, place),
      async (asked) => {
        // Before a request that may change data, this checks that the refused requests so far have
        // changed nothing.
        if (!isReading(asked)) await shared.unchanged(changed)
        const answer = await client
          .ask(asked)
          .catch((error: Error): Answered => ({ status: 0, headers: {}, text: error.message }))
        const fault =
          answer.status === 0 ? `no answer: ${answer.text}` : faultOf(name, row, asked, answer)
        if (fault !== undefined) throw new Error(`${fault}\nasked ${told(asked)}`)
        if (answer.status >= 300 || isReading(asked)) return
        accepted.push(rows.find(([, candidate]) => routes(candidate, asked)) ?? [name, row])
        if (answer.text === '') return
        const { id, run_id, session_id, session, artifact, changes } = JSON.parse(answer.text) as {
          id?: unknown
          run_id?: unknown
          session_id?: unknown
          session?: { id: unknown }
          artifact?: { id: unknown }
          changes?: readonly { readonly resource_id?: string }[]
        }
        for (const { resource_id } of changes ?? []) made.add(String(resource_id))
        for (const one of [id ?? session?.id ?? artifact?.id, run_id, session_id])
          made.add(String(one))
      },
    )
    allowed += accepted.length
    if (accepted.length === 0) shared.used(name, accepted)
    else {
      const before = current.shown
      const after = await shownIn(s, place)
      for (const [list, records] of Object.entries(after)) {
        const grown = Object.keys(records).filter((id) => !Object.hasOwn(before[list] ?? {}, id))
        t.strictSame(
          grown.filter(
            (id) =>
              !made.has(id) &&
              !(list === 'principal.list' && name === 'key.create') &&
              !(list === 'assignment.list' && givesRoles.test(name)),
          ),
          [],
          `${list} grew only by what was answered`,
        )
      }
      shared.used(name, accepted, after)
    }
    const started = Date.now()
    t.equal(
      (await client.ask({ method: 'GET', path: '/v1/projects', headers: { authorization } }))
        .status,
      200,
    )
    t.ok(Date.now() - started < 2000, 'a good request is answered at once')
  })
}

t.test('the last refused requests changed nothing', async (t) => {
  await shared.end((failure) => void t.fail(failure.slice(0, 3000)))
  t.comment(`${allowed} requests that change records were accepted, in ${shared.count} projects`)
})

t.test('no prototype was changed, and the service is intact', async (t) => {
  t.strictSame(Object.keys(Object.prototype), [])
  t.equal(({} as { admin?: unknown }).admin, undefined)
  t.match((await s.raw('GET', '/readyz')).body, { status: 'ready' })
  const metrics = (await s.raw('GET', '/metrics')).text
  t.notMatch(metrics, /baton_request_seconds_count\{[^}]*status="500"/, 'no request failed inside')
  t.comment(`${rows.length} rows, ${tries(REQUESTS)} requests each at most`)
})
