/** Holding a blueprint: waiting, renewal, the end of a request, and the loss of a hold. */
import assert from 'node:assert/strict'
import t, { type Test } from 'tap'
import { type Hold, takeHold } from '../../../gateway/blueprints/hold.ts'
import { HOLD_MS } from '../../../protocol/blueprints/events.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { settleAll } from '../../support/memory.ts'
import { apply, IDENTITY } from './play.ts'
import { openStore, PROJECT, type Step, type Store } from './world.ts'

const origin = { at: 0, principal: { type: 'user', id: 'user_1' } } as const
const open = async (t: Test): Promise<Store> => {
  const store = await openStore(1)
  t.teardown(() => store.close())
  return store
}
async function take(store: Store, step?: Step): Promise<Hold> {
  const hold = await takeHold(store.gateway(step).edge, PROJECT, IDENTITY, origin)
  assert(!isRefusal(hold))
  return hold
}
const holds = (store: Store, since: number): number =>
  store.eventsSince(since).filter(({ type }) => type === 'blueprint.held').length
/** Creates a gate for one command: after `shut`, its calls are blocked until `go` is called. */
function gate(command: string) {
  let go = () => {}
  const opened = new Promise<void>((resolve) => {
    go = resolve
  })
  let isOn = false
  return {
    step: (name: string) => (isOn && name === command ? opened : undefined),
    shut: () => {
      isOn = true
    },
    go: () => go(),
  }
}

t.test('a hold is renewed while its request runs, and not afterwards', async (t) => {
  const store = await open(t)
  const hold = await take(store)
  await store.clock.advance(3 * HOLD_MS)
  t.notOk(hold.isLost())
  await hold.release()
  const length = store.length()
  await store.clock.advance(3 * HOLD_MS)
  t.equal(holds(store, length), 0)
})
t.test('a renewal in flight at the end of a request does not take it again', async (t) => {
  const store = await open(t)
  const { step, shut, go } = gate('blueprint.hold')
  const hold = await take(store, step)
  shut()
  await store.clock.advance(HOLD_MS / 3)
  let ended = false
  const end = hold.release().then(() => {
    ended = true
  })
  await settleAll()
  t.notOk(ended, 'it waits for the renewal')
  go()
  await end
  const length = store.length()
  await (await take(store)).release()
  t.equal(holds(store, length), 1, 'the next request does not wait')
  await store.clock.advance(3 * HOLD_MS)
  t.equal(holds(store, length), 1, 'and there are no further renewals')
})
t.test(
  'a hold that is not renewed in time is lost, and its request sends nothing more',
  async (t) => {
    const store = await open(t)
    const skills = [{ key: 'a', name: 'A' }]
    const one = gate('blueprint.hold')
    const two = gate('blueprint.reserve')
    const gateway = store.gateway((name) => one.step(name) ?? two.step(name))
    two.shut()
    const applied = apply(gateway, { resources: { skills } })
    await settleAll()
    one.shut()
    await store.clock.advance(HOLD_MS + 1)
    t.match(await apply(store.gateway(), { resources: { skills: [{ key: 'b', name: 'B' }] } }), {
      changes: [{ key: 'b', action: 'created' }],
    })
    two.go()
    one.go()
    t.match((await applied).refused, { refused: 'blueprint_busy' })
    t.strictSame(
      store.eventsSince(0).filter(({ type }) => type === 'skill.created').length,
      1,
      'the lost request has created nothing',
    )
  },
)
t.test('a second request waits, and gives up at last', async (t) => {
  const store = await open(t)
  const first = await take(store)
  const waiting = take(store)
  await store.clock.advance(1000)
  await first.release()
  await store.clock.advance(1000)
  const second = await waiting
  const late = takeHold(store.gateway().edge, PROJECT, IDENTITY, origin)
  await store.clock.advance(50_000)
  t.match(await late, { refused: 'blueprint_busy' })
  await second.release()
})
