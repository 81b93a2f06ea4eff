/** The gateway's ports over a bus that transports messages as JSON, as NATS does. */
import t from 'tap'
import type { Membership } from '../../../nodes/host/cluster/membership.ts'
import type { ShardAnswer } from '../../../nodes/host/deps.ts'
import type { Bus, Clock } from '../../../nodes/host/ports.ts'
import { createWorld } from '../../../nodes/world.ts'
import { refuse } from '../../../protocol/errors.ts'
import { fake, fakeParts } from '../../support/fake-world.ts'
import { ManualClock, settleAll } from '../../support/memory.ts'

const to = {
  project: 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B',
  kind: 'project',
  id: 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B',
} as const
/** Creates the ports of a gateway over a bus. `byte` is the value of every random byte. */
function worldOver(bus: { readonly request: unknown }, clock: Clock, deadline = 15_000, byte = 0) {
  const parts = fakeParts({
    node: 'n1',
    settings: { deadline },
    shards: 4,
    bus: fake<Bus>('bus', bus),
    clock,
    random: { bytes: (length) => new Uint8Array(length).fill(byte) },
  })
  return createWorld(parts)
}
function answering(given: ShardAnswer) {
  const bus = { request: async () => ({ answer: JSON.parse(JSON.stringify(given)) as unknown }) }
  return worldOver(bus, { elapsed: () => 0, now: () => 0, later: () => () => {} }, 1000)
}

t.test('a query to another process has the same answer as a local one', async (t) => {
  t.equal(
    await answering({ reply: undefined }).ask(to, 'definition', { id: 'none' }),
    undefined,
    'nothing is nothing',
  )
  t.equal(await answering({ reply: null }).ask(to, 'webhook', { webhook_id: 'none' }), null)
  t.strictSame(await answering({ reply: { a: 1 } }).ask(to, 'webhook', { webhook_id: 'none' }), {
    a: 1,
  })
  t.match(
    await answering(refuse('service_unavailable')).ask(to, 'webhook', { webhook_id: 'none' }),
    {
      refused: 'service_unavailable',
    },
  )
})

t.test('the first answer to any attempt counts; a refusal is retried soon', async (t) => {
  const clock = new ManualClock()
  const asked: ((answer: unknown) => void)[] = []
  const bus = { request: () => new Promise((answer) => asked.push(answer)) }
  const world = worldOver(bus, clock)
  const late = world.ask(to, 'webhook', { webhook_id: 'none' })
  await clock.advance(5000)
  t.equal(asked.length, 3, 'sent again every two seconds')
  asked[0]?.({ answer: { reply: 'late' } })
  t.equal(await late, 'late', 'the first answer counts, whichever asking it is to')
  await clock.advance(10_000)
  t.equal(asked.length, 3, 'and nothing is sent any more')

  const moved = world.ask(to, 'webhook', { webhook_id: 'none' })
  asked[3]?.('no_responders')
  await clock.advance(5)
  asked[4]?.({ answer: { not_owner: true } })
  await clock.advance(10)
  t.equal(asked.length, 6)
  asked[5]?.({ answer: { reply: 'found' } })
  t.equal(await moved, 'found')

  const never = world.ask(to, 'webhook', { webhook_id: 'none' })
  await clock.advance(15_000)
  t.match(await never, { refused: 'service_unavailable' })
})

t.test('each unanswered request is sent again two seconds after its last attempt', async (t) => {
  const clock = new ManualClock()
  const sent: [id: string, at: number][] = []
  const bus = {
    request: (_: string, message: { input: { webhook_id: string } }) => {
      sent.push([message.input.webhook_id, clock.elapsed()])
      return new Promise(() => {})
    },
  }
  const world = worldOver(bus, clock)
  for (const id of ['a', 'b', 'c']) {
    void world.ask(to, 'webhook', { webhook_id: id })
    await clock.advance(500)
  }
  await clock.advance(4000)
  t.strictSame(sent, [
    ...[0, 500, 1000].map((at, i) => ['abc'[i], at]),
    ...[2000, 2500, 3000].map((at, i) => ['abc'[i], at]),
    ...[4000, 4500, 5000].map((at, i) => ['abc'[i], at]),
  ])
})

