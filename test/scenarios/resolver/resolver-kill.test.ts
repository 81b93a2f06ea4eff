/**
 * Definitions from a resolver over TLS. The service runs as real processes that trust the
 * resolver's certificate: two gateways, and a node that is killed and restarted. The answer of the
 * agent shows which definition was used.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { api, type RowName } from '../../../protocol/api.ts'
import { silentLog } from '../../support/memory.ts'
import { requestOf } from '../../support/service.ts'
import { fieldsOf, until } from '../support/given.ts'
import { portsFor, processes } from '../support/processes.ts'
import { cert } from '../support/servers/loopback.ts'
import { json } from '../support/servers/receiver.ts'
import { saying, startResolver } from '../support/servers/resolver.ts'
import { hasty } from '../support/sockets.ts'

type Json = Record<string, never>
t.setTimeout(240_000)
const folder = mkdtempSync(join(tmpdir(), 'baton-ca-'))
writeFileSync(join(folder, 'ca.pem'), cert)
const it = await processes({
  ...hasty,
  BATON_SHARDS: '2',
  BATON_OUTBOUND_ALLOW: '127.0.0.0/8',
  NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
})
const resolver = await startResolver()
t.teardown(async () => {
  await Promise.all([resolver.receiver.close(), it.stop()])
  rmSync(folder, { recursive: true, force: true })
})
const [front = 0, side = 0] = await portsFor(2)
let main = await it.node('front', 'gateway,shards,views,executor', front)
await it.node('side', 'gateway', side)

const call = async (
  name: RowName,
  input: Record<string, unknown> = {},
  port = front,
  key = it.key,
): Promise<{ status: number; body: Json }> => {
  const { method, path, body } = requestOf(api[name], input)
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body }),
  })
  return { status: answer.status, body: JSON.parse((await answer.text()) || '{}') as Json }
}
const ok = async (name: RowName, input: Record<string, unknown> = {}, port = front) => {
  const { status, body } = await call(name, input, port)
  if (status >= 300) throw new Error(`${name} was refused: ${JSON.stringify(body)}`)
  return body
}
const configure = (settings: object = {}) =>
  ok('resolver.put', {
    source: 'client_resolver',
    endpoint_url: `${resolver.url}/definitions`,
    ...settings,
  })
const text = (said: string) => ({ input: { content: [{ type: 'text', text: said }] } })
const invoke = (name: string, more: object = {}, port = front) =>
  call(
    'agent.invoke',
    { agent_ref: { name }, session: { mode: 'new' }, ...text('Go'), ...more },
    port,
  )
/** Starts a run of one step, and returns the answer of the agent or the error type of the step. */
async function saidIn(agent_id: string): Promise<string> {
  const step = { id: 'ask', kind: 'agent', config: { agent_id, instructions: 'Go' } }
  const { id } = await ok('run.start', { spec: { steps: [step] } })
  await until(
    () => ok('run.get', { id }),
    ({ status }) => ['completed', 'failed'].includes(String(status)),
  )
  const { items } = await ok('run.steps', { id })
  const [row] = items as unknown as { result?: { text: string }; error_type?: string }[]
  return row?.result?.text ?? row?.error_type ?? ''
}
const idOf = async (name: string) =>
  ((await ok('agent.list', {}))['items'] as unknown as { id: string; name: string }[]).find(
    (agent) => agent.name === name,
  )?.id
const lastCall = () => resolver.calls().at(-1)

await ok('agent.create', { name: 'helper', system_prompt: 'script:\n  - say: stored' })
await ok('project.update', { external_ref: 'tenant-9' })

t.test('without a resolver, the stored definition is used', async (t) => {
  t.equal(await saidIn('helper'), 'stored')
  t.equal(resolver.calls().length, 0)
})

