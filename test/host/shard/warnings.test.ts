/** A recurring warning is logged at most once a minute for each topic. */
import t from 'tap'
import { Warnings } from '../../../nodes/host/warnings.ts'
import { ManualClock, silentLog } from '../../support/memory.ts'

t.test('a repeated failure is logged once a minute', async (t) => {
  const clock = new ManualClock()
  const said: object[] = []
  const warnings = new Warnings({
    clock,
    log: { ...silentLog, warn: (fields: object) => said.push(fields) },
  })
  const say = (about: string) =>
    warnings.say({ about, event: 'odd', message: 'odd', fields: { about } })
  for (let i = 0; i < 100; i++) say('a')
  say('b')
  t.strictSame(said, [
    { event: 'odd', about: 'a' },
    { event: 'odd', about: 'b' },
  ])
  await clock.advance(60_000)
  say('a')
  t.strictSame(said.at(-1), { event: 'odd', about: 'a', unsaid: 99 })
  for (let i = 0; i < 1100; i++) say(`other ${i}`)
  t.equal(said.length, 1103)
  say('a')
  t.equal(said.length, 1104, 'the number of distinct subjects is limited')
})
