/** Time limits of queries that wait for a view. */
import t from 'tap'
import { cursorOf } from '../../protocol/entry.ts'
import { ids, world } from './support/following.ts'
import { started } from './support/journal.ts'

t.test('a query is refused if the view does not catch up in time', async (t) => {
  const { journal, follower, settle, ask, pass, state, deliver } = world()
  await follower.start()
  const one = journal.commit(0, started('run_1', 1))
  const [asked, exact] = [ask(), ask(cursorOf(1, 0))]
  await settle()
  state.end = () => new Promise(() => undefined)
  const hanging = ask()
  await pass(10_000)
  for (const { answer } of [asked, exact, hanging])
    t.match(answer, { refused: 'service_unavailable' })
  await deliver(one)
  const again = ask(0)
  await settle()
  t.strictSame(ids(again), ['run_1'], 'late entries are known from then on')
})

t.test('a query with a time limit gets the current content after it, marked as late', async (t) => {
  const { journal, follower, deliver, settle, ask, pass } = world()
  await follower.start()
  await deliver(journal.commit(0, started('run_1', 1)))
  const two = journal.commit(0, started('run_2', 2))
  const impatient = ask(undefined, 1000)
  const ahead = ask(cursorOf(3, 0), 1000)
  const patient = ask()
  await settle()
  await pass(999)
  t.equal(impatient.answer, undefined)
  await pass(1)
  t.match(impatient.answer, { late: true })
  t.strictSame(ids(impatient), ['run_1'])
  t.match(ahead.answer, { late: true })
  t.equal(patient.answer, undefined)
  await deliver(two)
  t.strictSame(ids(patient), ['run_2', 'run_1'])
  const timely = ask(undefined, 1000)
  await settle()
  t.notMatch(timely.answer, { late: true })
  t.strictSame(ids(timely), ['run_2', 'run_1'])
  await follower.stop()
  const gone = ask(undefined, 1000)
  await settle()
  t.match(gone.answer, { refused: 'service_unavailable' })
})

t.test('a query waits while the end cannot be read, and is refused after its time', async (t) => {
  const { follower, settle, ask, pass, state } = world()
  await follower.start()
  state.end = () => Promise.reject(new Error('no leader'))
  const [asked, late] = [ask(), ask()]
  await settle()
  t.equal(asked.answer, undefined, 'an election may end soon')
  state.end = undefined
  await pass(100)
  t.strictSame(ids(asked), [])
  t.strictSame(ids(late), [])
  state.end = () => Promise.reject(new Error('no leader'))
  const lost = ask()
  for (let passed = 0; passed <= 10_000; passed += 100) await pass(100)
  t.match(lost.answer, { refused: 'service_unavailable' })
})