t.test('requests to the resolver follow the protocol, and its definition is used', async (t) => {
  await configure({ auth: { token: 'secret-of-the-caller' } })
  resolver.entry(saying('d1'))
  t.equal(await saidIn('helper'), 'd1')
  const [first] = resolver.receiver.deliveries
  t.equal(first?.path, '/definitions')
  t.match(first?.headers, {
    authorization: 'Bearer secret-of-the-caller',
    'content-type': 'application/json',
    'x-service-delivery-id': /^[0-9a-f]{32}$/,
    'x-request-id': /^[0-9a-f]{32}$/,
  })
  const { id: project } = await ok('project.get', {})
  t.strictSame(first?.body as unknown, {
    protocol_version: 1,
    org_id: lastCall()?.org_id,
    project: { id: project, external_ref: 'tenant-9' },
    trigger: { kind: 'api' },
    refs: [{ selector: 'agent/helper' }],
  })
  t.match(lastCall()?.org_id, /^org_/)
  const acknowledged = await invoke('helper')
  t.equal(acknowledged.status, 202)
  t.match(lastCall(), { trigger: { kind: 'invoke' }, refs: [{ known_digest: 'd1' }] })
})

t.test('an inline config wins, and an absent field has its stored value', async (t) => {
  resolver.entry({ digest: 'short', value: { agent: { timeout_seconds: 33 } } })
  t.equal(await saidIn('helper'), 'stored')
  t.match(await invoke('helper'), { body: { turn: { effective_timeout_seconds: 33 } } })
  const inline = await invoke('helper', { config: { timeout_seconds: 44 } })
  t.match(inline, { body: { turn: { effective_timeout_seconds: 44 } } })
})

t.test('a definition is replaced, or confirmed as unchanged', async (t) => {
  resolver.entry(saying('d2'))
  t.equal(await saidIn('helper'), 'd2')
  resolver.entry({ unchanged: true })
  t.equal(await saidIn('helper'), 'd2')
  t.match(lastCall(), { refs: [{ known_digest: 'd2' }] })
})

/** Functions that make the resolver give an invalid answer, by name. */
const invalid: Readonly<Record<string, () => void>> = {
  'a server error': () => resolver.answer(json({ error: 'x' }, 500)),
  'a client error': () => resolver.answer(json({ error: 'x' }, 404)),
  'a redirect': () => resolver.answer(json({}, 302, { location: `${resolver.url}/elsewhere` })),
  'no JSON': () =>
    resolver.answer((_, res) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end('{"protocol_version":1,')
    }),
  'another version': () => resolver.answer(json({ protocol_version: 2, resolved: {} })),
  'no entry': () => resolver.answer(json({ protocol_version: 1, resolved: {} })),
  'an error of the entry': () => resolver.entry({ error: { code: 'busy' } }),
  'an empty digest': () => resolver.entry({ ...saying('d9'), digest: '' }),
  'a digest that is no text': () => resolver.entry({ ...saying('d9'), digest: 9 }),
  'an invalid value': () => resolver.entry({ digest: 'd9', value: { agent: { effort: 'huge' } } }),
  'more than 1 MiB': () => resolver.entry(saying('d9', { padding: 'x'.repeat(1_100_000) })),
  'an endless body': () =>
    resolver.answer((_, res) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      const more = () => {
        while (!res.destroyed && res.write(' '.repeat(65_536)));
      }
      res.on('drain', more)
      more()
    }),
  'a body that is cut off': () =>
    resolver.answer((_, res) => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
      res.write('{"protocol_version":1')
      setImmediate(() => res.destroy())
    }),
  silence: () => resolver.answer(() => {}),
}

t.test('without a valid answer, the last known good definition is used', async (t) => {
  await configure({ timeout_ms: 400 })
  for (const [name, answer] of Object.entries(invalid)) {
    const calls = resolver.calls().length
    answer()
    t.equal(await saidIn('helper'), 'd2', name)
    t.equal(resolver.calls().length, calls + 1, `${name}: one call, without a retry`)
  }
  t.notOk(resolver.receiver.deliveries.some(({ path }) => path === '/elsewhere'))
})

