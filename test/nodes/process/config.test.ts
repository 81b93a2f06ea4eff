/**
 * Settings from flags, the environment and defaults. All faults are reported together. Also covers
 * other small parts of a node: package sources, versions, subject patterns, the log and metrics.
 */
import t from 'tap'
import { gatewaySettings } from '../../../nodes/config/gateway.ts'
import { type Config, readConfig, settingsTable } from '../../../nodes/config.ts'
import { matches } from '../../../nodes/nats/bus/listeners.ts'
import { mirrorsOfList, mirrorsOfSources } from '../../../nodes/nats/server/debian.ts'
import { compareVersions, isAccepted, versionIn } from '../../../nodes/nats/server/version.ts'
import { createLog } from '../../../nodes/observe/log.ts'
import { createMetrics } from '../../../nodes/observe/metrics.ts'
import { firstTokens, subjects } from '../../../protocol/subjects.ts'
import { operatorGuide } from '../../docs/operator-guide.ts'

const config = (env: Record<string, string> = {}, ...argv: string[]): Config => {
  const read = readConfig(env, argv)
  if ('faults' in read) throw new Error(read.faults.join('\n'))
  return read.config
}
const faults = (env: Record<string, string> = {}, ...argv: string[]) => {
  const read = readConfig(env, argv)
  return 'faults' in read ? read.faults : []
}

t.test('without settings, a node has all roles and serves only this machine', async (t) => {
  t.match(config(), {
    host: '127.0.0.1',
    port: 8080,
    data: '.baton',
    nats: [],
    sync: 'always',
    roles: ['gateway', 'shards', 'views', 'executor', 'hosts'],
    partitions: 1,
    shards: 4,
    replicas: 1,
    rate: { key: 600, organization: 6000, window_seconds: 60 },
    deadline: 15_000,
    keepalive: 15_000,
    sessions: { age: 55_000, idle: 2000 },
    cors: [],
    brand: 'Service',
    key_prefix: 'bat',
    timing: { cadence: 20, lease: 60, poll: 20, stale: 90, takeover: 60, register: 30 },
  })
  t.notOk('root_key' in config() || 'anonymous_worker' in config())
})

t.test('a flag overrides the environment, and the environment overrides the default', async (t) => {
  t.equal(config({ BATON_PORT: '1' }).port, 1)
  t.equal(config({ BATON_PORT: '1' }, '--port', '2').port, 2)
  t.equal(config({}, '--port=3').port, 3)
  t.equal(config({ BATON_PORT: '' }).port, 8080, 'empty is unset')
  t.equal(config({}, '--anonymous-worker', '--port', '4').anonymous_worker, 'anonymous')
  t.equal(config({ BATON_ANONYMOUS_WORKER: 'svc_1' }).anonymous_worker, 'svc_1')
  t.equal(config({ BATON_ANONYMOUS_WORKER: 'off' }).anonymous_worker, undefined)
})

t.test('lists, durations and choices are parsed', async (t) => {
  const read = config({
    BATON_NATS: 'nats://a:4222, b:4223',
    BATON_REPLICAS: '3',
    BATON_ROLES: 'gateway,views,gateway',
    BATON_DEADLINE: '20s',
    BATON_KEEPALIVE: '30',
    BATON_SYNC: '2m',
    BATON_CORS: 'https://a.example,*',
  })
  t.match(read, {
    nats: ['nats://a:4222', 'b:4223'],
    replicas: 3,
    roles: ['gateway', 'views'],
    deadline: 20_000,
    keepalive: 30_000,
    sync: '2m',
    cors: ['https://a.example', '*'],
  })
})

t.test('trusted proxies are networks and addresses', async (t) => {
  t.strictSame(config().trusted_proxies, [])
  const networks = ['10.0.0.0/8', '192.0.2.7', 'fd00::/16', '2001:db8::1']
  t.strictSame(config({ BATON_TRUSTED_PROXIES: networks.join(', ') }).trusted_proxies, networks)
  for (const text of ['proxy.example.org', '10.0.0.0/33', '10.1/8', '10.0.0.1,x', 'fd00::/129'])
    t.match(faults({ BATON_TRUSTED_PROXIES: text }), [
      /^BATON_TRUSTED_PROXIES is ".*": it must be networks such as 10\.0\.0\.0\/8/,
    ])
  for (const text of ['0.0.0.0/0', '10.0.0.1,::/0'])
    t.match(faults({ BATON_TRUSTED_PROXIES: text }), [
      /must not contain a network of all addresses/,
    ])
})

