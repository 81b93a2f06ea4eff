/** Authentication of the workers of environments, and the rows that they may call. */
import t from 'tap'
import { openAuthentication } from '../../../gateway/auth/authenticate.ts'
import { authorize, authorizeRow } from '../../../gateway/auth/authorize.ts'
import { api } from '../../../protocol/api.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import type { EnvironmentCredential } from '../../../protocol/environments/commands.ts'
import { environmentCredential } from '../../../protocol/environments/credential.ts'
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import { bearer, edge, PRJ } from '../support/given.ts'

const ENV = makeId('environment', 1, new Uint8Array(9).fill(1))
const OTHER = makeId('environment', 2, new Uint8Array(9).fill(2))
const KEY = environmentCredential(
  'bat',
  { project: PRJ, environment_id: ENV },
  new Uint8Array(20).fill(7),
)

/** Creates a gateway whose queries to the environment `ENV` get scripted answers. */
function stage() {
  const it = edge()
  const facts: EnvironmentCredential = { environment_id: ENV, name: 'one', generation: 3 }
  const owner: { answer: EnvironmentCredential | null | Refusal; asked: unknown[] } = {
    answer: facts,
    asked: [],
  }
  const clock = { offset: 0 }
  const world = {
    ...it.world,
    now: () => it.world.now() + clock.offset,
    ask: async (to: { kind: string; id: string }, name: string, input: unknown) => {
      if (to.kind !== 'environment') return it.world.ask(to as never, name as never, input as never)
      owner.asked.push([to.id, name, input])
      return owner.answer
    },
  } as typeof it.world
  const { authenticate, again } = openAuthentication(world, it.directory)
  const caller = async (text = KEY) => {
    const found = await authenticate(bearer(text))
    if (isRefusal(found)) throw new Error(`refused: ${found.refused}`)
    return found
  }
  const refused = async (text = KEY) => {
    const found = await authenticate(bearer(text))
    return isRefusal(found) ? found.refused : undefined
  }
  return { it, clock, owner, facts, authenticate, again, caller, refused, hash: it.world.hash(KEY) }
}

t.test('the worker of an environment acts as its environment', async (t) => {
  const { caller, owner, hash } = stage()
  const found = await caller()
  t.strictSame(found.principal, { type: 'service_account', id: ENV, name: 'one' })
  t.strictSame(found.environment, { id: ENV, generation: 3 })
  t.strictSame(found.scope, { kind: 'project', project_id: PRJ })
  t.equal(found.permissions.size, 0)
  t.strictSame(owner.asked, [[ENV, 'credential', { token_hash: hash }]])
})

t.test('an answer of the owner is reused for two seconds', async (t) => {
  const { caller, again, owner, it, refused } = stage()
  const first = await caller()
  t.equal(await caller(), first)
  t.equal(owner.asked.length, 1)
  it.advance(2001)
  t.equal(await again(first), first, 'the same object while nothing has changed')
  t.equal(owner.asked.length, 2)
  owner.answer = null
  t.equal(await refused(), undefined, 'within two seconds')
  it.advance(2001)
  t.equal(await refused(), 'unauthorized')
  t.match(await again(first), { refused: 'unauthorized' })
})

t.test('an answer is not reused for longer after the clock was set back', async (t) => {
  const { caller, owner, it, clock, refused } = stage()
  await caller()
  owner.answer = null
  clock.offset = -3_600_000
  it.advance(2001)
  t.equal(await refused(), 'unauthorized')
})

t.test('an owner that does not answer is no reason to end a worker', async (t) => {
  const { owner, refused } = stage()
  owner.answer = refuse('service_unavailable')
  t.equal(await refused(), 'service_unavailable')
})

t.test('a new worker of the environment is another caller', async (t) => {
  const { caller, owner, facts, it } = stage()
  const first = await caller()
  owner.answer = { ...facts, generation: 4 }
  it.advance(2001)
  const second = await caller()
  t.not(second, first)
  t.equal(second.environment?.generation, 4)
})

t.test('a credential of no known project is refused without a question', async (t) => {
  const { owner, refused } = stage()
  t.equal(await refused(`${KEY.slice(0, -8)}ZZZZZZZZ`), 'unauthorized')
  t.strictSame(owner.asked, [])
})

t.test('workers of environments may call exactly the rows that declare it', async (t) => {
  const worker = await stage().caller()
  const rows = Object.entries(api as Readonly<Record<string, Row>>)
  const slotsOf = (row: Row, environment_id: string) =>
    Object.fromEntries(
      routeOf(row).slots.map((slot) => [slot, slot === 'environment_id' ? environment_id : 'x']),
    )
  const allowed = rows
    .filter(([, row]) => !authorizeRow('Service', row.shape, worker, slotsOf(row, ENV)))
    .map(([name]) => name)
  t.strictSame(allowed.sort(), [
    'artifact.content',
    'artifact.create',
    'artifact.get',
    'environment.get',
    'environment.git_credentials',
    'worker.socket',
  ])
  for (const [name, row] of rows) {
    const refused = authorizeRow('Service', row.shape, worker, slotsOf(row, OTHER))
    const isPinned = routeOf(row).slots.includes('environment_id')
    if (isPinned || !allowed.includes(name))
      t.match(refused, { refused: 'permission_denied' }, name)
    t.match(
      authorize('Service', row.shape.permission, worker),
      { refused: 'permission_denied' },
      `${name}: the permission itself`,
    )
  }
})