t.test('with `fail`, the turn and the run do not start', async (t) => {
  await configure({ timeout_ms: 400, on_unavailable: 'fail' })
  for (const [name, answer] of Object.entries(invalid)) {
    answer()
    const { status, body } = await invoke('helper')
    t.match([status, body], [503, { error: { code: 'definition_resolver_unavailable' } }], name)
  }
  const before = resolver.calls().length
  t.equal(await saidIn('helper'), 'definition_resolver_unavailable')
  t.equal(resolver.calls().length, before + 1, 'the step is not repeated')
  resolver.entry({ unchanged: true })
  t.equal(await saidIn('helper'), 'd2', 'the definition is kept meanwhile')
})

t.test('a definition that is too old is not used', async (t) => {
  await configure({ stale_max_age_s: 1 })
  resolver.entry({ unchanged: true })
  t.equal((await invoke('helper')).status, 202)
  resolver.answer(json({}, 500))
  t.equal((await invoke('helper')).status, 202)
  await until(
    () => invoke('helper'),
    ({ status }) => status === 503,
  )
  await configure()
  t.equal(await saidIn('helper'), 'd2', 'without a maximum age it is used')
})

t.test('the last known good definition survives a kill of the service', async (t) => {
  await main.kill()
  main = await it.node('front', 'gateway,shards,views,executor', front)
  t.equal(await saidIn('helper'), 'd2')
})

t.test('an unknown agent fails, and its definition is dropped', async (t) => {
  resolver.entry({ error: 'unknown_agent' })
  t.match(await invoke('helper'), { status: 409, body: { error: { code: 'unknown_agent' } } })
  t.equal(await saidIn('helper'), 'unknown_agent')
  resolver.answer(json({}, 500))
  t.match(await invoke('helper'), { status: 503 }, 'there is no last known good one')
  resolver.entry({ unchanged: true })
  t.match(await invoke('helper'), {
    status: 503,
    body: { error: { details: { reason: /no definition is stored/ } } },
  })
  t.equal(lastCall()?.refs[0]?.known_digest, undefined)
  resolver.entry(saying('d3'))
  t.equal(await saidIn('helper'), 'd3')
})

t.test('a run keeps the definition of its first turn', async (t) => {
  resolver.entry(saying('before'))
  const ask = (id: string) => ({
    id,
    kind: 'agent',
    config: { agent_id: 'helper', instructions: 'Go' },
  })
  const { id } = await ok('run.start', {
    spec: {
      steps: [
        ask('one'),
        { id: 'gate', kind: 'wait_for_event', config: { event_type: 'signal.go' } },
        ask('two'),
      ],
    },
  })
  const textsOf = async () => {
    const { items } = await ok('run.steps', { id })
    return (items as unknown as { id?: string; result?: { text?: string } }[]).flatMap(
      ({ result }) => result?.text ?? [],
    )
  }
  await until(textsOf, (texts) => texts.length === 1)
  resolver.entry(saying('after'))
  const calls = resolver.calls().length
  await until(
    () => call('run.signal', { id, name: 'go' }),
    ({ status }) => status < 300,
  )
  t.strictSame(await until(textsOf, (texts) => texts.length === 2), ['before', 'before'])
  t.equal(resolver.calls().length, calls)
  t.equal(await saidIn('helper'), 'after', 'another run has the new one')
})

t.test('only the turns of a session are resolved', async (t) => {
  resolver.entry(saying('talk'))
  const { session } = await ok('session.create', { agent_id: String(await idOf('helper')) }).then(
    (created) => ({ session: String(created['id']) }),
  )
  const calls = () => resolver.calls().length
  const before = calls()
  await ok('session.append', {
    session_id: session,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Noted.' }] }],
  })
  t.equal(calls(), before, 'an appended message starts no turn')
  await ok('session.start_turn', { session_id: session, content: text('Go').input.content })
  t.equal(calls(), before + 1)
  t.match(lastCall(), { trigger: { kind: 'turn' } })
  await until(
    () => ok('session.turns', { session_id: session }),
    ({ items }) => JSON.stringify(items).includes('completed'),
  )
  await ok('session.compact', { session_id: session })
  t.equal(calls(), before + 1)
})

