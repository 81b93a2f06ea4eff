/** Preferences of a principal and saved views of a project: versions, visibility and limits. */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { preferencesActor } from '../../../actors/preferences/preferences.ts'
import { savedViewsActor } from '../../../actors/preferences/saved-views.ts'
import { projectActor } from '../../../actors/projects/project.ts'
import type { Principal } from '../../../protocol/entry.ts'
import {
  checkPreferences,
  preferenceLimits,
  type SavedView,
  savedViewLimits,
} from '../../../protocol/preferences/schema.ts'
import { given } from '../../support/given.ts'

const person = (id: string): { readonly principal: Principal } => ({
  principal: { type: 'user', id },
})
const ada = person('user_ada')
const bob = person('user_bob')

t.test('preferences are replaced as a whole, and their version grows', async (t) => {
  const fresh = given(defineActor(preferencesActor))
  t.strictSame(fresh.ask('get'), { preferences: {}, version: 0 })
  const first = fresh.when('me.save_preferences', { preferences: { a: 1 }, expected_version: 0 })
  t.strictSame(first.reply, { version: 1, updated_at: '2026-01-01T00:00:00.000Z' })
  const second = first.when('me.save_preferences', { preferences: { b: 2 } })
  t.match(second.ask('get'), { preferences: { b: 2 }, version: 2 })
  t.notOk(Object.hasOwn((second.ask('get') as { preferences: object }).preferences, 'a'))
  const late = second.when('me.save_preferences', { preferences: {}, expected_version: 1 })
  t.match(late.refused, { refused: 'conflict', details: { expected_version: 1, version: 2 } })
})

t.test('the preferences of a deleted principal are gone for good', async (t) => {
  const saved = given(defineActor(preferencesActor)).when('me.save_preferences', {
    preferences: { a: 1 },
  })
  const gone = saved.when('preferences.clear')
  t.strictSame(gone.ask('get'), { preferences: {}, version: 0 })
  t.match(gone.when('me.save_preferences', { preferences: {} }).refused, { refused: 'not_found' })
  t.strictSame(gone.when('preferences.clear').events, [])
})

t.test('preferences have at most 32 KB and 8 levels', async (t) => {
  const nested = (levels: number): Record<string, unknown> =>
    levels === 1 ? {} : { x: levels % 2 === 0 ? nested(levels - 1) : [] }
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { x: deep(levels - 1) })
  t.strictSame(checkPreferences({ preferences: nested(2) }), [])
  t.strictSame(checkPreferences({ preferences: deep(8) as never }), [])
  t.match(checkPreferences({ preferences: deep(9) as never }), [{ field: 'preferences' }])
  const text = (bytes: number) => ({ x: 'ä'.repeat((bytes - 8) / 2) })
  t.strictSame(checkPreferences({ preferences: text(preferenceLimits.bytes) }), [])
  t.match(checkPreferences({ preferences: text(preferenceLimits.bytes + 2) }), [
    { message: /32768 bytes/ },
  ])
})

const views = () => given(defineActor(savedViewsActor({ brand: 'Service' })))
const wish = (more: object = {}) => ({
  name: 'Failed',
  list: 'runs',
  filter: { status: ['failed'] },
  may_share: false,
  ...more,
})
const visible = (scene: ReturnType<typeof views>, principal_id: string) =>
  (scene.ask('visible', { principal_id }) as SavedView[]).map(({ name }) => name)

