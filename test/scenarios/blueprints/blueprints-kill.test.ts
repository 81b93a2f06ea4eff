/**
 * Gateways and shard owners are killed during applies of a hundred resources. Repeated applies
 * converge, no resource is created twice, and an acknowledged apply is complete.
 */
import t from 'tap'
import { type Found, listOf } from '../support/given.ts'
import { type Processes, portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

/**
 * Number of kills of each kind (gateway, shard owner). The long form, `KILLS=6`, takes half a
 * minute per kill.
 */
const KILLS = Number(process.env['KILLS'] ?? 1)
/** Milliseconds for which a request is repeated. A node may start slowly on a busy machine. */
const RETRY_TIMEOUT_MS = 90_000
t.setTimeout(240_000 + KILLS * 60_000)

type Open = Record<string, unknown>
interface Answer {
  readonly status: number
  readonly body: Found
}
/** Sends a request once. Returns undefined if the connection breaks. */
const once =
  (it: Processes) => (port: number, method: string, path: string, body?: object, key?: string) =>
    fetch(`http://127.0.0.1:${port}/v1/projects/default${path}`, {
      method,
      headers: {
        authorization: `Bearer ${it.key}`,
        ...(body && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body && { body: JSON.stringify(body) }),
    }).then(
      async (got): Promise<Answer> => ({
        status: got.status,
        body: JSON.parse((await got.text()) || '{}') as Found,
      }),
      () => undefined,
    )
/** Waits between two reads of the bindings. */
const pause = () => new Promise((next) => setTimeout(next, 15))
/** Repeats a request until it is answered with anything but a temporary failure. */
async function patiently(send: () => Promise<Answer | undefined>): Promise<Answer> {
  for (
    const end = Date.now() + RETRY_TIMEOUT_MS;
    ;
    await new Promise((next) => setTimeout(next, 50))
  ) {
    const answer = await send()
    const code = (answer?.body['error'] as { code?: string } | undefined)?.code
    if (answer && answer.status < 500 && code !== 'blueprint_busy') return answer
    if (Date.now() > end) throw new Error(`answered ${JSON.stringify(answer)} for too long`)
  }
}

/** Returns a hundred resources, each with the revision in one of its fields. */
const hundred = (revision: string): Open => ({
  tables: Array.from({ length: 10 }, (_, n) => ({
    key: `t${n}`,
    name: `table_${n}`,
    description: revision,
    schema: {
      columns: [{ name: 'n', type: 'string', required: true }],
      identity_column: 'n',
    },
  })),
  skills: Array.from({ length: 20 }, (_, n) => ({
    key: `s${n}`,
    name: `Skill ${n}`,
    description: revision,
  })),
  toolkits: Array.from({ length: 20 }, (_, n) => ({
    key: `k${n}`,
    name: `Kit ${n}`,
    description: revision,
  })),
  agents: Array.from({ length: 30 }, (_, n) => ({
    key: `a${n}`,
    name: `agent-${n}`,
    description: revision,
    toolkits: [{ key: `k${n % 20}` }],
    skills: [{ key: `s${n % 20}` }],
  })),
  loops: Array.from({ length: 15 }, (_, n) => ({
    key: `l${n}`,
    name: `Loop ${n}`,
    description: revision,
    agent: { key: `a${n}` },
  })),
  channels: Array.from({ length: 5 }, (_, n) => ({
    key: `c${n}`,
    name: `channel-${n}`,
    topic: revision,
  })),
})
/** Matches the names of these resources, but not those of the built-in toolkits. */
const OWN = /^(table_|Skill |Kit |agent-|Loop |channel-)/
const COUNTS = { tables: 10, skills: 20, toolkits: 20, agents: 30, loops: 15, channels: 5 }

t.test('applies of a hundred resources survive kills of gateways and shard owners', async (t) => {
  const it = await processes({ ...hasty, BATON_SHARDS: '2' })
  t.teardown(() => it.stop())
  const ports = await portsFor(2)
  const send = once(it)
  let owner = await it.node('shards-0', 'shards')
  const gateways = [
    await it.node('front-0', 'gateway', ports[0]),
    await it.node('front-1', 'gateway,views', ports[1]),
  ]
  const apply = (at: number, revision: string, key?: string) =>
    send(
      ports[at] ?? 0,
      'POST',
      '/blueprints/apply?include=further_types',
      { blueprint_key: 'big', blueprint_version: revision, resources: hundred(revision) },
      key,
    )
  const get = async (path: string) => (await patiently(() => send(ports[1] ?? 0, 'GET', path))).body

  const ownOf = async (type: string) =>
    listOf(await get(`/${type}?limit=200`)).filter(({ name }) => OWN.test(String(name)))

  /** Waits until at least `count` resources have the revision. */
  async function begun(revision: string, count: number): Promise<void> {
    for (const end = Date.now() + RETRY_TIMEOUT_MS; Date.now() < end; ) {
      const bound = listOf(await get('/blueprints/bindings?include=further_types'))
      if (bound.filter((one) => `${one['blueprint_version']}` === revision).length >= count) return
      await pause()
    }
    throw new Error(`${revision} did not begin`)
  }

  /** Asserts that every resource exists once, has the revision, and is bound once. */
  async function complete(revision: string, answer: Found) {
    const changes = listOf(answer, 'changes')
    const bound = listOf(await get('/blueprints/bindings?include=further_types'))
    t.equal(changes.length, 100)
    t.equal(bound.length, 100)
    t.equal(new Set(bound.map(({ resource_id }) => String(resource_id))).size, 100)
    t.strictSame(
      new Set(changes.map(({ resource_id }) => String(resource_id))),
      new Set(bound.map(({ resource_id }) => String(resource_id))),
      'the answer names the bound resources',
    )
    t.ok(
      bound.every(({ blueprint_version }) => `${blueprint_version}` === revision),
      'each binding has the version',
    )
    for (const [type, count] of Object.entries(COUNTS)) {
      const found = await ownOf(type)
      t.equal(found.length, count, `${count} ${type}`)
      t.equal(
        new Set(found.map(({ name }) => String(name))).size,
        count,
        `each of the ${type} once`,
      )
      t.ok(
        found.every((one) => `${one['description'] ?? one['topic']}` === revision),
        `the ${type} have the revision ${revision}`,
      )
    }
    const drift = listOf(await get('/blueprints/big/drift?include=further_types'))
    t.ok(drift.every(({ state }) => `${state}` === 'unchanged'))
  }

  for (const port of ports)
    await patiently(() =>
      send(port, 'POST', '/blueprints/apply', { blueprint_key: 'warm', resources: {} }),
    )
  let previous: string[] | undefined
  let broken = 0
  for (let n = 0; n < KILLS * 2; n++) {
    const revision = `revision ${n}`
    const key = `apply-${n}`
    const running = apply(0, revision, key)
    // Each kill occurs at a different point of its apply.
    await Promise.race([begun(revision, 1 + n * 15), running])
    if (n % 2 === 0) {
      await gateways[0]?.kill()
      t.comment('the gateway is dead')
      gateways[0] = await it.node(`front-${n + 2}`, 'gateway', ports[0])
    } else {
      await owner.kill()
      t.comment('the shard owner is dead')
      owner = await it.node(`shards-${n + 1}`, 'shards')
    }
    const first = await running
    if (!first) broken++
    if (first?.status === 200) await complete(revision, first.body)
    const answer = await patiently(() => apply(n % 2, revision, key))
    t.equal(answer.status, 200, JSON.stringify(answer.body).slice(0, 300))
    if (first?.status === 200) t.strictSame(answer.body, first.body, 'the repeat answers the same')
    else await complete(revision, answer.body)
    const ids = listOf(answer.body, 'changes').map(({ resource_id }) => String(resource_id))
    t.strictSame(ids, previous ?? ids, 'the resources are the same as before')
    previous = ids
    const again = await patiently(() => apply(1, revision))
    t.ok(
      listOf(again.body, 'changes').every(({ action }) => `${action}` === 'unchanged'),
      'another apply changes nothing',
    )
  }

  t.ok(broken > 0, 'a gateway died during an apply')

  const removal = send(ports[0] ?? 0, 'DELETE', '/blueprints/big?include=further_types')
  for (let left = 100; left === 100; await pause())
    left = listOf(await get('/blueprints/bindings?include=further_types')).length
  await gateways[0]?.kill()
  await removal
  const gone = await patiently(() =>
    send(ports[1] ?? 0, 'DELETE', '/blueprints/big?include=further_types'),
  )
  t.match(gone, { status: 200, body: { status: 'deleted', retained: [] } })
  t.strictSame(listOf(await get('/blueprints/bindings?include=further_types')), [])
  for (const type of Object.keys(COUNTS)) t.strictSame(await ownOf(type), [], `no ${type}`)
})