t.test('500 starts at once over two gateways make one call for each agent', async (t) => {
  const agents = ['many-1', 'many-2']
  for (const name of agents)
    await ok('agent.create', {
      name,
      model: 'nobody/serves-this',
      model_route: { mode: 'worker' },
    })
  await configure({ revalidate_after_s: 600, timeout_ms: 20_000 })
  const before = resolver.calls().length
  const waiting: (() => void)[] = []
  resolver.answer((delivery, res) => {
    const [ref] = (delivery.body as unknown as { refs: { selector: string }[] }).refs
    const resolved = { [ref?.selector ?? '']: { digest: 'm', value: {} } }
    waiting.push(() => json({ protocol_version: 1, resolved })(delivery, res))
  })
  // On a busy machine, the service refuses some of these requests with `service_unavailable`, and
  // clients repeat them.
  const start = async (index: number): Promise<number> => {
    for (;;) {
      const answer = await invoke(agents[index % 2] ?? '', {}, index % 4 < 2 ? front : side)
      const { code } = (answer.body as { error?: { code: string } }).error ?? {}
      if (code !== 'service_unavailable') return answer.status
      await new Promise((again) => setTimeout(again, 50))
    }
  }
  const starts = Array.from({ length: 500 }, (_, index) => start(index))
  await until(
    async () => waiting.length,
    (length) => length === 2,
  )
  for (const end of waiting) end()
  t.strictSame([...new Set(await Promise.all(starts))], [202])
  const selectors = resolver
    .calls()
    .slice(before)
    .map(({ refs }) => refs[0]?.selector)
  t.strictSame(selectors.sort(), ['agent/many-1', 'agent/many-2'])
})

t.test('a deleted project leaves no definitions', async (t) => {
  const { id: project } = await ok('project.create', { name: 'Other', handle: 'other' })
  await ok('agent.create', { project: 'other', name: 'helper' })
  await configure()
  resolver.entry(saying('theirs'))
  t.equal((await invoke('helper', { project: 'other' })).status, 202)
  const nats = await connectNats({
    access: it.access,
    name: 'test',
    log: silentLog,
    role: 'gateway',
  })
  t.teardown(() => nats.close())
  const entries = async () => {
    const { state } = await nats.manager.streams.info('KV_DEFINITIONS', { subjects_filter: '>' })
    return Object.keys(state.subjects ?? {}).filter((subject) => subject.includes(String(project)))
  }
  t.equal((await entries()).length, 2)
  await call('project.delete', { project: 'other' })
  await until(entries, (left) => left.length === 0)
})

t.test('addresses that are not public are refused', async (t) => {
  for (const endpoint_url of ['https://10.0.0.1/', 'https://192.168.1.1/', 'http://127.0.0.1/'])
    t.strictSame(
      fieldsOf(
        (
          (await call('resolver.put', { source: 'client_resolver', endpoint_url })).body as {
            error: never
          }
        ).error,
      ),
      ['endpoint_url'],
    )
})

t.test('a certificate that is not trusted is no valid answer', async (t) => {
  const sockets = new Set<Socket>()
  const plain = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.end('HTTP/1.1 200 OK\r\n\r\n')
  })
  await new Promise<void>((done) => plain.listen(0, '127.0.0.1', done))
  t.teardown(() => plain.close())
  const address = plain.address()
  const port = typeof address === 'object' && address ? address.port : 0
  await configure({ endpoint_url: `https://127.0.0.1:${port}/`, on_unavailable: 'fail' })
  t.match(await invoke('helper'), { status: 503 })
  t.equal(sockets.size, 1)
})
