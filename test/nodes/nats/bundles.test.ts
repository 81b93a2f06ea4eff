/** Bundled requests over a real server: what shares a message, and how each request is answered. */
import t from 'tap'
import type { NoAnswer } from '../../../nodes/host/ports.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import { startStore } from '../support/store.ts'

const { one, two } = await startStore('always')
const SUBJECT = 'shard.0.0'
const TIMEOUT_MS = 5000

/** Counts the messages that arrive at the subject, and how many of them are bundles. */
function counted() {
  const count = { messages: 0, bundles: 0 }
  const subscription = two.connection.subscribe(two.space.subject(SUBJECT), {
    callback: (_, message) => {
      count.messages++
      if (message.headers?.has('Baton-Bundle')) count.bundles++
    },
  })
  return { count, end: () => subscription.unsubscribe() }
}
async function given(answer: (request: { n: number }) => unknown, unbundle = true) {
  const from = createBus(one, { unbundle: () => unbundle })
  const to = createBus(two)
  const end = to.subscribe(SUBJECT, (message) => answer(message as { n: number }))
  const counter = counted()
  await to.flush()
  return {
    from,
    count: counter.count,
    ask: (n: number, more: object = {}, bundled = true, timeout = TIMEOUT_MS) =>
      from.request(SUBJECT, { n, ...more }, timeout, bundled),
    end: async () => {
      end()
      counter.end()
      await to.flush()
    },
  }
}
const numbers = Array.from({ length: 40 }, (_, n) => n)
const squares = numbers.map((n) => ({ answer: { square: n * n } }))
const square = async ({ n }: { n: number }) => ({ square: n * n })

t.test('requests of one turn share a message, and each gets its own answer', async (t) => {
  const at = await given(square)
  t.strictSame(await Promise.all(numbers.map((n) => at.ask(n))), squares)
  t.strictSame(at.count, { messages: 1, bundles: 1 })
  await at.end()
})

t.test(
  'a request alone, a large one and one with a short time limit are not bundled',
  async (t) => {
    const at = await given(square)
    const text = 'x'.repeat(17_000)
    t.strictSame(await at.ask(3), { answer: { square: 9 } })
    t.strictSame(at.count, { messages: 1, bundles: 0 })
    t.strictSame(
      await Promise.all([
        at.ask(0, { text }),
        at.ask(1, { text }),
        at.ask(2, {}, false),
        at.ask(3, {}, true, 1000),
      ]),
      squares.slice(0, 4),
    )
    t.strictSame(at.count, { messages: 5, bundles: 0 })
    await at.end()
  },
)

t.test('nothing is bundled while a node cannot read bundles', async (t) => {
  const at = await given(square, false)
  t.strictSame(await Promise.all(numbers.map((n) => at.ask(n))), squares)
  t.strictSame(at.count, { messages: 40, bundles: 0 })
  await at.end()
})

t.test('a bundle is bounded', async (t) => {
  const at = await given(square)
  const text = 'x'.repeat(10_000)
  t.strictSame(await Promise.all(numbers.map((n) => at.ask(n, { text }))), squares)
  t.strictSame(at.count, { messages: 4, bundles: 3 }, 'the last request is alone')
  await at.end()
})

t.test('a slow request and one without an answer do not delay the others', async (t) => {
  let finish = () => {}
  const slow = new Promise<object>((resolve) => {
    finish = () => resolve({ square: 'late' })
  })
  const at = await given(({ n }) => {
    if (n === 5) return slow
    if (n === 7) throw new Error('expected')
    return square({ n })
  })
  const results = await Promise.all(numbers.map((n) => at.ask(n)))
  const expected: (NoAnswer | object)[] = [...squares]
  expected[5] = expected[7] = 'pending'
  t.strictSame(results, expected)
  finish()
  t.strictSame(await at.ask(5, {}, false), { answer: { square: 'late' } })
  await at.end()
})

t.test('answers that do not fit into one message are fetched by another request', async (t) => {
  const at = await given(({ n }) => ({ n, text: 'x'.repeat(100_000) }))
  const sizeOf = (result: Awaited<ReturnType<typeof at.ask>>) =>
    typeof result === 'string' ? result : (result.answer as { text: string }).text.length
  t.strictSame((await Promise.all([at.ask(0), at.ask(1), at.ask(2)])).map(sizeOf), [
    100_000,
    'pending',
    'pending',
  ])
  t.equal(sizeOf(await at.ask(1, {}, false)), 100_000)
  await at.end()
})

t.test('without a subscriber, each request of a bundle fails at once', async (t) => {
  const at = await given(square)
  await at.end()
  const results = await Promise.all(numbers.map((n) => at.ask(n)))
  t.strictSame(new Set(results), new Set(['no_responders']))
})
