/**
 * Publishing over a real nats-server: every acknowledgement is matched to its message, and no
 * message remains pending.
 */
import { JetStreamApiError } from '@nats-io/jetstream'
import {
  ClosedConnectionError,
  headers,
  InvalidArgumentError,
  NoRespondersError,
  TimeoutError,
} from '@nats-io/transport-node'
import t from 'tap'
import { Disconnected, isUnanswered, isWrongSequence } from '../../../nodes/nats/failures.ts'
import { EXPECTED } from '../../../nodes/nats/journal/publish.ts'
import { createSnapshots } from '../../../nodes/nats/journal/snapshots.ts'
import { provision } from '../../../nodes/nats/server/provision.ts'
import { startStore } from '../support/store.ts'

const { one, two, connect, kill } = await startStore('2m')
await provision(one, { partitions: 1, shards: 4, replicas: 1 })

const bytes = (text: string) => new TextEncoder().encode(text)
const after = (sequence: number) => {
  const made = headers()
  made.set(EXPECTED, String(sequence))
  return made
}
const JOURNAL = 'journal.0.0'
const failure = (stored: Promise<unknown>): Promise<unknown> =>
  stored.then(
    () => t.fail('it was stored'),
    (error: unknown) => error,
  )

t.test('concurrent messages get their own sequences, in the order they were sent', async (t) => {
  const stored = await Promise.all(
    Array.from({ length: 500 }, (_, i) => one.publish(JOURNAL, bytes(`${i}`), undefined, 4000)),
  )
  t.same(
    stored,
    Array.from({ length: 500 }, (_, i) => i + 1),
  )
  const message = await one.manager.streams.getMessage('JOURNAL_0', { seq: 321 })
  t.equal(message?.string(), '320')
})

t.test('a message that a stream refuses fails with the reason', async (t) => {
  const wrong = await failure(one.publish(JOURNAL, bytes('x'), after(3), 4000))
  t.ok(wrong instanceof JetStreamApiError)
  t.ok(isWrongSequence(wrong))
  t.equal(
    await one.publish(JOURNAL, bytes('x'), after(500), 4000),
    501,
    'and the next one is stored',
  )
  t.ok(
    (await failure(one.publish('nobody.listens', bytes('x'), undefined, 4000))) instanceof
      NoRespondersError,
  )
  t.ok(
    (await failure(one.publish(JOURNAL, new Uint8Array(200_000_000), undefined, 4000))) instanceof
      InvalidArgumentError,
  )
})

t.test(
  'a message without an acknowledgement times out, an invalid one fails at once',
  async (t) => {
    const deaf = two.connection.subscribe('deaf', { callback: () => {} })
    const odd = two.connection.subscribe('odd', {
      callback: (_, message) => void message.respond(message.string()),
    })
    await two.connection.flush()
    const started = performance.now()
    t.ok((await failure(one.publish('deaf', bytes('x'), undefined, 50))) instanceof TimeoutError)
    t.ok(performance.now() - started < 2000)
    t.match(await failure(one.publish('odd', bytes('{}'), undefined, 60_000)), {
      message: /names no message/,
    })
    t.match(await failure(one.publish('odd', bytes('no json'), undefined, 60_000)), {
      name: 'SyntaxError',
    })
    deaf.unsubscribe()
    odd.unsubscribe()
  },
)

t.test('snapshots compare many revisions concurrently', async (t) => {
  const snapshots = createSnapshots(one)
  const keys = Array.from({ length: 200 }, (_, i) => `run/prj_1/run_${i}`)
  const made = await Promise.all(keys.map((key) => snapshots.put(0, key, bytes(key), 0)))
  t.equal(new Set(made).size, keys.length)
  t.same(
    await Promise.all(keys.map((key) => snapshots.put(0, key, bytes('again'), 0))),
    keys.map(() => undefined),
    'none is made twice',
  )
  const replaced = await Promise.all(
    keys.map((key, i) => snapshots.put(0, key, bytes(`${key} 2`), made[i])),
  )
  t.ok(replaced.every((revision, i) => (revision ?? 0) > (made[i] ?? 0)))
  const found = await snapshots.get(0, keys[77] ?? '')
  t.same(
    [new TextDecoder().decode(found?.data), found?.revision],
    ['run/prj_1/run_77 2', replaced[77]],
  )
})

t.test('publishing continues after an outage of the server', async (t) => {
  two.connection.subscribe('silent', { callback: () => {} })
  await two.connection.flush()
  const unanswered = failure(one.ask('silent', bytes('x'), undefined, 60_000))
  await one.flush()
  const restart = await kill()
  t.ok((await unanswered) instanceof Disconnected, 'pending requests fail at once')
  // The message is written to a closing socket, or not at all. In both cases, the failure is
  // detected on disconnect or after the timeout.
  t.ok(
    isUnanswered(await failure(one.publish('journal.0.1', bytes('lost or not'), undefined, 300))),
  )
  t.ok(
    (await failure(one.publish('journal.0.1', bytes('never sent'), undefined, 30))) instanceof
      TimeoutError,
  )
  const waiting = one.publish('journal.0.3', bytes('sent later'), undefined, 30_000)
  await restart()
  t.ok((await waiting) > 501, 'a request made meanwhile is sent after the restart')
  t.equal(
    await one.manager.streams
      .getMessage('JOURNAL_0', { last_by_subj: 'journal.0.3' })
      .then((message) => message?.string()),
    'sent later',
  )
  let sequence: number | undefined
  for (let i = 0; i < 50 && sequence === undefined; i++)
    sequence = await one
      .publish('journal.0.2', bytes('again'), undefined, 500)
      .catch(() => undefined)
  t.ok((sequence ?? 0) > 501)
  while (!two.connected()) await new Promise((look) => setTimeout(look, 5))
})

t.test('closing a connection fails all pending requests', async (t) => {
  const three = await connect('three')
  two.connection.subscribe('deaf', { callback: () => {} })
  await two.connection.flush()
  const open = failure(three.publish('deaf', bytes('x'), undefined, 60_000))
  await three.connection.close()
  t.ok((await open) instanceof ClosedConnectionError)
  t.ok(
    (await failure(three.publish('deaf', bytes('x'), undefined, 60_000))) instanceof
      ClosedConnectionError,
  )
})
