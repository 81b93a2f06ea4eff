/** Preferences of the caller and saved views of lists, over HTTP. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, ids, idsOf, listOf, pages } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())

async function person(name: string, role: string) {
  const { id } = await s.ok('user.create', { name, role_ids: [role] })
  const { key } = await s.ok('token.create', { id, name: 'browser' })
  return { id: String(id), key: String(key) }
}
const ann = await person('Ann', 'role_viewer')
const bob = await person('Bob', 'role_editor')

t.test('each principal has its own preferences, with a version', async (t) => {
  t.strictSame(await s.ok('me.preferences', {}, ann), { preferences: {}, version: 0 })
  const preferences = { theme: 'dark', columns: { runs: ['id', 'status'] } }
  const saved = await s.ok('me.save_preferences', { preferences, expected_version: 0 }, ann)
  t.match(saved, { preferences, version: 1, updated_at: /Z$/ })
  t.strictSame(await s.ok('me.preferences', {}, ann), saved)
  t.strictSame(await s.ok('me.preferences', {}, bob), { preferences: {}, version: 0 })
  t.match(
    await s.refused(
      'me.save_preferences',
      { preferences: {}, expected_version: 0 },
      409,
      'conflict',
      ann,
    ),
    { details: { version: 1 } },
  )
  const large = { preferences: { x: 'x'.repeat(32_768) } }
  t.strictSame(fieldsOf(await s.refused('me.save_preferences', large, 400, 'bad_request', ann)), [
    'preferences',
  ])
})

t.test('a view has a filter of its list; private views are visible to their owner', async (t) => {
  const filter = { status: ['failed'], q: 'import' }
  const mine = await s.ok('saved_view.create', { name: 'Mine', list: 'runs', filter }, ann)
  t.match(mine, { name: 'Mine', list: 'runs', filter, shared: false, owner_id: ann.id })
  const { id } = mine
  t.strictSame(await s.ok('saved_view.get', { id }, ann), mine)
  t.strictSame(idsOf(await s.ok('saved_view.list', {}, bob)), [])
  await s.refused('saved_view.get', { id }, 404, 'not_found', bob)
  await s.refused('saved_view.delete', { id }, 404, 'not_found', bob)
  await s.refused('saved_view.update', { id, shared: true }, 403, 'permission_denied', ann)

  const team = await s.ok(
    'saved_view.create',
    { name: 'Team', list: 'interactions', shared: true, sort: { by: 'created_at', order: 'asc' } },
    bob,
  )
  t.strictSame(
    ids(await pages(s, 'saved_view.list', {}, 1, ann)),
    [team['id'], id],
    'newest first, in pages',
  )
  t.strictSame(idsOf(await s.ok('saved_view.list', { list: 'interactions' }, ann)), [team['id']])
  await s.refused('saved_view.update', { id: team['id'], name: 'x' }, 403, 'permission_denied', ann)
  t.match(await s.ok('saved_view.update', { id: team['id'], name: 'All of us' }, bob), {
    name: 'All of us',
    owner_id: bob.id,
  })
  for (const [filter, field] of [
    [{ colour: 'red' }, 'filter.colour'],
    [{ status: ['red'] }, 'filter.status[0]'],
    [{ limit: 3 }, 'filter.limit'],
  ] as const) {
    const wish = { name: 'Odd', list: 'runs', filter }
    const refusal = await s.refused('saved_view.create', wish, 400, 'bad_request', ann)
    t.strictSame(fieldsOf(refusal), [field])
    const change = await s.refused('saved_view.update', { id, filter }, 400, 'bad_request', ann)
    t.strictSame(fieldsOf(change), [field])
  }
  for (const [filter, field] of [
    [{ table_id: 'table_1', colour: 'red' }, 'filter.colour'],
    [{ filter: {} }, 'filter.table_id'],
  ] as const) {
    const wish = { name: 'Odd', list: 'rows', filter }
    t.strictSame(fieldsOf(await s.refused('saved_view.create', wish, 400, 'bad_request', ann)), [
      field,
    ])
  }
  const rows = { table_id: 'table_1', filter: { n: { $gt: 1 } }, sort: [{ field: 'n' }] }
  const ofTable = await s.ok('saved_view.create', { name: 'Rows', list: 'rows', filter: rows }, ann)
  t.match(await s.ok('saved_view.get', { id: ofTable['id'] }, ann), { list: 'rows', filter: rows })
  await s.call('saved_view.delete', { id: ofTable['id'] }, ann)
  t.equal((await s.call('saved_view.delete', { id: team['id'] }, bob)).status, 204)
  t.match(
    listOf(await s.ok('audit.list', { resource_type: ['saved_view'] })).map(
      ({ resource_id, resource_name, action, actor_id }) => [
        resource_id,
        resource_name,
        action,
        actor_id,
      ],
    ),
    [
      [team['id'], 'All of us', 'delete', bob.id],
      [team['id'], 'All of us', 'update', bob.id],
      [team['id'], 'Team', 'create', bob.id],
    ],
    'shared views are audited, private ones are not',
  )
  t.strictSame(idsOf(await s.ok('saved_view.list', {}, ann)), [id])
})

t.test('with a person, the private views and the preferences are deleted', async (t) => {
  const joe = await person('Joe', 'role_editor')
  await s.ok('saved_view.create', { name: 'Own', list: 'runs' }, joe)
  const kept = await s.ok('saved_view.create', { name: 'Left', list: 'runs', shared: true }, joe)
  await s.ok('user.delete', { id: joe.id })
  t.ok(idsOf(await s.ok('saved_view.list')).includes(String(kept['id'])), 'shared views stay')
  await s.refused('me.preferences', {}, 401, 'unauthorized', joe)
})
