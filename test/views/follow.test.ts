/** Following a journal: freshness of answers, order, alarms and restarts. */
import Database from 'better-sqlite3'
import t from 'tap'
import { cursorOf } from '../../protocol/entry.ts'
import type { Message } from '../../views/view.ts'
import { ids, world } from './support/following.ts'
import { type Answer, Journal, moved, started } from './support/journal.ts'

t.test('a query waits until the view has applied all earlier commits', async (t) => {
  const { journal, follower, deliver, settle, ask, state, timers, pass } = world()
  await follower.start()
  const one = journal.commit(0, started('run_1', 1))
  const two = journal.commit(0, started('run_2', 2))
  const asked = ask()
  await settle()
  t.equal(asked.answer, undefined)
  await deliver(one)
  t.equal(asked.answer, undefined)
  journal.commit(0, started('run_3', 3))
  await deliver(two)
  t.strictSame(ids(asked), ['run_2', 'run_1'], 'later commits do not delay it')
  t.strictSame(state.lag, [2])
  t.equal(timers.size, 2, 'a save and a check for leftover rows are scheduled')
  await pass(3000)
  t.equal(timers.size, 0, 'no timer is left behind')
})

t.test(
  'a process that is the only writer knows the end of the journal without a request, and waits for it',
  async (t) => {
    const { journal, follower, deliver, settle, ask, state } = world()
    await follower.start()
    const begun = state.asked
    let last = 0
    state.known = () => last
    const one = journal.commit(0, started('run_1', 1))
    last = one.sequence
    const asked = ask()
    await settle()
    t.equal(asked.answer, undefined)
    await deliver(one)
    t.strictSame(ids(asked), ['run_1'])
    state.known = () => undefined
    t.equal(state.asked, begun)
    const other = ask()
    await settle()
    t.strictSame(ids(other), ['run_1'])
    t.equal(state.asked, begun + 1, 'when it is not sure, it looks')
  },
)

t.test(
  'waiting queries share one request for the end of the journal; a started one is too old for later queries',
  async (t) => {
    const { journal, follower, deliver, settle, ask, state, end } = world()
    await follower.start()
    const begun = state.asked
    const looks: (() => void)[] = []
    state.end = () =>
      new Promise((resolve) => {
        const seen = end()
        looks.push(() => resolve(seen))
      })
    const early = ask()
    await settle()
    const one = journal.commit(0, started('run_1', 1))
    const [late, later] = [ask(), ask()]
    await settle()
    t.equal(state.asked - begun, 1)
    looks[0]?.()
    await settle()
    t.strictSame([ids(early), late.answer], [[], undefined])
    t.equal(state.asked - begun, 2)
    looks[1]?.()
    await settle()
    t.equal(late.answer, undefined)
    await deliver(one)
    t.strictSame([ids(late), ids(later)], [['run_1'], ['run_1']])
    t.equal(state.asked - begun, 2)
  },
)

t.test(
  'a query with a cursor waits only for that cursor, without a request for the end',
  async (t) => {
    const { journal, follower, deliver, settle, ask, state } = world()
    await follower.start()
    const begun = state.asked
    const one = journal.commit(0, started('run_1', 1))
    journal.commit(0, started('run_2', 2))
    const [any, exact] = [ask(0), ask(cursorOf(1, 7))]
    await settle()
    t.strictSame([ids(any), exact.answer], [[], undefined])
    await deliver(one)
    t.strictSame(ids(exact), ['run_1'])
    t.equal(state.asked, begun)
  },
)

t.test('bytes are decoded, and a large batch is applied in parts', async (t) => {
  const { journal, follower, deliver, view } = world()
  for (let i = 0; i < 1200; i++) journal.commit(0, moved('run_x', 'running'))
  await follower.start()
  await deliver(
    ...journal.messages.map(({ sequence, data }) => ({
      sequence,
      data: new TextEncoder().encode(JSON.stringify(data)),
    })),
  )
  t.equal(view.position(), 1200)
})

t.test('a gap raises an alarm, and following restarts from the position of the view', async (t) => {
  const { journal, follower, deliver, settle, ask, pass, state, alarms } = world()
  await follower.start()
  const one = journal.commit(0, started('run_1', 1))
  const two = journal.commit(0, started('run_2', 2))
  const three = journal.commit(0, started('run_3', 3))
  await deliver(one)
  await deliver(three)
  t.strictSame(alarms, ['JournalHole'])
  t.equal(state.stopped, 1)
  const asked = ask()
  await settle()
  t.equal(asked.answer, undefined)
  await pass(1000)
  t.strictSame(state.from, [1, 1])
  await deliver(one, two, three)
  t.strictSame(ids(asked), ['run_3', 'run_2', 'run_1'])
})

