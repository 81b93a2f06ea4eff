/** What a host reports about its environments and their workers, and what it removes. */
import t from 'tap'
import { refuse } from '../../../protocol/errors.ts'
import { settleAll } from '../../support/memory.ts'
import { MemoryPlace } from '../../support/memory-provider.ts'
import { E1, envId, PROJECT, stage } from '../support/host-stage.ts'

t.test('the end of a worker is reported until it is decided', async (t) => {
  const it = stage()
  let refusals = 1
  it.on['environment.exited'] = () =>
    refusals-- > 0 ? refuse('service_unavailable') : { reply: undefined }
  it.start()
  await it.request(E1, 'provision')
  await it.request(E1, 'start', 2)
  it.place.exit(E1, true)
  await it.clock.advance(1000)
  t.strictSame(
    it.inputs('environment.exited'),
    Array(2).fill({ place: 'memory/one', generation: 2, idle: true, exit_code: 0 }),
  )
  await it.clock.advance(60_000)
  t.match(it.inputs('environment.seen').at(-1), { presence: 'present' })
  t.notOk('generation' in (it.inputs('environment.seen').at(-1) ?? {}), 'no worker runs')
})

t.test('the end of a worker is reported after its start', async (t) => {
  const place: MemoryPlace = new MemoryPlace('memory/one', (_, end) => {
    queueMicrotask(() => end(false))
    return { kill() {} }
  })
  const it = stage(place)
  it.start()
  await it.request(E1, 'provision')
  await it.request(E1, 'start', 2)
  t.strictSame(it.names().slice(-3), ['claim', 'report', 'exited'])
})

t.test('after a restart, everything is reported at once, and leftovers are removed', async (t) => {
  const it = stage()
  const stop = it.start()
  for (let n = 1; n <= 3; n++) await it.request(envId(n), 'provision')
  await it.request(envId(1), 'start', 2)
  await stop()
  it.sent.length = 0
  it.on['environment.seen'] = ({ id }) => ({ reply: { expected: id !== envId(3) } })
  it.start('n2')
  await settleAll()
  t.strictSame(
    it.inputs('environment.seen').sort(byText),
    [
      { place: 'memory/one', host: 'n2', presence: 'present' },
      { place: 'memory/one', host: 'n2', presence: 'present' },
      { place: 'memory/one', host: 'n2', presence: 'present', generation: 2 },
    ].sort(byText),
  )
  t.strictSame([...it.place.environments.keys()], [envId(1), envId(2)])
})
const byText = (a: object, b: object) => JSON.stringify(a).localeCompare(JSON.stringify(b))

t.test('reports are spread over the interval, and none is left out', async (t) => {
  const it = stage()
  for (let n = 1; n <= 200; n++) it.place.environments.set(envId(n), { project: PROJECT })
  it.start()
  await settleAll()
  await it.clock.advance(29_000)
  t.equal(it.inputs('environment.seen').length, 200, 'at the start')
  await it.clock.advance(1000)
  const counts: number[] = []
  for (let i = 0; i < 30; i++) {
    const before = it.sent.length
    await it.clock.advance(1000)
    counts.push(it.sent.length - before)
  }
  t.ok(Math.max(...counts) < 40, `at most 40 a second: ${counts}`)
  t.ok(counts.reduce((sum, one) => sum + one) >= 195)
})

t.test('an environment that disappeared is reported as missing until answered', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  it.place.environments.delete(E1)
  it.on['environment.seen'] = () => refuse('service_unavailable')
  await it.clock.advance(90_000)
  it.on['environment.seen'] = () => ({ reply: { expected: true } })
  await it.clock.advance(60_000)
  const seen = it.inputs('environment.seen')
  t.ok(seen.length >= 2)
  t.ok(seen.every(({ presence }) => presence === 'missing'))
  await it.clock.advance(120_000)
  t.equal(it.inputs('environment.seen').length, seen.length, 'it is forgotten after the answer')
})

t.test('an environment that changed while its report was in flight is not removed', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  let answer = (_: unknown) => {}
  it.on['environment.seen'] = () => new Promise((resolve) => (answer = resolve))
  await it.clock.advance(60_000)
  await it.request(E1, 'start', 2)
  answer({ reply: { expected: false } })
  await settleAll()
  t.notOk(it.place.calls.includes(`destroy ${E1}`))
  it.on['environment.seen'] = () => ({ reply: { expected: false } })
  await it.clock.advance(60_000)
  t.ok(it.place.calls.includes(`destroy ${E1}`), 'a later report decides')
})

t.test('a provider that cannot be inspected loses nothing, and is logged once', async (t) => {
  const it = stage()
  it.start()
  await it.request(E1, 'provision')
  const { entries } = it.place.environments
  it.place.environments[Symbol.iterator] = () => {
    throw new Error('the engine does not answer')
  }
  await it.clock.advance(120_000)
  t.strictSame(it.warned, ['environment_inspection_failed'])
  t.ok(it.inputs('environment.seen').every(({ presence }) => presence === 'present'))
  it.place.environments[Symbol.iterator] = entries
})