t.test('the bucket of files is parsed', async (t) => {
  t.equal(config({}).bucket, undefined)
  t.strictSame(config({ BATON_ARTIFACTS: 's3://files' }).bucket, {
    bucket: 'files',
    prefix: '',
    region: 'us-east-1',
  })
  t.strictSame(
    config({
      BATON_ARTIFACTS: 's3://files/team%20a?region=eu-central-1&endpoint=http://127.0.0.1:9000',
    }).bucket,
    {
      bucket: 'files',
      prefix: 'team a/',
      region: 'eu-central-1',
      endpoint: 'http://127.0.0.1:9000',
    },
  )
  for (const text of ['files', 'http://files', 's3://f', 's3://key:secret@files', 's3://files?a=1'])
    t.match(faults({ BATON_ARTIFACTS: text }), [/must be such as s3:/], text)
  t.match(faults({ BATON_ARTIFACTS: 's3://files?endpoint=minio:9000' }), [/endpoint/])
})

t.test('text that only resembles a URL or an address is refused', async (t) => {
  const sender = { BATON_NOTIFY_FROM: 'baton@example.org' }
  for (const [name, text] of [
    ['BATON_PUBLIC_URL', 'http://:80'],
    ['BATON_PUBLIC_URL', 'https://baton.example.org:80800'],
    ['BATON_GATEWAY_URL', 'http://[::1'],
    ['BATON_NOTIFY_URL', 'https://hooks.example.org:x/baton'],
    ['BATON_NOTIFY_SMTP', 'smtp://mail.example.org:587000'],
    ['BATON_OIDC_ISSUER', 'https://login.example.org:x'],
    ['BATON_CORS', 'https://:443'],
    ['BATON_CORS', 'https://example.org?x'],
    ['BATON_ARTIFACTS', 's3://files/%ff'],
    ['BATON_ARTIFACTS', 's3://files?endpoint=http://minio:x'],
    ['BATON_SMTP_DNS', 'abc'],
    ['BATON_SMTP_DNS', '10.0.0.2:53:53'],
    ['BATON_SMTP_DNS', '10.0.0.2, 10.0.0.300'],
  ] as const) {
    const [fault, ...further] = faults({ ...sender, [name]: text })
    t.match(fault, new RegExp(`^${name}\\b.*(must be|that is not) `), `${name}=${text}`)
    t.strictSame(further, [])
  }
  const provider = { name: 'cloud', url: 'https://cloud.example.org:x', secret: '0123456789abcdef' }
  t.match(faults({ BATON_HTTP_PROVIDERS: JSON.stringify([provider]) }), [/provider cloud/])
  t.strictSame(faults({ BATON_SMTP_DNS: '10.0.0.2, 10.0.0.2:53, ::1, [::1]:53' }), [])
})

t.test('the URL of a gateway on all addresses has an address that can be opened', async (t) => {
  const urlFor = (host: string) => gatewaySettings(config({ BATON_HOST: host })).public_url
  t.equal(urlFor('0.0.0.0'), 'http://127.0.0.1:8080')
  t.equal(urlFor('::'), 'http://[::1]:8080')
  t.equal(urlFor('fd00::1'), 'http://[fd00::1]:8080')
  t.equal(urlFor('baton.internal'), 'http://baton.internal:8080')
})

t.test('credentials in the address of a NATS server are refused and not shown', async (t) => {
  for (const text of ['nats://user:pa55word@a:4222', 'a:4222,tls://t0ken-pa55word@b:4222']) {
    const [fault, ...further] = faults({ BATON_NATS: text })
    t.match(fault, /^BATON_NATS must be .* without credentials; set BATON_NATS_USER and/)
    t.notMatch(fault, 'pa55word')
    t.strictSame(further, [])
  }
  for (const text of ['nats://a:42220000', 'a:b:c', 'nats://a:x'])
    t.match(faults({ BATON_NATS: text }), [/^BATON_NATS is .* it must be addresses such as/], text)
  for (const text of ['a', 'a_b:4222', '10.0.0.1:4222', '[::1]:4222', 'fd00::1', 'tls://n.example'])
    t.strictSame(config({ BATON_NATS: text }).nats, [text])
})

