/**
 * The ways in which a node authenticates to NATS, against real servers. With valid credentials, a
 * node starts and completes a run. With invalid ones, the process exits with code 1 and prints one
 * sentence that mentions the setting.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect, nkeys } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import { programArguments } from '../../../nodes/commands/child.ts'
import { readConfig } from '../../../nodes/config.ts'
import {
  accountRoles,
  configurationOf,
  permissionsOf,
} from '../../../nodes/nats/server/permissions.ts'
import { type RunningNode, startNode } from '../../../nodes/node.ts'
import { StartFault } from '../../../nodes/process/fault.ts'
import { createAuthority, whyNoCertificates } from '../../nodes/support/certificates.ts'
import { startOperatorMode } from '../../nodes/support/operator.ts'
import { jetstreamBlock, startPlainServer } from '../../nodes/support/plain-server.ts'
import { silentLog } from '../../support/memory.ts'
import { freePort } from '../../support/ports.ts'
import { instant } from '../support/given.ts'

type Settings = Readonly<Record<string, string>>

t.setTimeout(240_000)
const folder = mkdtempSync(join(tmpdir(), 'baton-authentication-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const key = `bat_${'a'.repeat(32)}`
let folders = 0
const newFolder = () => join(folder, String(folders++))

const EVERY_ROLE = 'gateway,shards,views,executor,hosts'
const complete = (settings: Settings): Settings => ({
  // The role `hosts` is omitted unless a test needs it, because a host tests its sandbox at
  // startup.
  BATON_ROLES: 'gateway,shards,views,executor',
  BATON_PARTITIONS: '1',
  BATON_SHARDS: '1',
  BATON_PORT: '0',
  BATON_DATA: newFolder(),
  BATON_ROOT_KEY: key,
  BATON_VIEW_THREADS: 'off',
  BATON_LOG_LEVEL: 'silent',
  ...settings,
})
function start(settings: Settings): Promise<RunningNode> {
  const read = readConfig(complete(settings), [])
  if ('faults' in read) throw new Error(read.faults.join('\n'))
  const { config } = read
  return startNode(config, { servers: config.nats, ...config.nats_access }, silentLog)
}
async function ask(
  node: RunningNode,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await fetch(`${node.url}/v1/projects/default${path}`, {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}
/**
 * Starts a run, waits until the run is completed, and returns its id. The event stream of the run
 * ends with the run.
 */
async function completeRun(t: Test, node: RunningNode): Promise<string> {
  const { body } = await ask(node, '/runs', { spec: instant() })
  const id = String(body['id'])
  const events = await fetch(`${node.url}/v1/projects/default/runs/${id}/events`, {
    headers: { authorization: `Bearer ${key}`, accept: 'text/event-stream' },
  })
  t.match(await events.text(), /run\.completed/)
  return id
}
/** Asserts that a node with these settings starts and completes a run. */
async function works(t: Test, settings: Settings): Promise<void> {
  const node = await start(settings)
  await completeRun(t, node)
  await node.stop()
}

/** Returns the exit code and standard error of a process that cannot start. */
function endOf(settings: Settings): Promise<{ code: number | null; text: string }> {
  return new Promise((done, failed) => {
    const child = spawn(process.execPath, [...programArguments(), 'node'], {
      env: { ...process.env, ...complete(settings) },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 60_000,
    })
    let text = ''
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    child.once('error', failed)
    child.once('close', (code) => done({ code, text }))
  })
}
/**
 * Asserts that a node with these settings fails to start within 5 s, with a message for the
 * operator. If `exits` is true, also asserts that a child process with these settings prints only
 * the message and exits with code 1. This is done for one failure of each kind.
 */
async function fails(
  t: Test,
  settings: Settings,
  sentence: RegExp,
  { exits = false } = {},
): Promise<void> {
  const ending = exits ? endOf(settings) : undefined
  const began = performance.now()
  const fault = await start(settings).then(
    (node) => node.stop().then(() => new Error('it started')),
    (error: Error) => error,
  )
  const ms = performance.now() - began
  t.type(fault, StartFault)
  t.match(fault.message, sentence)
  t.ok(ms < 5000, `${ms} ms`)
  if (!ending) return
  const { code, text } = await ending
  t.equal(code, 1)
  t.match(text, sentence)
  t.match(text, /^.+\n$/, 'one line of text')
}

/**
 * Starts a separate server for one authentication method. Returns its address, `127.0.0.1:<port>`.
 */
async function serverWith(t: Test, configuration: string, domain?: string): Promise<string> {
  const at = newFolder()
  const server = await startPlainServer(at, `${jetstreamBlock(at, domain)}\n${configuration}`)
  t.teardown(() => server.stop())
  return server.address
}

