/**
 * The configuration of the definition resolver and of the OAuth return origins: who may see and
 * change it, which changes are refused, and that the resolver's token stays secret. Calls to the
 * resolver are tested in resolver-kill.test.ts.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLog } from '../../../nodes/observe/log.ts'
import { service } from '../../support/service.ts'
import { fieldsOf } from '../support/given.ts'

const lines: string[] = []
const log = createLog({
  level: 'trace',
  node: 'n1',
  to: { write: (line: string) => void lines.push(line) },
})
const s = await service({}, { log })
t.teardown(() => s.stop())
t.setTimeout(60_000)

const TOKEN = 'token-MARKER-of-the-resolver'
const VALUE = 'value-MARKER-in-the-query'
const url = 'https://resolver.example/definitions'
const stored = {
  source: 'service_stored',
  auth_configured: false,
  timeout_ms: 2000,
  protocol_version: 1,
  revalidate_after_s: 0,
  stale_max_age_s: 0,
  on_unavailable: 'last_known_good',
}

t.test('before the first change, Baton stores the definitions', async (t) => {
  const { updated_at, ...rest } = await s.ok('resolver.get')
  t.strictSame(rest, stored)
  t.match(updated_at, /^\d{4}-.*\.\d{3}Z$/)
  t.strictSame(await s.ok('oauth_origins.get'), { origins: [] })
})

t.test('a change replaces everything but an omitted token', async (t) => {
  const configured = await s.ok('resolver.put', {
    source: 'client_resolver',
    endpoint_url: `${url}?key=${VALUE}`,
    auth: { mode: 'bearer', token: TOKEN },
    timeout_ms: 700,
    revalidate_after_s: 5,
    stale_max_age_s: 60,
    on_unavailable: 'fail',
  })
  t.match(configured, {
    source: 'client_resolver',
    endpoint_url: `${url}?key=***`,
    auth_configured: true,
    timeout_ms: 700,
    on_unavailable: 'fail',
  })
  t.strictSame(await s.ok('resolver.get'), configured)
  const again = await s.ok('resolver.put', {
    source: 'client_resolver',
    endpoint_url: `${url}?key=***`,
  })
  t.match(again, { auth_configured: true, timeout_ms: 2000, on_unavailable: 'last_known_good' })
  t.match(
    await s.ok('resolver.put', { source: 'stored', auth: { token: '' }, timeout_ms: 0 }),
    stored,
  )
  t.match(await s.ok('resolver.get'), stored)
})

t.test('invalid configurations are refused, and change nothing', async (t) => {
  const before = await s.ok('resolver.get')
  for (const [more, field] of [
    [{ endpoint_url: undefined }, 'endpoint_url'],
    [{ endpoint_url: 'http://resolver.example' }, 'endpoint_url'],
    [{ endpoint_url: 'https://127.0.0.1/' }, 'endpoint_url'],
    [{ endpoint_url: 'https://10.1.2.3/' }, 'endpoint_url'],
    [{ endpoint_url: 'https://169.254.169.254/latest' }, 'endpoint_url'],
    [{ endpoint_url: 'https://[::1]/' }, 'endpoint_url'],
    [{ endpoint_url: 'https://[fd00::1]/' }, 'endpoint_url'],
    [{ endpoint_url: 'https://0x7f000001/' }, 'endpoint_url'],
    [{ source: 'other_stored' }, 'source'],
    [{ protocol_version: 2 }, 'protocol_version'],
    [{ timeout_ms: 30_001 }, 'timeout_ms'],
    [{ stale_max_age_s: -1 }, 'stale_max_age_s'],
    [{ on_unavailable: 'ignore' }, 'on_unavailable'],
    [{ auth: { mode: 'basic' } }, 'auth.mode'],
    [{ auth: { token: 'two\nlines' } }, 'auth.token'],
    [{ last_good_digest: 'd' }, 'last_good_digest'],
    [{ auth_configured: true }, 'auth_configured'],
  ] as const) {
    const body = { source: 'client_resolver', endpoint_url: url, ...more }
    t.strictSame(fieldsOf(await s.refused('resolver.put', body, 400, 'bad_request')), [field])
  }
  t.strictSame(await s.ok('resolver.get'), before)
})

t.test('origins are exact, normalised and at most 20', async (t) => {
  t.strictSame(
    await s.ok('oauth_origins.put', {
      origins: ['https://App.Example:443', 'https://app.example', 'https://b.example:8443'],
    }),
    { origins: ['https://app.example', 'https://b.example:8443'] },
  )
  for (const origins of [
    ['https://ok.example', 'http://a.example'],
    ['https://ok.example', 'https://a.example/path'],
    ['https://ok.example', 'https://*.example'],
  ])
    t.strictSame(fieldsOf(await s.refused('oauth_origins.put', { origins }, 400, 'bad_request')), [
      'origins[1]',
    ])
  const many = Array.from({ length: 21 }, (_, index) => `https://a${index}.example`)
  await s.refused('oauth_origins.put', { origins: many }, 400, 'bad_request')
  t.match(await s.ok('oauth_origins.get'), {
    origins: ['https://app.example', 'https://b.example:8443'],
  })
  t.strictSame(await s.ok('oauth_origins.put', { origins: [] }), { origins: [] })
})

t.test('only owners and admins of the organization have access', async (t) => {
  const made = await Promise.all([
    s.ok('key.create', { name: 'project' }),
    s.ok('key.create_organization', { name: 'editor', role: 'Editor' }),
    s.ok('key.create_organization', { name: 'viewer', role: 'Viewer' }),
  ])
  for (const { key } of made) {
    const options = { key: String(key) }
    for (const [name, body] of [
      ['resolver.get', {}],
      ['resolver.put', { source: 'stored' }],
      ['oauth_origins.get', {}],
      ['oauth_origins.put', { origins: [] }],
    ] as const)
      await s.refused(name, body, 403, 'permission_denied', options)
  }
  const admin = await s.ok('key.create_organization', { name: 'admin', role: 'Admin' })
  t.match(await s.ok('resolver.get', {}, { key: String(admin['key']) }), stored)
})

t.test('changes are audited without secrets, and the token is stored nowhere', async (t) => {
  const { items } = await s.ok('audit.list', {
    resource_type: ['definition_resolver', 'oauth_return_origins'],
  })
  const entries = items as unknown as { resource_type: string; action: string; changes: object }[]
  t.match(entries.at(-1), {
    resource_type: 'definition_resolver',
    action: 'update',
    changes: {
      source: { to: 'client_resolver' },
      endpoint_url: { to: `${url}?key=***` },
      token: { to: 'set' },
    },
  })
  t.ok(entries.some(({ resource_type }) => resource_type === 'oauth_return_origins'))
  await s.restart()
  t.match(await s.ok('resolver.get'), stored)
  const kept = readdirSync(s.data, { recursive: true, encoding: 'utf8' })
    .map((name) => join(s.data, name))
    .filter((name) => statSync(name).isFile())
    .map((name) => readFileSync(name))
  t.ok(
    kept.some((bytes) => bytes.includes('resolver.configured')),
    'the search finds stored data',
  )
  for (const secret of [TOKEN, VALUE]) {
    t.notOk(kept.some((bytes) => bytes.includes(secret)))
    t.notOk(JSON.stringify(items).includes(secret))
    t.notOk(lines.join('\n').includes(secret))
  }
})
