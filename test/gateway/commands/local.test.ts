/**
 * Queries that the gateway answers from its directory: projects, keys, principals, roles and
 * permissions.
 */
import t from 'tap'
import { localQueries } from '../../../gateway/queries/local.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { bearer, edge, ORG, PRJ, type TestEdge } from '../support/given.ts'

interface Item {
  readonly id: string
  readonly name: string
  readonly permissions: readonly string[]
}
interface Listed {
  readonly items: readonly Item[]
  readonly next_cursor?: string
  readonly has_more?: boolean
  readonly last_used_at?: string
  readonly presets: readonly (Item & { readonly label: string })[]
  readonly action_groups: readonly (Item & { readonly children: readonly string[] })[]
}
const as =
  (it: TestEdge, key = it.root) =>
  async (name: string, input: object = {}, project?: string): Promise<Listed> => {
    const caller = await it.authenticate(bearer(key))
    if (isRefusal(caller)) throw new Error(caller.refused)
    return (await localQueries[name]?.({
      world: it.world,
      directory: it.directory,
      caller,
      input: { ...input },
      ...(project !== undefined && { project }),
    })) as Listed
  }
const names = ({ items }: Listed) => items.map(({ name }) => name)

t.test('projects are listed in pages, newest first', async (t) => {
  const it = edge()
  for (const n of [1, 2, 3, 4]) {
    it.advance(10)
    it.change(ORG, 'project.create', { name: `p${n}` })
  }
  const ask = as(it)
  const first = await ask('project.list', { limit: 2 })
  t.same(names(first), ['p4', 'p3'])
  t.equal(first.has_more, true)
  it.change(ORG, 'project.create', { name: 'newer' })
  const second = await ask('project.list', { limit: 3, cursor: first.next_cursor })
  t.same(names(second), ['p2', 'p1', 'default'], 'a new project neither repeats nor hides others')
  t.strictSame([second.has_more, 'next_cursor' in second], [false, false])
  t.match(await ask('project.list', { limit: 2, cursor: first.next_cursor, search: 'p' }), {
    refused: 'bad_request',
  })
  t.match(await ask('key.list_organization', { cursor: first.next_cursor }), {
    refused: 'bad_request',
  })
})
t.test('projects are found by text and tags, within the access of the key', async (t) => {
  const it = edge()
  it.change(ORG, 'project.create', {
    name: 'Alpha',
    description: 'Billing of tenants',
    tags: { team: 'red', tier: '1' },
  })
  it.change(ORG, 'project.create', { name: 'Beta', tags: { team: 'blue' } })
  it.change(ORG, 'project.delete', {
    project: it.change(ORG, 'project.create', { name: 'Gone' }).id,
  })
  const ask = as(it)
  t.same(names(await ask('project.list', { search: 'BILL' })), ['Alpha'])
  t.same(names(await ask('project.list', { tag: 'team'.split(',') })).sort(), ['Alpha', 'Beta'])
  t.same(names(await ask('project.list', { tag: 'team:red, tier'.split(',') })), ['Alpha'])
  t.same(names(await ask('project.list', { tag: 'team:red,team:blue'.split(',') })), [])
  t.same(names(await ask('project.list', {})).sort(), ['Alpha', 'Beta', 'default'])
  const { text } = it.projectKey(PRJ, 'mine')
  t.same(names(await as(it, text)('project.list', {})), ['default'])
  t.same(await as(it, text)('project.capabilities', {}, PRJ), {
    can_manage_project: false,
    can_manage_access: false,
  })
  t.same(await ask('project.capabilities', {}, PRJ), {
    can_manage_project: true,
    can_manage_access: true,
  })
  t.match(await ask('project.get', {}, PRJ), { handle: 'default' })
})
t.test('keys are listed without key material, with their last use', async (t) => {
  const it = edge()
  const ask = as(it)
  const mine = it.projectKey(PRJ, 'mine')
  const { items } = await ask('key.list', {}, PRJ)
  t.same(Object.keys(items[0] ?? {}).sort(), [
    'created_at',
    'id',
    'key_prefix',
    'name',
    'principal_id',
    'updated_at',
  ])
  await as(it, mine.text)('key.get', { id: mine.id }, PRJ)
  it.advance(1000)
  t.equal((await ask('key.get', { id: mine.id }, PRJ)).last_used_at, '2026-01-01T00:00:01.000Z')
  it.change(PRJ, 'key.revoke', { id: mine.id })
  t.match(await ask('key.get', { id: mine.id }, PRJ), { refused: 'not_found' })
  t.same((await ask('key.list', {}, PRJ)).items, [])
  t.same(names(await ask('key.list_organization')), ['root'])
  t.match(await ask('key.get_organization', { id: 'key_x' }), { refused: 'not_found' })
})
t.test('principals', async (t) => {
  const it = edge()
  const ask = as(it)
  const off = it.change(PRJ, 'principal.create', { name: 'off' })
  it.advance(10)
  it.change(PRJ, 'principal.create', { name: 'on' })
  it.change(PRJ, 'principal.update', { id: off.id, state: 'disabled' })
  const list = await ask('principal.list', {}, PRJ)
  t.same(Object.keys(list), ['items'], 'a plain list')
  t.same(names(list), ['on'])
  t.same(names(await ask('principal.list', { include_disabled: true }, PRJ)), ['on', 'off'])
  t.same(names(await ask('principal.list', { kind: 'agent' }, PRJ)), [])
  const all = { include_disabled: true, limit: 1 }
  const first = await ask('principal.list', { ...all, include: ['next_cursor'] }, PRJ)
  t.match(first, { has_more: true, next_cursor: String })
  const rest = await ask('principal.list', { ...all, cursor: first.next_cursor }, PRJ)
  t.same([...names(first), ...names(rest)], ['on', 'off'])
  t.equal(rest.has_more, false)
  t.notOk('next_cursor' in rest)
  t.match(await ask('principal.list', { limit: 1, cursor: first.next_cursor }, PRJ), {
    refused: 'bad_request',
  })
  t.match(await ask('principal.get', { id: off.id }, PRJ), { state: 'disabled' })
  t.match(await ask('principal.get', { id: 'toString' }, PRJ), { refused: 'not_found' })
})
t.test('roles and permissions carry the brand', async (t) => {
  const it = edge()
  const ask = as(it)
  const first = await ask('role.list', { limit: 3 }, PRJ)
  const rest = await ask('role.list', { limit: 3, cursor: first.next_cursor }, PRJ)
  t.same([...names(first), ...names(rest)], ['Viewer', 'Operator', 'Editor', 'Admin', 'Owner'])
  t.same(first.items[0]?.permissions, ['service.project.view'])
  t.same(await ask('role.get', { id: 'role_editor' }, PRJ), first.items[2])
  t.match(await ask('role.get', { id: 'role_x' }, PRJ), { refused: 'not_found' })
  const here = (name: string) => ({ reachable: true, action: { name, endpoint_kind: 'worker' } })
  const many = Array.from({ length: 250 }, (_, n) => here(`bulk.n${n}`))
  Object.assign(it.world, {
    view: async (_: string, question: string) =>
      question === 'callable'
        ? {
            actions: [
              here('crm.sync'),
              here('crm.note.add'),
              here('plain'),
              ...many,
              ...Array.from({ length: 70 }, (_, n) => here(`w${n}.x`)),
            ],
            workflows: [{ handle: 'w', name: 'W' }],
          }
        : { items: [{ name: 'ledger.post', enabled: true }] },
  })
  const { items, presets, action_groups } = await ask('permission.list', {}, PRJ)
  const ids = items.map(({ id }) => id)
  t.ok(ids.includes('service.work.execute') && ids.includes('actions.execute.*'))
  t.same(Object.keys(items[0] ?? {}).sort(), [
    'assignable',
    'category',
    'description',
    'id',
    'label',
    'risk',
    'scope',
    'user_kinds',
  ])
  t.same(
    presets.map(({ label }) => label),
    ['Viewer', 'Operator', 'Editor', 'Admin', 'Owner'],
  )
  t.ok(presets.every(({ permissions }) => permissions.every((id) => ids.includes(id))))
  const group = (id: string) => action_groups.find((one) => one.id === id)
  t.strictSame(group('actions.execute.crm.*'), {
    id: 'actions.execute.crm.*',
    label: 'Actions of crm',
    source: 'custom',
    children: ['actions.execute.crm.note.add', 'actions.execute.crm.sync'],
  })
  t.match(
    ['environment', 'service'].map((word) => group(`actions.execute.${word}.*`)),
    [{ source: 'platform' }, { source: 'platform' }],
  )
  t.match(group('actions.execute.ledger.*'), { children: ['actions.execute.ledger.post'] })
  t.equal(action_groups[0]?.id, 'actions.execute.*')
  t.same(
    [group('actions.execute.*'), group('actions.execute.bulk.*')].map(
      (one) => one?.children.length,
    ),
    [200, 200],
  )
  t.equal(action_groups.length, 64)
  const shared = { items: [] }
  const own = { actions: [], workflows: [{ handle: 'greet', name: 'Greet' }] }
  Object.assign(it.world, {
    view: async (_: string, question: string) => (question === 'callable' ? own : shared),
  })
  t.match((await ask('permission.list', {}, PRJ)).action_groups, [
    {},
    { id: 'actions.execute.environment.*' },
    { id: 'actions.execute.service.*' },
    { id: 'actions.execute.workflow.*', children: ['actions.execute.workflow.greet'] },
  ])
})
