/**
 * The cached configuration: when it is read, shared and discarded, and who is notified of changes.
 */
import t from 'tap'
import { isRefusal } from '../../../protocol/errors.ts'
import { settleAll } from '../../support/memory.ts'
import { edge, ORG, PRJ } from '../support/given.ts'

const spec = { steps: [{ kind: 'sleep', config: { duration: '1s' } }] }
const reserved = (id: string, handle: string) => ({ reserved: { id, handle, organization: ORG } })
const gate = () => {
  let open = () => {}
  const closed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { closed, open }
}

t.test('configuration is read once and shared', async (t) => {
  const it = edge()
  await Promise.all([
    it.directory.organization(),
    it.directory.organization(),
    it.directory.project(PRJ),
  ])
  await it.directory.project(PRJ)
  t.same(it.asked, [`${ORG} directory`, `${PRJ} directory`])
  await it.directory.refreshProject(PRJ)
  t.equal(it.asked.length, 3)
})
t.test('forgotten configuration is read again, and listeners are notified', async (t) => {
  const it = edge()
  const heard: unknown[] = []
  const stop = it.directory.onChange((id) => heard.push(id))
  await it.directory.project(PRJ)
  it.change(PRJ, 'principal.create', { name: 'bot' })
  const known = await it.directory.project(PRJ)
  t.equal(isRefusal(known) ? 0 : Object.keys(known.principals).length, 1)
  t.same(heard, [PRJ])
  stop()
  it.directory.forget(PRJ)
  t.same(heard, [PRJ])
})
t.test('a load that a change overtook is repeated', async (t) => {
  const it = edge()
  const { closed, open } = gate()
  it.gate = closed
  const early = it.directory.project(PRJ)
  await settleAll()
  it.gate = undefined
  it.change(PRJ, 'principal.create', { name: 'bot' })
  open()
  const known = await early
  t.equal(
    isRefusal(known) ? 0 : Object.keys(known.principals).length,
    1,
    'the waiting caller sees the change',
  )
  t.equal(it.asked.length, 2)
})
t.test('a failed load is not cached', async (t) => {
  const it = edge()
  it.broken = true
  t.match(await it.directory.project(PRJ), { refused: 'service_unavailable' })
  it.broken = false
  t.match(await it.directory.project(PRJ), { id: PRJ })
})
t.test('a stale lease refuses lookups and discards the cache', async (t) => {
  const it = edge()
  const heard: unknown[] = []
  it.directory.onChange((id) => heard.push(id))
  await it.directory.project(PRJ)
  it.fresh = false
  const lookups = [it.directory.project(PRJ), it.directory.organization()]
  it.advance(3000)
  for (const lookup of lookups) t.match(await lookup, { refused: 'service_unavailable' })
  it.fresh = true
  it.advance(250)
  t.same(heard, [undefined], 'whatever is open has to be looked at again')
  t.match(await it.directory.project(PRJ), { id: PRJ })
  t.equal(it.asked.length, 2)
})
t.test('after another gateway has ended, the cache is discarded', async (t) => {
  const it = edge()
  const heard: unknown[] = []
  it.directory.onChange((id) => heard.push(id))
  await it.directory.project(PRJ)
  it.advance(1000)
  t.same(heard, [])
  it.ended++
  it.advance(250)
  t.same(heard, [undefined], 'whatever is open has to be looked at again')
  await it.directory.project(PRJ)
  it.advance(1000)
  await it.directory.project(PRJ)
  t.equal(it.asked.length, 2)
})
t.test('a lookup waits for the next renewal of the lease, and reads anew', async (t) => {
  const it = edge()
  await it.directory.project(PRJ)
  it.fresh = false
  const lookup = it.directory.project(PRJ)
  it.change(PRJ, 'principal.create', { name: 'bot' })
  await settleAll()
  t.equal(it.asked.length, 1, 'nothing is read while changes may be missed')
  it.fresh = true
  it.advance(50)
  const known = await lookup
  t.equal(isRefusal(known) ? 0 : Object.keys(known.principals).length, 1)
})
t.test('a load during which the lease was lost is repeated or refused', async (t) => {
  for (const renewed of [true, false]) {
    const it = edge()
    const { closed, open } = gate()
    it.gate = closed
    const early = it.directory.project(PRJ)
    await settleAll()
    it.fresh = false
    it.gate = undefined
    open()
    await settleAll()
    it.fresh = renewed
    it.advance(3000)
    t.match(await early, renewed ? { id: PRJ } : { refused: 'service_unavailable' })
    t.equal(it.asked.length, renewed ? 2 : 1)
  }
})

t.test('definitions are cached by version', async (t) => {
  const it = edge()
  it.change(PRJ, 'workflow.create', { name: 'W', spec, ...reserved('wfd_1', 'w') })
  t.match(await it.directory.definition(PRJ, 'wfd_1'), { id: 'wfd_1', version: 1, spec })
  await it.directory.definition(PRJ, 'wfd_1')
  t.equal(it.asked.filter((what) => what.endsWith('definition')).length, 1)
  it.change(PRJ, 'workflow.update', { id: 'wfd_1', spec })
  t.match(await it.directory.definition(PRJ, 'wfd_1'), { version: 2 })
  it.change(PRJ, 'workflow.delete', { id: 'wfd_1' })
  t.equal(await it.directory.definition(PRJ, 'wfd_1'), undefined)
  t.equal(await it.directory.definition(PRJ, '__proto__'), undefined)
})
