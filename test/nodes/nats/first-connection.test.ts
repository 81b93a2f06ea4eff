/** The first connection to a cluster, whose servers report the addresses of the other servers. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import type { Credentials } from '../../../nodes/nats/server/access.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import type { Server } from '../../../nodes/nats/server/server.ts'
import { StartFault } from '../../../nodes/process/fault.ts'
import { natsServers } from '../../scenarios/support/clusters.ts'
import { silentLog } from '../../support/memory.ts'
import { freePort } from '../../support/ports.ts'
import { createAuthority, whyNoCertificates } from '../support/certificates.ts'

t.setTimeout(120_000)
const folder = mkdtempSync(join(tmpdir(), 'baton-first-connection-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

const newSeed = (): { seed: string; publicKey: string } => {
  const pair = nkeys.createUser()
  return { seed: new TextDecoder().decode(pair.getSeed()), publicKey: pair.getPublicKey() }
}
const addressesOf = (servers: readonly Server[]): string[] => servers.map(({ url }) => url)
async function cluster(name: string, authorization: string, count = 3): Promise<Server[]> {
  const servers = await natsServers(join(folder, name), count, authorization)
  t.teardown(() => Promise.all(servers.map((server) => server.stop())))
  return servers
}
const open = (
  servers: readonly string[],
  credentials?: Credentials,
  tls?: { readonly ca: string; readonly cert: string; readonly key: string },
) =>
  connectNats({
    access: { servers, ...(credentials && { credentials }), ...(tls && { tls }) },
    name: 'test',
    log: silentLog,
    role: 'test',
  })
/** Asserts that the connection is refused within 5 s, with this message for the operator. */
async function refused(t: Test, attempt: () => ReturnType<typeof open>, message: RegExp) {
  const began = performance.now()
  const fault = await attempt().then(
    (nats) => nats.close().then(() => new Error('it connected')),
    (error: Error) => error,
  )
  const ms = performance.now() - began
  t.type(fault, StartFault)
  t.match(fault.message, message)
  t.ok(ms < 5000, `${ms} ms`)
}

const right = newSeed()
const servers = await cluster('keys', `authorization { users: [{ nkey: ${right.publicKey} }] }`)
const [one = '', two = '', three = ''] = addressesOf(servers)
const credentials: Credentials = { type: 'nkey', seed: right.seed }
const wrong: readonly (readonly [string, Credentials])[] = [
  ['BATON_NATS_USER and BATON_NATS_PASSWORD', { type: 'password', user: 'b', password: 'c' }],
  ['BATON_NATS_TOKEN', { type: 'token', token: 'wrong' }],
  ['BATON_NATS_NKEY', { type: 'nkey', seed: newSeed().seed }],
]

for (const [title, addresses] of [
  ['one address', [one]],
  ['all addresses', [one, two, three]],
] as const) {
  t.test(`a cluster refuses missing credentials, with ${title}`, (t) =>
    refused(t, () => open(addresses), /requires credentials: set BATON_NATS_CREDS/),
  )
  for (const [settings, given] of wrong)
    t.test(`a cluster refuses a wrong ${given.type}, with ${title}`, (t) =>
      refused(
        t,
        () => open(addresses, given),
        new RegExp(`rejects the credentials of ${settings}: correct them\\.`),
      ),
    )
}

t.test('a refusal is reported when another server is not running', async (t) => {
  const down = `nats://127.0.0.1:${await freePort()}`
  await refused(t, () => open([down, one]), /requires credentials: set BATON_NATS_CREDS/)
})

t.test('a refusal is reported when other servers do not answer', async (t) => {
  const stalled = createServer(() => {})
  await new Promise<void>((done) => stalled.listen(0, '127.0.0.1', done))
  t.teardown(() => stalled.close())
  const address = stalled.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const silent = ['127.0.0.1', 'localhost'].map((host) => `nats://${host}:${port}`)
  await refused(t, () => open([...silent, one]), /requires credentials: set BATON_NATS_CREDS/)
})

t.test('one accepting server is enough', async (t) => {
  const token = await cluster('token', 'authorization { token: secret }', 2)
  const down = `nats://127.0.0.1:${await freePort()}`
  for (let i = 0; i < 5; i++) {
    const nats = await open([...addressesOf(token), down, one], credentials)
    t.equal(nats.connection.getServer(), one.replace('nats://', ''))
    await nats.close()
  }
})

t.test('a connection learns the other servers of the cluster', async (t) => {
  const nats = await open([one], credentials)
  t.teardown(() => nats.close())
  const reconnected = new Promise<void>((done) => nats.onReconnect(done))
  await servers[0]?.stop()
  await reconnected
  t.ok([two, three].includes(`nats://${nats.connection.getServer()}`))
})

const skip = whyNoCertificates() ?? false
t.test('a cluster refuses a certificate of another authority', { skip }, async (t) => {
  const [authority, other] = ['right', 'other'].map((name) =>
    createAuthority(join(folder, name), name),
  )
  if (!authority || !other) throw new Error('no authority')
  const { ca } = authority
  const server = authority.issue('server')
  const files = { cert_file: server.cert, key_file: server.key, ca_file: ca, verify: true }
  const strict = addressesOf(await cluster('tls', `tls ${JSON.stringify(files)}`, 2))
  await (await open(strict, undefined, { ca, ...authority.issue('node') })).close()
  for (const addresses of [strict, strict.slice(0, 1)])
    await refused(
      t,
      () => open(addresses, undefined, { ca, ...other.issue('node') }),
      /rejects the client certificate: set BATON_NATS_CERT/,
    )
})
