/**
 * Requests above the maximum message size of the NATS server: they arrive whole, or not at all.
 */
import t from 'tap'
import { RequestParts, splitRequest } from '../../../nodes/nats/bus/parts.ts'
import { createBus } from '../../../nodes/nats/bus.ts'
import { startStore } from '../support/store.ts'

const { one, two } = await startStore('2m')

t.test('a request above the limit of the server reaches another process', async (t) => {
  const [from, to] = [createBus(one), createBus(two)]
  t.teardown(
    to.subscribe('large.request', (message) => {
      const { text } = message as { text: string }
      return { length: text.length, end: text.slice(-3) }
    }),
  )
  await to.flush()
  for (const length of [10, 6_000_000, 12_000_000])
    t.strictSame(
      await from.request('large.request', { text: `${'é'.repeat(length / 2)}end` }, 5000),
      { answer: { length: length / 2 + 3, end: 'end' } },
      `${length} bytes`,
    )
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, i) =>
      from.request('large.request', { text: `${'x'.repeat(9_000_000)}${i}` }, 10_000),
    ),
  )
  t.strictSame(
    answers,
    [0, 1, 2, 3].map((i) => ({ answer: { length: 9_000_001, end: `xx${i}` } })),
    'parts of concurrent requests are not mixed up',
  )
})

const large = (fill: number) => splitRequest(Buffer.alloc(5_500_000, fill), () => `r${fill}`)

t.test('a small request is one message without a header', async (t) => {
  const [part, ...more] = splitRequest(Buffer.from('small'), () => 'unused')
  t.equal(part?.headers, undefined)
  t.equal(more.length, 0)
  t.equal(
    String(new RequestParts().join({ ...part, data: Buffer.from('small') } as never)),
    'small',
  )
})

t.test('a request with a lost part never arrives', async (t) => {
  const parts = new RequestParts()
  const [first, , ...rest] = large(1)
  for (const part of [first, ...rest]) t.equal(parts.join(part as never), undefined)
  const again = large(1)
  t.strictSame(
    again.map((part) => parts.join(part as never)?.length),
    [...again.slice(1).map(() => undefined), 5_500_000],
    'its repeat does',
  )
})

t.test('the oldest incomplete request is dropped for a new one', async (t) => {
  const parts = new RequestParts()
  const all = Array.from({ length: 9 }, (_, i) => large(i))
  for (const [first] of all) parts.join(first as never)
  const joined = all.map((request) =>
    request
      .slice(1)
      .reduce<Uint8Array | undefined>((_, part) => parts.join(part as never), undefined),
  )
  t.equal(joined[0], undefined)
  t.strictSame(
    joined.slice(1).map((data) => [data?.length, data?.[0]]),
    Array.from({ length: 8 }, (_, i) => [5_500_000, i + 1]),
  )
})