t.test('a node connects with user and password', async (t) => {
  const address = await serverWith(t, 'authorization { user: baton, password: "a b#c" }')
  const right = {
    BATON_NATS: `nats://${address}`,
    BATON_NATS_USER: 'baton',
    BATON_NATS_PASSWORD: 'a b#c',
  }
  await works(t, right)
  await fails(
    t,
    { ...right, BATON_NATS_PASSWORD: 'wrong' },
    /rejects the credentials of BATON_NATS_USER and BATON_NATS_PASSWORD: correct them\./,
    { exits: true },
  )
})

t.test('a node connects with a token', async (t) => {
  const address = await serverWith(t, 'authorization { token: "secret-token" }')
  const right = { BATON_NATS: address, BATON_NATS_TOKEN: 'secret-token' }
  await works(t, right)
  await fails(
    t,
    { ...right, BATON_NATS_TOKEN: 'wrong' },
    /rejects the credentials of BATON_NATS_TOKEN: correct them\./,
  )
  await fails(t, { BATON_NATS: address }, /requires credentials: set BATON_NATS_CREDS/)
})

t.test('a node connects with an nkey', async (t) => {
  const [pair, other] = [nkeys.createUser(), nkeys.createUser()]
  const seedOf = (one: typeof pair) => new TextDecoder().decode(one.getSeed())
  const address = await serverWith(t, `authorization { users: [{ nkey: ${pair.getPublicKey()} }] }`)
  await works(t, { BATON_NATS: address, BATON_NATS_NKEY: seedOf(pair) })
  await fails(
    t,
    { BATON_NATS: address, BATON_NATS_NKEY: seedOf(other) },
    /rejects the credentials of BATON_NATS_NKEY: correct them\./,
  )
})

const allRoles = permissionsOf(
  accountRoles.filter((role) => role !== 'backup' && role !== 'restore'),
  { partitions: 1 },
)

t.test('a node connects in operator mode', async (t) => {
  const [nats, foreign] = [await startOperatorMode(), await startOperatorMode()]
  t.teardown(() => Promise.all([nats.stop(), foreign.stop()]))
  const address = nats.server.url
  await works(t, {
    BATON_ROLES: EVERY_ROLE,
    BATON_NATS: address,
    BATON_NATS_CREDS: await nats.user('node', allRoles),
  })
  await fails(
    t,
    { BATON_NATS: address, BATON_NATS_CREDS: await foreign.user('node', allRoles) },
    /rejects the credentials of BATON_NATS_CREDS: correct them\./,
  )
})

const skip = whyNoCertificates() ?? false
const quoted = (text: string) => JSON.stringify(text)

t.test('a node connects over TLS with a private certificate authority', { skip }, async (t) => {
  const [authority, other] = ['right', 'other'].map((name) => createAuthority(newFolder(), name))
  if (!authority || !other) throw new Error('no authority')
  const { cert, key: certKey } = authority.issue('server')
  const tls = `tls { cert_file: ${quoted(cert)}, key_file: ${quoted(certKey)} }`
  const address = await serverWith(t, tls)
  await works(t, { BATON_NATS: `tls://${address}`, BATON_NATS_CA: authority.ca })
  await works(t, { BATON_NATS: `nats://${address}`, BATON_NATS_CA: authority.ca })
  for (const settings of [{}, { BATON_NATS_CA: other.ca }])
    await fails(
      t,
      { BATON_NATS: `tls://${address}`, ...settings },
      /is not trusted .*set BATON_NATS_CA to the file of its certificate authority/,
    )
})

t.test('a server without TLS gets no credentials from a node that requires TLS', async (t) => {
  const address = await serverWith(t, 'authorization { user: baton, password: secret }')
  const login = { BATON_NATS_USER: 'baton', BATON_NATS_PASSWORD: 'secret' }
  await works(t, { BATON_NATS: `nats://${address}`, ...login })
  await fails(t, { BATON_NATS: `tls://${address}`, ...login }, /does not offer TLS, .* tls:\/\//, {
    exits: true,
  })
  const authority = skip ? undefined : createAuthority(newFolder(), 'unused')
  if (authority)
    await fails(
      t,
      { BATON_NATS: `nats://${address}`, BATON_NATS_CA: authority.ca, ...login },
      /does not offer TLS, .* BATON_NATS_CA/,
    )
})

