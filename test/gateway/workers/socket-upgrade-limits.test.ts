/** The limits on upgrades to worker sockets: of the project, of the address and of the key. */
import t from 'tap'
import { bearer, ORG, PRJ } from '../support/given.ts'
import { given } from './upgrade-world.ts'

t.test(
  'too many upgrades of one project are refused without a query; others are admitted',
  async (t) => {
    const it = given()
    it.change(ORG, 'project.create', { name: 'Other' })
    for (let i = 0; i < 500; i++) await it.ask(bearer(it.worker.text))
    it.asked.length = 0
    t.match(await it.ask(bearer(it.worker.text)), { status: 503 })
    t.match(
      await it.ask(bearer(it.root), { project: PRJ }),
      { status: 503 },
      'the handle and the id of a project share one limit',
    )
    t.same(it.asked, [])
    t.match(await it.ask(bearer(it.root), { project: 'other' }), { grant: {} })
    it.advance(1000)
    t.match(await it.ask(bearer(it.worker.text)), { grant: {} })
  },
)

t.test('refused upgrades do not count against the limit of the project', async (t) => {
  const it = given()
  for (let i = 0; i < 600; i++) {
    await it.ask(bearer('bat_wrong'))
    await it.ask(bearer('bat_wrong'), { project: PRJ })
  }
  t.match(await it.ask(bearer(it.worker.text)), { grant: { project: PRJ } })
})

t.test('upgrades without a valid credential are limited by address', async (t) => {
  const it = given(undefined, { key: 10, organization: 0, window_seconds: 60 })
  for (let i = 0; i < 5; i++) {
    t.match(await it.ask(bearer('bat_wrong')), { status: 401 })
    t.match(await it.ask(''), { status: 401 })
  }
  it.asked.length = 0
  const refused = await it.ask(bearer('bat_wrong'))
  t.match(refused, { status: 429, body: { error: { code: 'rate_limit_exceeded' } } })
  t.ok('status' in refused && (refused.retry_after ?? 0) > 50, 'at the end of the window')
  t.match(await it.ask(''), { status: 429 })
  t.same(it.asked, [])
  t.match(await it.ask(bearer('bat_wrong'), { remote: '10.0.0.2' }), { status: 401 })
  for (let i = 0; i < 20; i++)
    t.match(await it.ask(bearer(it.worker.text)), { grant: {} }, 'the worker at this address')
})

t.test('refused upgrades with a valid key are limited by key', async (t) => {
  const it = given(undefined, { key: 10, organization: 0, window_seconds: 60 })
  for (let i = 0; i < 10; i++)
    t.match(await it.ask(bearer(it.root), { project: 'nowhere' }), { status: 404 })
  t.match(await it.ask(bearer(it.root), { project: 'nowhere' }), { status: 429 })
  t.match(await it.ask(bearer('bat_wrong')), { status: 401 }, 'the address is not limited')
  it.fresh = false
  t.match(await it.ask(bearer(it.worker.text)), { status: 503 })
})
