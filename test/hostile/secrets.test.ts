/**
 * Secrets never appear in clear text. A scenario with recognizable secrets runs at the most verbose
 * log level. Then all output and all stored data are searched.
 *
 * Apart from sealed values, only the following data about secrets is stored, by design:
 * - hashes of keys and of session tokens.
 * - lease tokens, only in the journal and in snapshots. A lease must outlive the owner of its
 *   queue, and a token is valid for one attempt of one job.
 * - the secret that seals cursors, in the bucket of the installation.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLog } from '../../nodes/observe/log.ts'
import { acting, sleeping } from '../scenarios/support/given.ts'
import { service } from '../support/service.ts'
import { furnish, placedPath, rows } from './support/rows.ts'
import { dial, listen, spoken } from './support/wire.ts'

const ROOT = 'bat_root-MARKER-Zq81xTfLmW0'
const UNKNOWN = 'bat_unknown-MARKER-77hYwQ2'
/** A value that is stored in clear text. It shows that the search finds stored data. */
const PUBLIC = 'public-MARKER-everybody-may-read'

const lines: string[] = []
const log = createLog({
  level: 'trace',
  node: 'n1',
  to: { write: (line: string) => void lines.push(line) },
})
const s = await service(
  {
    BATON_ROOT_KEY: ROOT,
    BATON_WORKER_CADENCE: '1s',
    BATON_WORKER_LEASE: '3s',
    BATON_WORKER_POLL: '1s',
    BATON_WORKER_STALE: '4s',
    BATON_WORKER_TAKEOVER: '2s',
  },
  { log },
)
t.teardown(() => s.stop())
const said: string[] = []
const note = async (answer: Promise<{ text: string; headers: Headers }>) => {
  const { text, headers } = await answer
  said.push(text, JSON.stringify([...headers]))
}

const place = await furnish(s)
const made = await Promise.all([
  s.ok('key.create', { name: 'random' }),
  s.ok('key.create', { name: 'derived' }, { headers: { 'idempotency-key': 'idem-MARKER' } }),
  s.ok('key.create_organization', { name: 'of the organization', role: 'Viewer' }),
  s.ok(
    'key.create_organization',
    { name: 'derived too', role: 'Editor' },
    { headers: { 'idempotency-key': 'idem-MARKER' } },
  ),
])
made.push(
  await s.ok(
    'token.create',
    {
      id: (await s.ok('user.create', { name: 'Ann', role_ids: ['role_viewer'] }))['id'],
      name: 'laptop',
    },
    { headers: { 'idempotency-key': 'idem-MARKER' } },
  ),
)
const keys = made.map(({ key }) => String(key))
const signing = await Promise.all([
  s.ok('action.create', { name: 'signed', endpoint_url: 'https://calls.invalid/' }),
  s.ok(
    'action.create',
    { name: 'derived', endpoint_url: 'https://calls.invalid/' },
    { headers: { 'idempotency-key': 'idem-MARKER' } },
  ),
  s.ok('organization_action.create', {
    name: 'shared.one',
    endpoint_url: 'https://calls.invalid/',
  }),
])
signing.push(
  await s.ok('action.rotate_secret', { action_name: 'signed' }),
  await s.ok('organization_action.rotate_secret', { action_id: signing[2]?.['id'] }),
)
await s.ok('action.invoke', { action_name: 'signed' })
const hook = await s.ok('webhook.create', { name: 'hook', url: 'https://receiver.invalid/' })
signing.push(hook, await s.ok('webhook.rotate_secret', { webhook_id: hook['id'] }))
await s
  .ok(
    'webhook.create',
    { name: 'derived', events: ['none.such'] },
    { headers: { 'idempotency-key': 'idem-MARKER' } },
  )
  .then((made) => signing.push(made))
