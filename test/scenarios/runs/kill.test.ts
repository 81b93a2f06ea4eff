/**
 * No acknowledged run is lost, and every run completes exactly once, whichever process is killed.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import t from 'tap'
import { Worker } from '../../../client/worker.ts'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

type Json = Readonly<Record<string, unknown>>
interface Event {
  readonly id: string
  readonly event_type: string
  readonly sequence: number
}
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))
const TOTAL = 96
const spec = {
  steps: ['first', 'second'].map((id) => ({
    id,
    kind: 'action',
    retry: { max_attempts: 10 },
    config: { action_name: 'work', parameters: { n: '${{ input.n }}' } },
  })),
}

t.setTimeout(100_000)
t.test('runs complete once while processes are killed', { timeout: 100_000 }, async (t) => {
  const started = performance.now()
  const at = (what: string): void => {
    t.comment(`${((performance.now() - started) / 1000).toFixed(1)} s: ${what}`)
  }
  const it = await processes(hasty)
  t.teardown(() => it.stop())
  const ports = await portsFor(2)
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  const [doomed] = await Promise.all([it.node('shards-a', 'shards'), it.node('shards-b', 'shards')])
  const [views, gateway] = await Promise.all([
    it.node('views', 'views'),
    ...ports.map((port, i) => it.node(`gateway-${i}`, 'gateway', port)),
  ])
  if (!doomed || !views || !gateway) throw new Error('the nodes did not start')
  at('everything runs')

  /**
   * Sends the same request to the gateways in turn, until one responds with neither a server error
   * nor 429.
   */
  async function call(
    method: string,
    path: string,
    body?: Json,
  ): Promise<{ status: number; body: Json }> {
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await fetch(`${urls[attempt % 2]}/v1${path}`, {
          method,
          headers: {
            authorization: `Bearer ${it.key}`,
            ...(body && { 'content-type': 'application/json' }),
          },
          ...(body && { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(20_000),
        })
        const text = await answer.text()
        if (answer.status < 500 && answer.status !== 429)
          return { status: answer.status, body: JSON.parse(text) as Json }
      } catch (error) {
        if (attempt > 400) throw error
      }
      await pause(50)
    }
  }
  /**
   * Starts a run with an idempotency key and returns its id. If the run of this key has already
   * ended, the id is in the details of the error.
   */
  async function start(n: number): Promise<string> {
    const { status, body } = await call('POST', '/projects/default/runs', {
      spec,
      input: { n },
      idempotency_key: `start-${n}`,
    })
    const ended = (body['error'] as { details?: { run_id?: string } } | undefined)?.details?.run_id
    if (status !== 202 && ended === undefined)
      throw new Error(`start ${n} was answered ${status}: ${JSON.stringify(body)}`)
    return ended ?? String(body['id'])
  }
  /**
   * Follows a run to its end, over a new connection whenever one breaks. Returns the ids of all
   * received events in order.
   */
  async function follow(id: string): Promise<string[]> {
    const given: string[] = []
    let cursor = ''
    for (let attempt = 0; attempt < 400; attempt++) {
      try {
        const answer = await fetch(`${urls[(attempt + 1) % 2]}/v1/runs/${id}/events`, {
          headers: {
            authorization: `Bearer ${it.key}`,
            accept: 'text/event-stream',
            ...(cursor !== '' && { 'last-event-id': cursor }),
          },
        })
        if (answer.ok && answer.body) {
          for await (const frame of answer.body
            .pipeThrough(new TextDecoderStream())
            .pipeThrough(new EventSourceParserStream()) as unknown as AsyncIterable<{
            id?: string
            event?: string
            data: string
          }>) {
            if (frame.id === undefined) continue
            cursor = frame.id
            given.push((JSON.parse(frame.data) as Event).id)
            if (frame.event === 'run.completed' || frame.event === 'run.failed') return given
          }
        }
      } catch {
        // The connection broke. The next connection continues after the cursor.
      }
      await pause(100)
    }
    throw new Error(`run ${id} was not followed to its end: ${given.join(' ')}`)
  }

  const performed: unknown[] = []
  const worker = new Worker({
    url: urls,
    key: it.key,
    concurrency: 8,
    actions: {
      work: async ({ n }) => {
        performed.push(n)
        await pause(30)
        return { n }
      },
    },
  })
  await worker.start()

  const acknowledged = new Map<string, string>()
  const followers = new Map<string, Promise<string[]>>()
  let next = 0
  let allowed = TOTAL / 4
  const load = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (next < TOTAL) {
        const n = next++
        while (n >= allowed) await pause(10)
        const id = await start(n)
        acknowledged.set(`start-${n}`, id)
        if (n % 8 === 0) followers.set(id, follow(id))
      }
    }),
  )
  /**
   * Allows the load to issue another quarter of its starts, and waits until half of that quarter is
   * acknowledged. Therefore, starts are still in flight when the function returns.
   */
  const quarter = async (index: number): Promise<void> => {
    allowed = (TOTAL * (index + 1)) / 4
    while (acknowledged.size < (TOTAL * (2 * index + 1)) / 8) await pause(5)
  }

  await quarter(0)
  await doomed.kill()
  at('a shard node was killed')
  await quarter(1)
  await gateway.kill()
  at('a gateway was killed')
  await quarter(2)
  await views.kill()
  at('the view node was killed')
  await Promise.all([
    it.node('views-again', 'views'),
    it.node('gateway-again', 'gateway', ports[0]),
  ])
  at('view node and gateway run again')
  await quarter(3)
  await it.nats.kill()
  at('the NATS server was killed')
  await it.nats.restart()
  at('the NATS server runs again')
  await load
  at('every start was acknowledged')

  t.equal(new Set(acknowledged.values()).size, TOTAL, 'one run for each key')
  const followed = new Map(
    await Promise.all([...followers].map(async ([id, events]) => [id, await events] as const)),
  )
  at('followed runs have ended')
  for (const [key, id] of acknowledged) {
    let run: Json = {}
    for (let look = 0; look < 200 && run['status'] !== 'completed'; look++) {
      run = (await call('GET', `/projects/default/runs/${id}`)).body
      if (run['status'] === 'failed') break
      if (run['status'] !== 'completed') await pause(100)
    }
    const events = (await call('GET', `/runs/${id}/events?limit=200`)).body['items'] as Event[]
    const faults = [
      run['status'] !== 'completed' && `is ${JSON.stringify(run)}`,
      events.filter(({ event_type }) => event_type === 'run.completed').length !== 1 &&
        'was not completed exactly once',
      events.filter(({ event_type }) => event_type === 'step.completed').length !== 2 &&
        'has not completed two steps once',
      events.some((event, i) => i > 0 && event.sequence <= (events[i - 1]?.sequence ?? 0)) &&
        'has a timeline out of order',
      followed.has(id) &&
        JSON.stringify(followed.get(id)) !== JSON.stringify(events.map((event) => event.id)) &&
        'was followed otherwise than told: ' +
          `${followed.get(id)?.join(' ')} / ${events.map((event) => event.id).join(' ')}`,
    ].filter(Boolean)
    if (faults.length > 0) t.fail(`${key}: ${id} ${faults.join('; ')}`)
  }
  at('every run was looked at')
  t.equal(new Set(performed).size, TOTAL, 'the jobs of every run were executed')
  const repeats = await Promise.all(
    [...acknowledged]
      .filter((_, i) => i % 5 === 0)
      .map(async ([key, id]) => {
        const n = Number(key.slice('start-'.length))
        return (await start(n)) === id
      }),
  )
  t.ok(repeats.every(Boolean), 'a repeated start returns the same run')
  const end = await worker.stop()
  t.equal(end.reason, 'stopped')
  at('done')
})
