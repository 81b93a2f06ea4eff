/**
 * Clients that stop reading. The gateway buffers a bounded amount of data for each of them, and
 * other clients still receive everything. A client that resumes reading misses nothing. After the
 * gateway has ended its stream, the client reconnects with its last cursor.
 */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import t from 'tap'
import { api, type RowName } from '../../../protocol/api.ts'
import { requestOf, service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
t.setTimeout(120_000)
const MIB = 1_048_576
/**
 * The maximum number of bytes that the kernel buffers for a loopback connection: both socket
 * buffers at their limits.
 */
const KERNEL = 12 * MIB

/** Opens a stream whose bytes are read only after `read()` is called. */
async function opened(name: RowName, input: Record<string, unknown>, cursor?: string) {
  const { path } = requestOf(api[name], input)
  const asked = request(s.url + path, {
    agent: false,
    headers: {
      authorization: `Bearer ${s.key}`,
      accept: 'text/event-stream',
      ...(cursor !== undefined && { 'last-event-id': cursor }),
    },
  })
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  const marks: number[] = []
  let [bytes, rest, tail, cursorSeen] = [0, '', '', cursor]
  let ended = false
  response.on('end', () => {
    ended = true
  })
  /** Parses complete lines as they arrive, because a whole stream is too long to buffer. */
  const received = (piece: Buffer): void => {
    bytes += piece.length
    const text = piece.toString('latin1')
    tail = (tail + text).slice(-500)
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      cursorSeen = /^id: ?(.+)$/.exec(line)?.[1] ?? cursorSeen
      for (const [, number] of line.matchAll(/mark-(\d+)-/g)) marks.push(Number(number))
    }
  }
  return {
    /** The numbers of the received messages. Each message begins with `mark-` and its number. */
    marks,
    read: () => void response.on('data', received).resume(),
    get bytes() {
      return bytes
    },
    /** The last 500 characters that were received. */
    get tail() {
      return tail
    },
    get cursor() {
      return cursorSeen
    },
    get ended() {
      return ended
    },
    close: () => asked.destroy(),
  }
}
const metric = async (name: string): Promise<number> =>
  Number(
    new RegExp(`^baton_${name} (\\d+)`, 'm').exec((await s.raw('GET', '/metrics')).text)?.[1] ?? 0,
  )
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const marked = (number: number, size: number) => `mark-${number}- `.padEnd(size, 'x')

t.test('a channel follower that stops reading loses nothing and blocks no other', async (t) => {
  const COUNT = 420
  const channel = await s.ok('channel.create', { name: 'busy' })
  const input = { id: channel['id'] }
  const slow = await opened('channel.events', input)
  const quick = await opened('channel.events', input)
  quick.read()
  for (const number of upTo(COUNT))
    await s.ok('channel.send', { ...input, content: marked(number, 39_000) })
  await until(
    async () => quick.marks.length,
    (count) => count === COUNT,
  )
  t.strictSame(quick.marks, upTo(COUNT), 'other followers receive everything')
  t.ok((await metric('stream_fallbacks_total')) > 0, 'the gateway has stopped buffering')
  slow.read()
  await until(
    async () => slow.marks.length,
    (count) => count >= COUNT,
  )
  t.strictSame(slow.marks, upTo(COUNT), 'the follower continues where it stopped')
  quick.close()
  slow.close()
})

t.test('session followers that stop reading are disconnected and lose nothing', async (t) => {
  const agent = await s.ok('agent.create', {
    name: 'waiter',
    system_prompt: 'script: [{delay: 1m}]',
  })
  const session = await s.ok('session.create', {
    agent_id: agent['id'],
    session_key: 'slow',
    compaction_policy: { strategy: 'manual' },
  })
  const session_id = String(session['id'])
  const { turn } = (await s.ok('session.start_turn', {
    session_id,
    content: [{ type: 'text', text: 'go' }],
    idempotency_key: 'a',
  })) as unknown as { turn: { id: string } }
  const streams = ['session.transcript_stream', 'session.stream'] as const
  const input = { session_id }
  const slow = await Promise.all(streams.map((name) => opened(name, input)))
  const quick = await Promise.all(streams.map((name) => opened(name, input)))
  for (const stream of quick) stream.read()
  const [BATCH, SIZE, COUNT] = [20, 40_000, 420]
  const before = await metric('stream_fallbacks_total')
  for (let first = 1; first <= COUNT; first += BATCH)
    await s.ok('session.append', {
      session_id,
      messages: Array.from({ length: BATCH }, (_, n) => ({
        role: 'user',
        content: [{ type: 'text', text: marked(first + n, SIZE) }],
      })),
    })
  for (const [index, stream] of quick.entries()) {
    await until(
      async () => stream.marks.length,
      (count) => count >= COUNT,
    )
    t.strictSame(stream.marks, upTo(COUNT), `${streams[index]}: other followers receive everything`)
    stream.close()
  }
  t.equal(
    (await metric('stream_fallbacks_total')) - before,
    streams.length,
    'both streams were ended',
  )
  for (const [index, stream] of slow.entries()) {
    stream.read()
    await until(
      async () => stream.ended,
      (ended) => ended,
    )
    t.ok(
      stream.bytes < KERNEL + 3 * MIB,
      `the gateway buffered little: ${stream.bytes} bytes in all`,
    )
    t.match(stream.tail, /rotate/, 'the stream reports why it ends')
    const name = streams[index] ?? 'session.stream'
    const rest = await opened(name, input, stream.cursor)
    rest.read()
    const known = stream.marks
    await until(
      async () => rest.marks.length,
      (count) => count >= COUNT - known.length,
    )
    t.strictSame([...known, ...rest.marks], upTo(COUNT), `${name}: nothing is skipped`)
    rest.close()
  }
  await s.ok('session.cancel_turn', { session_id, turn_id: turn.id })
})

t.test('a worker that stops reading is disconnected, and others get its jobs', async (t) => {
  const COUNT = 54
  const action = { action_names: ['big.one'] }
  const deaf = await s.worker({ ...action, concurrency_limit: COUNT })
  deaf.socket.pause()
  const blob = 'x'.repeat(600_000)
  const big = {
    id: 'one',
    kind: 'action',
    config: { action_name: 'big.one', parameters: { blob } },
  }
  for (const _ of upTo(COUNT)) await s.ok('run.start', { spec: { steps: [big] } })
  t.equal(await metric('worker_sockets_open'), 1)
  // The worker sends one claim at a time, until the gateway has disconnected it.
  for (let number = 1; (await metric('worker_sockets_open')) > 0; number++) {
    t.ok(number <= COUNT, 'fewer jobs than exist fill the buffer')
    deaf.send({ type: 'jobs.claim', message_id: `claim_${number}`, available_slots: 1 })
    await until(
      async () => [
        Number(listOf(await s.ok('worker.list'))[0]?.['leased']),
        await metric('worker_sockets_open'),
      ],
      ([claimed = 0, open]) => claimed >= number || open === 0,
    )
  }
  const other = await s.worker(action)
  const job = await other.job()
  t.match(job, { action_name: 'big.one' })
  t.match(await other.report(job), { duplicate: false })
  deaf.socket.resume()
  t.match(await deaf.closed, { code: 1006 }, 'the socket closes without a close frame')
  const read = deaf.frames.filter(({ type }) => type === 'jobs.claimed').length
  t.ok(read * blob.length < KERNEL + 17 * MIB, `the gateway buffered little: ${read} jobs in all`)
  other.close()
})
