/** The limits of upgrades to worker sockets: per project, and per address without a credential. */
import t from 'tap'
import { openAuthentication } from '../../../gateway/auth/authenticate.ts'
import type { Limits } from '../../../gateway/auth/rate.ts'
import type { World } from '../../../gateway/ports.ts'
import { createUpgrade } from '../../../gateway/workers/upgrade.ts'
import { refuse } from '../../../protocol/errors.ts'
import { bearer, edge, ORG, PRJ } from '../support/given.ts'

const OTHER = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0C'
/** A second of the rate limit admits 200 upgrades, and a burst 500. */
const BURST = 500

function given(limits?: Limits) {
  const it = edge()
  const world = { ...it.world, count: { inc() {} } } as unknown as World
  const authentication = openAuthentication(world, it.directory)
  const upgrade = createUpgrade(world, it.directory, authentication, limits)
  const asked = { project: 'default', protocols: '', remote: '10.0.0.1', request_id: 'req_1' }
  const ask = (authorization: string, more: { project?: string; remote?: string } = {}) =>
    upgrade({ ...asked, authorization, ...more })
  return Object.assign(it, { ask, worker: it.projectKey(PRJ, 'worker') })
}

t.test('too many upgrades of one project are refused; those of others are admitted', async (t) => {
  const it = given()
  it.change(ORG, 'project.create', { id: OTHER, name: 'Other', handle: 'other' })
  for (let i = 0; i < BURST; i++) await it.ask(bearer(it.worker.text))
  t.match(await it.ask(bearer(it.worker.text)), { status: 503 })
  t.match(await it.ask(bearer(it.worker.text), { project: PRJ }), { status: 503 }, 'by its id')
  t.match(await it.ask(bearer(it.root), { project: 'other' }), { grant: {} })
  it.advance(1000)
  t.match(await it.ask(bearer(it.worker.text)), { grant: {} })
})

t.test('unknown credentials use up only the limit of their address', async (t) => {
  const callers: string[] = []
  const it = given(async (caller) => {
    callers.push(caller)
    return callers.length > BURST
      ? { headers: {}, refused: refuse('rate_limit_exceeded') }
      : { headers: {} }
  })
  for (let i = 0; i <= BURST; i++) await it.ask(bearer('bat_unknown'), { remote: '10.0.0.9' })
  t.same(new Set(callers), new Set(['address:10.0.0.9']))
  t.match(await it.ask(bearer('bat_unknown')), { status: 429 })
  t.match(await it.ask(''), { status: 429 }, 'no credential')
  t.match(await it.ask(bearer(it.worker.text)), { grant: {} })
})