for (const [mode, map] of [
  ['verify', false],
  ['verify_and_map', true],
] as const)
  t.test(`a node connects over TLS with a client certificate, ${mode}`, { skip }, async (t) => {
    const [authority, other] = ['right', 'other'].map((name) => createAuthority(newFolder(), name))
    if (!authority || !other) throw new Error('no authority')
    const server = authority.issue('server')
    const files = `cert_file: ${quoted(server.cert)}, key_file: ${quoted(server.key)}, ca_file: ${quoted(authority.ca)}`
    const address = await serverWith(
      t,
      `tls { ${files}, ${mode}: true }${map ? '\nauthorization { users: [{ user: "CN=node" }] }' : ''}`,
    )
    const settingsOf = ({ cert, key: certKey }: { cert: string; key: string }) => ({
      BATON_NATS: `tls://${address}`,
      BATON_NATS_CA: authority.ca,
      BATON_NATS_CERT: cert,
      BATON_NATS_KEY: certKey,
    })
    await works(t, settingsOf(authority.issue('node')))
    await fails(
      t,
      settingsOf(other.issue('node')),
      /rejects the client certificate: set BATON_NATS_CERT and BATON_NATS_KEY to one that it accepts\./,
      { exits: !map },
    )
    await fails(
      t,
      { BATON_NATS: `tls://${address}`, BATON_NATS_CA: authority.ca },
      /requires a client certificate/,
    )
    if (map)
      await fails(
        t,
        settingsOf(authority.issue('stranger')),
        /has no user for the certificate in BATON_NATS_CERT/,
      )
  })

for (const [title, leafHasJetStream] of [
  ['a leaf node without JetStream', false],
  ['a leaf node with a domain of its own', true],
] as const)
  t.test(`a node uses a JetStream domain behind ${title}`, async (t) => {
    const port = await freePort()
    const hub = await serverWith(t, `leafnodes { host: 127.0.0.1, port: ${port} }`, 'hub')
    const at = newFolder()
    const own = leafHasJetStream ? `${jetstreamBlock(at, 'edge')}\n` : ''
    const leaf = await startPlainServer(
      at,
      `${own}leafnodes { remotes: [{ url: "nats://127.0.0.1:${port}" }] }`,
    )
    t.teardown(() => leaf.stop())
    const settings = { BATON_NATS: leaf.address, BATON_NATS_DOMAIN: 'hub' }
    const node = await start(settings)
    const run = await completeRun(t, node)
    await node.stop()
    const direct = await start({ BATON_NATS: hub })
    t.match(
      (await ask(direct, `/runs/${run}`)).body,
      { status: 'completed' },
      'the hub stores the run',
    )
    await direct.stop()
    await fails(
      t,
      { BATON_NATS: leaf.address, BATON_NATS_DOMAIN: 'wrong' },
      /JetStream does not answer in the domain "wrong" .*correct BATON_NATS_DOMAIN/,
      { exits: !leafHasJetStream },
    )
    if (!leafHasJetStream)
      await fails(t, { BATON_NATS: leaf.address }, /runs without JetStream\..*BATON_NATS_DOMAIN/)
  })

t.test('two installations with different prefixes share the servers', async (t) => {
  const roles = accountRoles.filter((role) => role !== 'backup' && role !== 'restore')
  const users = ['acme', 'beta'].map(
    (prefix) =>
      `{ user: ${prefix}, password: pw, ${configurationOf(permissionsOf(roles, { partitions: 1, prefix }))} }`,
  )
  const address = await serverWith(
    t,
    `authorization { users: [{ user: admin, password: pw }\n${users.join('\n')}] }`,
  )
  const settingsOf = (user: string, prefix: string) => ({
    BATON_ROLES: EVERY_ROLE,
    BATON_NATS: address,
    BATON_NATS_USER: user,
    BATON_NATS_PASSWORD: 'pw',
    BATON_NATS_PREFIX: prefix,
  })
  const [acme, beta] = [
    await start(settingsOf('acme', 'acme')),
    await start(settingsOf('beta', 'beta')),
  ]
  t.teardown(() => Promise.all([acme.stop(), beta.stop()]))
  const admin = await connect({ servers: address, user: 'admin', pass: 'pw' })
  t.teardown(() => admin.close())
  const heard = new Set<string>()
  const spy = admin.subscribe('>', {
    callback: (_, { subject }) => void heard.add(subject.split('.')[0] ?? ''),
  })
  const run = await completeRun(t, acme)
  await completeRun(t, beta)
  await admin.flush()
  spy.unsubscribe()
  heard.delete('_INBOX')
  t.strictSame(
    [...heard].filter((first) => !first.startsWith('$')).sort(),
    ['acme', 'beta'],
    'no subject lacks a prefix',
  )
  t.equal((await ask(acme, `/runs/${run}`)).status, 200)
  t.equal((await ask(beta, `/runs/${run}`)).status, 404)
  const runs = (await ask(beta, '/runs')).body['items']
  t.notMatch(runs, [{ id: run }])
  const owners: string[] = []
  for await (const { config } of (await jetstreamManager(admin)).streams.list())
    owners.push(/^(?:KV_|OBJ_)?(acme|beta)_/.exec(config.name)?.[1] ?? config.name)
  t.strictSame([...new Set(owners)].sort(), ['acme', 'beta'])
  await fails(t, settingsOf('acme', 'beta'), /may not (publish|subscribe) to "/)
})