t.test('origins are written as browsers send them', async (t) => {
  t.strictSame(config({ BATON_CORS: 'https://App.Example:443, HTTP://localhost:3000' }).cors, [
    'https://app.example',
    'http://localhost:3000',
  ])
})

t.test('all faults are reported together, with instructions', async (t) => {
  const told = faults(
    { BATON_PORT: 'x', BATON_ROLES: 'gateway,cook', BATON_KEY_PREFIX: 'a_b' },
    '--colour',
    'red',
    '--host',
  )
  t.equal(told.length, 5)
  t.match(
    told.join('\n'),
    new RegExp(
      [
        '--colour is not a setting',
        '--host needs a value',
        'BATON_PORT is "x": it must be a whole number',
        'must be one of gateway, shards, views, executor, hosts',
        'BATON_KEY_PREFIX',
      ].join('[^]*'),
    ),
  )
})

t.test('settings that contradict each other are refused', async (t) => {
  t.match(faults({ BATON_REPLICAS: '3' }), [/BATON_REPLICAS/])
  t.match(faults({ BATON_NATS: 'wss://a:443' }), [/BATON_NATS is .*tls:/])
  t.match(faults({ BATON_WORKER_LEASE: '30' }), [/lease must be at least three/])
  t.match(faults({ BATON_ROLES: ',' }), [/BATON_ROLES is empty/])
  t.match(faults({ BATON_NOTIFY_SMTP: 'smtp://mail.example.org' }), [/set BATON_NOTIFY_FROM/])
})

t.test('an unreadable file of a NATS setting is the only fault', async (t) => {
  const missing = '/nonexistent/secret'
  for (const [settings, named] of [
    [{ BATON_NATS_USER: 'a', BATON_NATS_PASSWORD: `@${missing}` }, /^BATON_NATS_PASSWORD must be/],
    [{ BATON_NATS_CERT: import.meta.filename, BATON_NATS_KEY: missing }, /^BATON_NATS_KEY is/],
  ] as const) {
    const told = faults(settings)
    t.equal(told.length, 1, told.join())
    t.match(told[0], named)
  }
  t.match(faults({ BATON_NATS_USER: 'a' }), [/must be set together/])
})

t.test('e-mail notifications need a mail server and a sender', async (t) => {
  const url = 'smtps://me:pass@mail.example.org:465/?requireTLS=true'
  for (const from of ['baton@example.org', 'Baton <baton@example.org>'])
    t.strictSame(config({ BATON_NOTIFY_SMTP: url, BATON_NOTIFY_FROM: from }).email, { url, from })
  t.equal(config({ BATON_NOTIFY_FROM: 'baton@example.org' }).email, undefined)
  t.equal(
    faults({
      BATON_NOTIFY_SMTP: url,
      BATON_NOTIFY_FROM: 'Baton <baton@example.org>, evil@example.org',
    }).length,
    2,
  )
})

t.test('an invalid secret is not shown', async (t) => {
  t.notMatch(faults({ BATON_NOTIFY_SMTP: 'http://me:pass@mail' }).join(), /me:pass/)
  t.match(faults({ BATON_ROOT_KEY: 'short!' }), [/^BATON_ROOT_KEY must be/])
  t.notMatch(faults({ BATON_ROOT_KEY: 'short!' })[0], /short!/)
})

t.test(
  'every setting has a flag, a description, a line in the guide and a valid default',
  async (t) => {
    const guide = operatorGuide()
    for (const { name, flag, standard, description } of settingsTable()) {
      t.match(flag, /^--[a-z-]+$/)
      t.ok(description.length > 10)
      t.equal(guide.split(`\n| \`${name}\` |`).length, 2, name)
      if (standard !== undefined) t.same(faults({ [name]: standard }), [], name)
    }
  },
)

