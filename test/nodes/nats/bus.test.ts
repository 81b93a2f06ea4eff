/** Texts beside JSON, and subscribers for messages of one process. */
import t from 'tap'
import { createBus } from '../../../nodes/nats/bus.ts'
import { startStore } from '../support/store.ts'

const { one, two } = await startStore('2m')

t.test('a text in `appended` reaches another process unchanged', async (t) => {
  const [mine, theirs] = [createBus(one), createBus(two)]
  t.teardown(theirs.subscribe('text.echo', (message) => ({ message, ...(message as object) })))
  await theirs.flush()
  for (const appended of ['', 'one "quoted" word', '{"a":1}\n{"b":2}\n', '\n\n', 'é 😀 \u2028'])
    for (const rest of [{}, { lines: 'a\nb', n: 1 }])
      t.strictSame(
        await mine.request('text.echo', { ...rest, appended }, 5000),
        { answer: { message: { ...rest, appended }, ...rest, appended } },
        encodeURIComponent(JSON.stringify({ ...rest, appended })),
      )
  t.strictSame(
    await mine.request('text.echo', { appended: 1 }, 5000),
    { answer: { message: { appended: 1 }, appended: 1 } },
    'a number is part of the JSON',
  )
})

t.test(
  'a subscriber that is limited to its process answers no requests of other processes',
  async (t) => {
    const [mine, theirs] = [createBus(one), createBus(two)]
    const stop = theirs.subscribe('local.ask', () => 'answered', 'group', 'process')
    await theirs.flush()
    t.strictSame(await theirs.request('local.ask', {}, 5000), { answer: 'answered' })
    t.equal(await mine.request('local.ask', {}, 5000), 'no_responders')
    stop()
    t.equal(await theirs.request('local.ask', {}, 5000), 'no_responders')
  },
)