await s.ok('webhook.ping', { webhook_id: hook['id'] })
const stored = Buffer.from('stored-MARKER-of-32-bytes-012345').toString('base64')
await s.ok('secret.put', {
  secret_name: 'callbacks',
  entries: { signing_key_b64: stored, password: 'word-MARKER-in-a-secret' },
})
await s.ok('resolver.put', {
  source: 'stored',
  endpoint_url: 'https://resolver.invalid/?key=query-MARKER-of-the-resolver',
  auth: { token: 'token-MARKER-of-the-resolver' },
})
for (const key of [...keys, ROOT]) await note(s.raw('GET', '/v1/projects', { key }))

const worker = await s.worker(
  { action_names: ['act'], worker_instance_id: 'w1' },
  { key: String(keys[0]) },
)
const registered = worker.frames.find(({ type }) => type === 'worker.registered')
const session = String(registered?.['worker_session_token'])
const leases: string[] = []
const run = await s.ok('run.start', {
  spec: acting('act', { retry: { max_attempts: 2 } }),
  input: { said: PUBLIC },
})
const first = await worker.job()
await worker.report(first, { status: 'failed', error_message: 'once more' })
const second = await worker.job()
leases.push(String(first['lease_token']), String(second['lease_token']))
await worker.report(second)
worker.send({
  type: 'job.report',
  message_id: 'late',
  job_id: first['id'],
  lease_token: first['lease_token'],
})
await s.ok('run.start', { spec: acting('act') })
const third = await worker.job()
leases.push(String(third['lease_token']))
worker.send({
  type: 'job.heartbeat',
  message_id: 'beat',
  job_id: third['id'],
  lease_token: third['lease_token'],
})
worker.send({ type: 'worker.register', worker_instance_id: 'w1', worker_session_token: session })
worker.send({ type: session, message_id: 'odd' })
const other = await s.worker({
  worker_instance_id: 'w1',
  worker_session_token: 'wst_wrong-MARKER-token',
})
await s.ok('run.start', { spec: sleeping() })
said.push(...other.frames.map((frame) => JSON.stringify(frame)))

/**
 * Failing requests: each row with unknown keys, and with a valid key and a malformed body. Then
 * keys in the query string, in `x-api-key` and in a cookie. No response may repeat a key.
 */
for (const [name] of rows) {
  const path = placedPath(name, place)
  for (const key of [UNKNOWN, `${String(keys[0])}x`]) await note(s.raw('GET', path, { key }))
  await note(
    s.raw('POST', path, { key: ROOT, body: '{', headers: { 'content-type': 'application/json' } }),
  )
}
await note(s.raw('GET', `/v1/projects?key=${UNKNOWN}`, { key: null }))
await note(
  s.raw('GET', '/v1/nothing', { headers: { 'x-api-key': UNKNOWN, cookie: `session=${UNKNOWN}` } }),
)
await s.ok('key.revoke', { id: made[1]?.['id'] })
const cut = await dial(s.url)
cut.write(
  spoken('POST', '/v1/projects', [`Authorization: Bearer ${UNKNOWN}`, 'Content-Length: 100'], '{'),
)
await listen(cut, () => false, 50)
cut.destroy()
for (const list of [
  'run.list',
  'worker.list',
  'key.list',
  'key.list_organization',
  'audit.list',
  'project.list',
  'principal.list',
  'action.list',
  'organization_action.list',
  'invocation.list',
  'webhook.list',
  'event.list',
  'secret.list',
] as const)
  said.push(
    JSON.stringify(
      (
        await s.call(list, {
          ...(list !== 'worker.list' && list !== 'secret.list' && { limit: 200 }),
        })
      ).body,
    ),
  )
said.push(JSON.stringify((await s.call('webhook.deliveries', { webhook_id: hook['id'] })).body))
for (const part of ['run.get', 'run.jobs', 'run.steps', 'run.events', 'run.action_log'] as const)
  said.push(JSON.stringify((await s.call(part, { id: run['id'] })).body))
for (const path of ['/metrics', '/readyz', '/v1/openapi.json'])
  said.push((await s.raw('GET', path)).text)
// Snapshots are stored periodically. The restart also stores the remaining ones. After the restart,
// no command changes the journal or the views.
await s.restart()
said.push(JSON.stringify((await s.call('audit.list', { limit: 200 })).body))
const frames = [...worker.frames, ...other.frames]
worker.close()
other.close()