t.test('package sources of Debian are parsed in both formats', async (t) => {
  const list =
    '# deb http://no main\n' +
    'deb [arch=amd64 signed-by=/k.gpg] http://a/debian stable main contrib\n' +
    'deb http://a/debian-security stable-security main\ndeb-src http://a/debian stable main\n'
  t.same(mirrorsOfList(list), [{ uri: 'http://a/debian', keyring: '/k.gpg' }])
  const sources =
    'Types: deb deb-src\n# a comment\nURIs: http://b/debian\nSuites: stable\n stable-updates\n' +
    'Components: main\nSigned-By: /k.gpg\n\nTypes: deb\nURIs: http://b/security\n' +
    'Suites: stable-security\nComponents: main\n\nEnabled: no\nTypes: deb\n' +
    'URIs: http://c/debian\nSuites: stable\nComponents: main\n'
  t.same(mirrorsOfSources(sources), [{ uri: 'http://b/debian', keyring: '/k.gpg' }])
})

t.test('versions are compared by number', async (t) => {
  t.equal(versionIn('nats-server: v2.15.1\n'), '2.15.1')
  t.ok(compareVersions('2.9.10', '2.14.5') < 0)
  t.ok(isAccepted('2.14.5') && isAccepted('3.0.0'))
  t.notOk(isAccepted('2.14.4'))
})

t.test('subject patterns match as in NATS', async (t) => {
  const match = (pattern: string, subject: string) =>
    matches(pattern.split('.'), subject.split('.'))
  t.ok(match('a.*.c', 'a.b.c') && match('a.>', 'a.b.c') && match('>', 'a') && match('a.b', 'a.b'))
  t.notOk(
    match('a.*', 'a.b.c') || match('a.>', 'a') || match('a.b.c', 'a.b') || match('a.b', 'a.b.c'),
  )
})

t.test('the log masks secrets', async (t) => {
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    node: 'n1',
    to: { write: (line) => void lines.push(line) },
  })
  log.info(
    {
      event: 'job_seen',
      authorization: 'Bearer abc',
      job: { lease_token: 'abc', id: 'j' },
      frame: { body: { token: 'abc' } },
    },
    'seen',
  )
  log.debug({ event: 'not_written' }, 'not written')
  log.warn({ event: 'job_failed', error: new Error('because') }, 'failed')
  t.equal(lines.length, 2)
  t.notMatch(lines[0], /abc/)
  t.match(JSON.parse(lines[0] ?? ''), {
    level: 'info',
    node: 'n1',
    event: 'job_seen',
    msg: 'seen',
    job: { id: 'j' },
  })
  t.match(JSON.parse(lines[1] ?? ''), { error: { message: 'because' } })
})

t.test('every node has separate metrics', async (t) => {
  const [a, b] = [createMetrics('1'), createMetrics('1')]
  a.request('run.get', 200, 0.01)
  a.open('sse', 1)
  a.inc('frames_in')
  a.commit(0.002, 3)
  a.command('run', 'accepted')
  a.viewLag(0, 7)
  a.shardsOwned(0, 3)
  const text = await a.text()
  for (const line of [
    'baton_request_seconds_count{operation="run.get",status="200"} 1',
    'baton_sse_streams_open 1',
    'baton_worker_frames_in_total 1',
    'baton_commit_commands_sum 3',
    'baton_commands_total{kind="run",outcome="accepted"} 1',
    'baton_view_lag_messages{partition="0"} 7',
    'baton_shards_owned{partition="0"} 3',
  ])
    t.ok(text.includes(line), line)
  t.notMatch(await b.text(), /accepted/)
})

t.test('receiving e-mail needs a domain, and a certificate needs its key', async (t) => {
  const faultsOf = (env: Record<string, string>) => {
    const read = readConfig(env, [])
    return 'faults' in read ? read.faults.join(' ') : ''
  }
  t.match(faultsOf({ BATON_SMTP_PORT: '2525' }), /BATON_INBOX_DOMAIN/)
  const mail = { BATON_SMTP_PORT: '2525', BATON_INBOX_DOMAIN: 'agents.test' }
  t.match(faultsOf({ ...mail, BATON_SMTP_TLS_CERT: 'a.pem' }), /BATON_SMTP_TLS_KEY/)
  t.equal(faultsOf(mail), '')
})

t.test('no first token of a subject can be the prefix of an installation', async (t) => {
  const text = 'a' as never
  for (const [name, subject] of Object.entries(subjects)) {
    if (name.endsWith('Group') || name === 'executor') continue
    const [first = ''] = (typeof subject === 'string' ? subject : subject(text, text, text)).split(
      '.',
    )
    t.ok(firstTokens.has(first), name)
    t.match(faults({ BATON_NATS_PREFIX: first }), [/reserved subject token/], name)
  }
})