t.test(
  'a view is rebuilt if the journal was replaced or ends before the position of the view',
  async (t) => {
    const first = world()
    first.journal.commit(0, started('run_1', 1))
    first.journal.commit(0, started('run_2', 2))
    await first.follower.start()
    await first.deliver(...first.journal.messages)
    const other = new Journal()
    other.commit(0, started('run_9', 1))
    other.commit(0, started('run_8', 1))
    const foreign = { ...(other.messages[1] as Message), message_id: 'foreign' }
    await first.deliver(foreign)
    t.strictSame(first.alarms, ['JournalReplaced'])
    t.equal(first.view.position(), 0)
    await first.pass(1000)
    await first.deliver(...other.messages)
    t.strictSame(ids({ answer: first.view.ask('run.list', 'prj_a', {}) as Answer }), [
      'run_9',
      'run_8',
    ])

    const shrunk = world()
    shrunk.view.apply(first.journal.messages)
    await shrunk.follower.start()
    t.strictSame(
      [shrunk.alarms, shrunk.view.position(), shrunk.state.from],
      [['JournalReplaced'], 0, [1]],
    )
  },
)

t.test('a damaged file raises an alarm, and the view is rebuilt', async (t) => {
  const { journal, follower, deliver, settle, ask, pass, view, alarms, state } = world()
  await follower.start()
  await deliver(journal.commit(0, started('run_1', 1)))
  const answer = view.askInParts.bind(view)
  // biome-ignore lint/correctness/useYield: it fails before its first part ends
  view.askInParts = function* () {
    throw new Database.SqliteError('database disk image is malformed', 'SQLITE_CORRUPT')
  }
  const asked = ask(0)
  await settle()
  t.match(asked.answer, { refused: 'service_unavailable' })
  t.strictSame([alarms, view.position()], [['SqliteError'], 0])
  view.askInParts = answer
  await pass(1000)
  t.strictSame(state.from, [1, 1])
  await deliver(...journal.messages)
  const again = ask()
  await settle()
  t.strictSame(ids(again), ['run_1'])
})

t.test('queries are answered between the parts of a long query', async (t) => {
  const { follower, settle, ask, view } = world()
  await follower.start()
  const answer = view.askInParts.bind(view)
  let parts = 0
  view.askInParts = function* (name, project, input) {
    if (name !== 'run.get') return yield* answer(name, project, input)
    for (;;) {
      parts++
      yield
    }
  }
  let long: unknown
  void follower.ask('run.get', 'prj_a', {}, 0).then((one) => (long = one))
  await settle()
  const asked = ask(0)
  await settle()
  t.strictSame(ids(asked), [])
  t.equal(long, undefined)
  await follower.stop()
  const before = parts
  await settle()
  await settle()
  t.match(long, { refused: 'service_unavailable' }, 'it ends with the follower')
  t.ok(parts <= before + 1)
})

t.test('queries are answered between the parts of a long batch', async (t) => {
  const { journal, follower, deliver, settle, ask, view } = world()
  for (let i = 0; i < 3; i++)
    journal.commit(
      0,
      ...Array.from(
        { length: 1500 },
        () => ({ kind: 'run', project: 'prj_a', id: 'run_x', events: [] }) as const,
      ),
    )
  await follower.start()
  const all = ask(cursorOf(3, 0))
  const some = ask(cursorOf(2, 0))
  const reached: number[] = []
  void follower
    .ask('run.list', 'prj_a', {}, cursorOf(2, 0))
    .then(() => reached.push(view.position()))
  await deliver(...journal.messages)
  await settle()
  t.ok(all.answer && some.answer)
  t.strictSame(reached, [2])
})

t.test('large messages yield to the event loop, however few entries they have', async (t) => {
  const { journal, follower, deliver, view } = world()
  await follower.start()
  const runs = Array.from({ length: 12 }, (_, i) => journal.commit(0, started(`run_${i}`, i)))
  const padding = ' '.repeat(1_048_576)
  const bytes = runs.map((message) => ({
    ...message,
    data: new TextEncoder().encode(JSON.stringify(message.data) + padding),
  }))
  const seen = new Set<number>()
  let watching = true
  const watch = () => {
    seen.add(view.position())
    if (watching) setImmediate(watch)
  }
  watch()
  await deliver(...bytes)
  watching = false
  t.equal(view.position(), runs.at(-1)?.sequence)
  t.ok(seen.size >= 6, `${seen.size} turns saw the view at different places`)
  await follower.stop()
  view.close()
})

t.test('stopping refuses waiting queries and applies nothing more', async (t) => {
  const { journal, follower, settle, ask, state, deliver, view } = world()
  await follower.start()
  const one = journal.commit(0, started('run_1', 1))
  const asked = ask()
  await settle()
  await follower.stop()
  await settle()
  t.match(asked.answer, { refused: 'service_unavailable' })
  t.equal(state.stopped, 1)
  await deliver(one)
  t.equal(view.position(), 0)
  view.close()
})

t.test('a beginning that is deleted while the view is behind is noticed', async (t) => {
  const { journal, follower, deliver, view, alarms } = world()
  journal.commit(0, started('run_1', 1))
  await follower.start()
  await deliver(...journal.messages)
  journal.commit(1, started('run_2', 2))
  journal.commit(1, started('run_3', 3))
  const next = journal.commit(0, started('run_4', 4))
  journal.messages.splice(0, 3)
  await deliver(next)
  t.strictSame(ids({ answer: view.ask('run.list', 'prj_a', {}) as Answer }), ['run_4', 'run_1'])
  t.match(view.ask('feed', 'prj_a', { after: 0, limit: 10 }), { oldest: cursorOf(4, 0) })
  t.strictSame(alarms, [])
})