function* filesBelow(folder: string): Generator<[string, Buffer]> {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (statSync(join(folder, name)).isFile()) yield [name, readFileSync(join(folder, name))]
}
const hash = (text: string) => createHash('sha256').update(text).digest('hex')
const kept = new Map(filesBelow(s.data))
const holding = (text: string): string[] =>
  [...kept].filter(([, bytes]) => bytes.includes(text)).map(([name]) => name)
const credentials: Readonly<Record<string, string>> = {
  root: ROOT,
  unknown: UNKNOWN,
  session,
  'wrong session': 'wst_wrong-MARKER-token',
  'stored key': stored,
  'stored key as bytes': 'stored-MARKER-of-32-bytes-012345',
  'stored word': 'word-MARKER-in-a-secret',
  'token of the resolver': 'token-MARKER-of-the-resolver',
  'query of the resolver': 'query-MARKER-of-the-resolver',
  ...Object.fromEntries(keys.map((key, index) => [`key ${index}`, key])),
  ...Object.fromEntries(
    signing.map(({ signing_secret }, index) => [`signing secret ${index}`, String(signing_secret)]),
  ),
}

t.test('the search finds stored data', async (t) => {
  t.ok(lines.length > 20 && kept.size > 5 && said.length > 100)
  const where = holding(PUBLIC)
  t.ok(
    where.some((name) => name.startsWith('nats') && /JOURNAL/.test(name)),
    `in the journal: ${where.join(' ')}`,
  )
  t.ok(
    where.some((name) => /\.(db|sqlite)/.test(name)),
    `in a view: ${where.join(' ')}`,
  )
  t.ok(
    lines.some((line) => line.includes('"level":"debug"')),
    'the log was talkative',
  )
  t.ok(
    frames.some(({ type }) => type === 'jobs.claimed') &&
      leases.every((token) => token.startsWith('lt_')) &&
      /^wst_/.test(session),
  )
})

t.test('no line of the log contains a credential, a session token or a lease token', async (t) => {
  const all = lines.join('\n')
  for (const [what, secret] of [
    ...Object.entries(credentials),
    ...leases.map((token, index): [string, string] => [`lease ${index}`, token]),
  ])
    t.notOk(all.includes(secret), what)
  t.notMatch(all, /Bearer [\w.-]{8}/)
})

t.test('no answer repeats a credential, and records contain no lease tokens', async (t) => {
  const all = said.join('\n')
  for (const [what, secret] of [
    ...Object.entries(credentials),
    ...leases.map((token, index): [string, string] => [`lease ${index}`, token]),
  ])
    t.notOk(all.includes(secret), what)
  for (const key of keys) t.notOk(all.includes(hash(key)), 'not even its hash')
})

t.test('of a credential, only the hash is stored', async (t) => {
  // The root key is configured here. A generated key would be stored in a separate file that only
  // its owner can read.
  for (const [what, secret] of Object.entries(credentials)) t.strictSame(holding(secret), [], what)
  for (const { signing_secret } of signing)
    t.strictSame(
      [...kept].filter(([, bytes]) =>
        bytes.includes(Buffer.from(String(signing_secret), 'base64')),
      ),
      [],
      'not as bytes either',
    )
  for (const secret of [ROOT, keys[0], keys[2], session])
    t.ok(holding(hash(String(secret))).length > 0, 'its hash is')
  t.strictSame(
    holding(hash(ROOT)).filter((name) => /\.(db|sqlite)/.test(name)),
    [],
    'views have no need of hashes',
  )
  t.strictSame(holding(hash(UNKNOWN)), [], 'nothing is stored about an unknown key')
})

t.test('a lease token is only in the journal and the snapshots', async (t) => {
  for (const token of leases) {
    const where = holding(token)
    t.ok(
      where.length > 0 && where.every((name) => /^nats.*(JOURNAL|STATE)/.test(name)),
      where.join(' '),
    )
  }
})