t.test(
  'while a shard is unserved, only one of many waiting requests is retried at a time',
  async (t) => {
    const clock = new ManualClock()
    let asked = 0
    let served = false
    const bus = {
      request: async () => {
        asked++
        return served ? { answer: { reply: 'here' } } : 'no_responders'
      },
    }
    const world = worldOver(bus, clock, 15_000, 128)
    const first = Array.from({ length: 1000 }, () =>
      world.ask(to, 'webhook', { webhook_id: 'none' }),
    )
    await clock.advance(1000)
    const more = Array.from({ length: 1000 }, () =>
      world.ask(to, 'webhook', { webhook_id: 'none' }),
    )
    await clock.advance(4000)
    t.ok(
      asked < 1000 + 5000 / 50 + 20,
      `${asked} questions of 2000 in 5 s: each of the first once, then one at a time`,
    )
    served = true
    asked = 0
    await clock.advance(100)
    t.strictSame([...new Set(await Promise.all([...first, ...more]))], ['here'])
    t.ok(asked <= 2001, 'and each once more')
    served = false
    const late = world.ask(to, 'webhook', { webhook_id: 'none' })
    await clock.advance(14_000)
    const later = world.ask(to, 'webhook', { webhook_id: 'none' })
    await clock.advance(1500)
    t.match(await late, { refused: 'service_unavailable' }, 'each waits until its own deadline')
    served = true
    await clock.advance(100)
    t.equal(await later, 'here')
    asked = 0
    t.equal(await world.ask(to, 'webhook', { webhook_id: 'none' }), 'here')
    t.equal(asked, 1)
  },
)

t.test('a query is sent once the owners know what is followed', async (t) => {
  const sent: string[] = []
  const left: string[] = []
  let know = () => {}
  const known = new Promise<void>((resolve) => (know = resolve))
  const world = createWorld(
    fakeParts({
      settings: { deadline: 15_000 },
      bus: fake<Bus>('bus', {
        subscribe: () => () => {},
        request: async (subject: string) => {
          sent.push(subject)
          return { answer: 1 }
        },
      }),
      clock: fake<Clock>('clock', { elapsed: () => 0, now: () => 0 }),
      random: { bytes: (length) => new Uint8Array(length) },
      interest: {
        follow: (subject) => () => left.push(subject),
        settled: () => known,
      },
    }),
  )
  const stops = (['run', 'session', 'channel'] as const).map((kind) =>
    world.live('prj_1', kind, `${kind}_1`, () => {}),
  )
  const page = world.viewRow('prj_1', 'run.events', {})
  await settleAll()
  t.strictSame(sent, [])
  know()
  t.equal(await page, 1)
  for (const stop of stops) stop()
  t.strictSame(left, ['live.prj_1.run.run_1', 'live.prj_1.session.session_1'])
})

t.test('a view that was slow gets more time', async (t) => {
  const clock = new ManualClock()
  const timeouts: number[] = []
  const bus = fake<Bus>('bus', {
    request: async (_: string, __: unknown, timeout: number) => {
      timeouts.push(timeout)
      return timeouts.length < 4
        ? timeouts.length === 2
          ? 'no_responders'
          : 'timeout'
        : { answer: 1 }
    },
  })
  const world = createWorld(
    fakeParts({
      settings: { deadline: 15_000 },
      bus,
      clock: fake<Clock>('clock', {
        ...clock,
        elapsed: () => 0,
        later: (_: number, run: () => void) => run(),
      }),
      random: { bytes: (length) => new Uint8Array(length) },
      membership: fake<Membership>('membership', { members: () => [] }),
    }),
  )
  t.equal(await world.viewRow(to.project, 'run.list', {}), 1)
  t.strictSame(timeouts, [2000, 4000, 4000, 8000], 'but not after an attempt without a view')
})