t.test('a private view is visible to its owner only; sharing needs a permission', async (t) => {
  const mine = views().when('saved_view.create', wish(), ada)
  const { id } = mine.reply as SavedView
  t.match(mine.reply, { id: /^svw_/, owner_id: 'user_ada', shared: false })
  t.strictSame(visible(mine, 'user_ada'), ['Failed'])
  t.strictSame(visible(mine, 'user_bob'), [])
  for (const name of ['saved_view.update', 'saved_view.delete'])
    t.match(
      mine.when(name, { id, name: 'x', may_share: true }, bob).refused,
      { refused: 'not_found' },
      `${name} by somebody else`,
    )
  const lacks = { refused: 'permission_denied', details: { permission: 'service.project.edit' } }
  t.match(
    mine.when('saved_view.update', { id, shared: true, may_share: false }, ada).refused,
    lacks,
  )
  t.match(views().when('saved_view.create', wish({ shared: true }), ada).refused, lacks)

  const shared = mine.when('saved_view.update', { id, shared: true, may_share: true }, ada)
  t.strictSame(visible(shared, 'user_bob'), ['Failed'])
  t.match(shared.when('saved_view.delete', { id, may_share: false }, bob).refused, lacks)
  const renamed = shared.when('saved_view.update', { id, name: 'Red', may_share: true }, bob)
  t.match(renamed.reply, { name: 'Red', owner_id: 'user_ada', shared: true })
  t.match(
    renamed.when('saved_view.update', { id, name: 'Blue', may_share: false }, ada).reply,
    { name: 'Blue' },
    'the owner needs no permission to change it',
  )
})

t.test('a change with equal values appends nothing; empty members are removed', async (t) => {
  const one = views().when('saved_view.create', wish({ columns: ['id'] }), ada)
  const { id } = one.reply as SavedView
  t.strictSame(
    one.when('saved_view.update', { id, filter: { status: ['failed'] }, may_share: false }).events,
    [],
  )
  const bare = one.when('saved_view.update', { id, filter: {}, columns: [], may_share: false })
  t.notOk('filter' in (bare.reply as SavedView) || 'columns' in (bare.reply as SavedView))
  t.strictSame(bare.when('saved_view.update', { id, filter: {}, may_share: false }).events, [])
})

t.test('the numbers of shared and of private views are limited', async (t) => {
  const fill = (count: number, more: object) => {
    let scene: ReturnType<typeof views> = views()
    for (let i = 0; i < count; i++) scene = scene.when('saved_view.create', wish(more), ada)
    return scene
  }
  const full = fill(savedViewLimits.private_of_principal, {})
  const refused = { refused: 'conflict', details: { limit: savedViewLimits.private_of_principal } }
  t.match(full.when('saved_view.create', wish(), ada).refused, refused)
  t.notOk(full.when('saved_view.create', wish(), bob).refused, 'others may save views')
  const all = fill(savedViewLimits.shared, { shared: true, may_share: true })
  const more = wish({ shared: true, may_share: true })
  t.match(all.when('saved_view.create', more, bob).refused, {
    refused: 'conflict',
    details: { limit: savedViewLimits.shared },
  })
  const own = all.when('saved_view.create', wish(), bob)
  const { id } = own.reply as SavedView
  t.match(own.when('saved_view.update', { id, shared: true, may_share: true }).refused, {
    refused: 'conflict',
  })
})

t.test('with a principal, its preferences and private views are deleted', async (t) => {
  const actor = projectActor({ brand: 'Service' })
  const effects = actor.react?.['principal.deleted']?.(
    { type: 'principal.deleted', id: 'user_ada', name: 'Ada' },
    { project: 'prj_1', kind: 'project', id: 'prj_1' },
  )
  t.match(effects, [
    { tell: { to: { kind: 'preferences', id: 'user_ada' }, name: 'preferences.clear' } },
    {
      tell: {
        to: { kind: 'saved_views', id: 'prj_1' },
        name: 'saved_view.drop_private',
        input: { owner_id: 'user_ada' },
      },
    },
  ])
  const both = views()
    .when('saved_view.create', wish(), ada)
    .when('saved_view.create', wish({ name: 'All', shared: true, may_share: true }), ada)
    .when('saved_view.create', wish({ name: 'Of Bob' }), bob)
    .when('saved_view.drop_private', { owner_id: 'user_ada' })
  t.strictSame(visible(both, 'user_ada'), ['All'])
  t.strictSame(visible(both, 'user_bob'), ['All', 'Of Bob'])
})
