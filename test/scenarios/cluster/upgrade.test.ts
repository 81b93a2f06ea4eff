/**
 * Every node is replaced in turn under load: no request fails, no stream loses an event, and no job
 * loses its lease.
 */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import t from 'tap'
import { Worker } from '../../../client/worker.ts'
import { portsFor, processes } from '../support/processes.ts'
import { balancer } from '../support/servers/balancer.ts'

type Json = Readonly<Record<string, unknown>>
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))
const spec = {
  steps: ['first', 'second'].map((id) => ({
    id,
    kind: 'action',
    config: { action_name: 'work', parameters: { n: '${{ input.n }}' } },
  })),
}
const ROLES = 'gateway,shards,views,executor'

t.setTimeout(200_000)
t.test(
  'nodes are replaced one at a time behind a load balancer without a failed request',
  { timeout: 200_000 },
  async (t) => {
    const began = performance.now()
    const at = (what: string): void => {
      t.comment(`${((performance.now() - began) / 1000).toFixed(1)} s: ${what}`)
    }
    // Longer than the 4 s for which `fetch` keeps an unused connection: a request on a connection
    // that the gateway closes at the same time would fail.
    const it = await processes({ BATON_DRAIN: '6' })
    const front = await balancer(100)
    t.teardown(() => {
      front.stop()
      return it.stop()
    })
    const until = async (what: string, holds: () => boolean): Promise<void> => {
      for (const end = Date.now() + 30_000; !holds(); await pause(10))
        if (Date.now() > end) throw new Error(`${what} did not come true`)
    }
    const ports = await portsFor(4)
    const start = async (i: number) => {
      const port = ports[i] as number
      const node = await it.node(`node-${i % 2}`, ROLES, port)
      front.add(port)
      await until(`node ${i} is ready`, () => front.ready().includes(port))
      return { ...node, port }
    }
    const nodes = await Promise.all([start(0), start(1)])
    at('two nodes run')

    const failures: string[] = []
    const headers = { authorization: `Bearer ${it.key}` }
    /**
     * Sends one request without a retry. Anything but a successful response is recorded as a
     * failure.
     */
    async function call(method: string, path: string, body?: Json): Promise<Json> {
      try {
        const answer = await fetch(`${front.url}/v1${path}`, {
          method,
          headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
          ...(body && { body: JSON.stringify(body) }),
        })
        const text = await answer.text()
        if (!answer.ok) failures.push(`${method} ${path}: ${answer.status} ${text}`)
        return JSON.parse(text) as Json
      } catch (error) {
        failures.push(`${method} ${path}: ${String((error as Error).cause ?? error)}`)
        return {}
      }
    }
    let working = true
    let streams = 0
    let hints = 0
    /**
     * Follows a stream over any number of connections, each of which must end at a frame boundary.
     * A gateway that is about to stop may answer 503 with `Retry-After`. Returns the ids of the
     * frames.
     */
    async function follow(
      path: string,
      end: (event: string, id: string) => boolean,
    ): Promise<string[]> {
      const given: string[] = []
      for (;;) {
        try {
          const answer = await fetch(`${front.url}/v1${path}`, {
            headers: {
              ...headers,
              accept: 'text/event-stream',
              ...(given.length > 0 && { 'last-event-id': given.at(-1) as string }),
            },
          })
          if (answer.status === 503 && /^\d+$/.test(answer.headers.get('retry-after') ?? '')) {
            await answer.text()
            await pause(50)
            continue
          }
          streams++
          if (!answer.ok || !answer.body) throw new Error(`answered ${answer.status}`)
          let text = ''
          const [seen, frames] = answer.body.pipeThrough(new TextDecoderStream()).tee()
          const tail = (async () => {
            for await (const part of seen) text = (text + part).slice(-200)
          })()
          // After the last frame, the connection may be cut anywhere.
          tail.catch(() => {})
          for await (const { id, event = '' } of frames.pipeThrough(
            new EventSourceParserStream(),
          ) as unknown as AsyncIterable<{ id?: string; event?: string }>) {
            if (id === undefined) continue
            given.push(id)
            if (end(event, id)) return given
          }
          await tail
          if (!text.endsWith('\n\n'))
            failures.push(`${path} ended within a frame: ${JSON.stringify(text.slice(-80))}`)
          if (/\nretry: \d+\n\n$/.test(text)) hints++
        } catch (error) {
          failures.push(`${path}: ${String((error as Error).cause ?? error)}`)
          if (failures.length > 50) return given
        }
        await pause(50)
      }
    }

    const performed: unknown[] = []
    const lost: string[] = []
    const worker = new Worker({
      url: front.url,
      key: it.key,
      concurrency: 8,
      onJob: ({ type, job }) => {
        if (type === 'lost' || type === 'failed') lost.push(`${type} ${job.id}`)
      },
      actions: {
        work: async ({ n }) => {
          await pause(Number(n) % 16 === 0 ? 2000 : 20)
          performed.push(n)
          return { n }
        },
      },
    })
    await worker.start()

    const runs: string[] = []
    const timelines = new Map<string, Promise<string[]>>()
    let next = 0
    const load = Promise.all([
      ...[0, 1, 2].map(async () => {
        while (working) {
          const n = next++
          const run = await call('POST', '/projects/default/runs', { spec, input: { n } })
          const id = String(run['id'])
          runs.push(id)
          if (n % 8 === 0)
            timelines.set(
              id,
              follow(`/runs/${id}/events`, (event) => event === 'run.completed'),
            )
          await pause(250)
        }
      }),
      ...[0, 1].map(async (k) => {
        while (working) {
          await call(
            'GET',
            k === 0 || runs.length === 0
              ? '/projects/default/runs?limit=20'
              : `/projects/default/runs/${runs.at(-1) ?? ''}`,
          )
          await pause(150)
        }
      }),
    ])
    let last = ''
    await until('the load runs', () => runs.length >= 20)
    const feed = follow(
      '/projects/default/runs/events?since=0',
      (_, id) => last !== '' && Number(id) >= Number(last),
    )
    for (const [i, node] of nodes.entries()) {
      t.equal(await node.stop(), '0', 'the node stops with exit code 0')
      front.remove(node.port)
      at(`node ${i} has left`)
      await start(i + 2)
      at(`node ${i} is replaced`)
      const now = runs.length
      await until('the load goes on', () => runs.length >= now + 10)
    }
    working = false
    await load
    at(`${runs.length} runs were started`)
    for (const [id, given] of timelines) {
      const events = await given
      const page = (await call('GET', `/runs/${id}/events?limit=200`))['items'] as
        | { sequence: number }[]
        | undefined
      t.strictSame(
        events,
        (page ?? []).map(({ sequence }) => String(sequence)),
        'the followed timeline equals the stored one',
      )
    }
    for (const id of runs) {
      let run = await call('GET', `/projects/default/runs/${id}`)
      for (let look = 0; look < 300 && run['status'] !== 'completed'; look++) {
        await pause(50)
        run = await call('GET', `/projects/default/runs/${id}`)
      }
      if (run['status'] !== 'completed')
        t.fail(
          `run ${id} is ${JSON.stringify(run)} with the jobs ` +
            JSON.stringify(await call('GET', `/projects/default/runs/${id}/jobs`)),
        )
    }
    const marker = await call('POST', '/projects/default/runs', {
      spec: { steps: [{ kind: 'sleep', config: { duration: '0' } }] },
    })
    last = String(
      (
        (await call('GET', `/runs/${String(marker['id'])}/events?limit=200`))['items'] as {
          sequence: number
        }[]
      ).at(-1)?.sequence,
    )
    // The stream may already have passed the event `last`. An event of this later run then ends the
    // wait.
    await call('POST', '/projects/default/runs', {
      spec: { steps: [{ kind: 'sleep', config: { duration: '0' } }] },
    })
    const followed = await feed
    const told = await follow(
      '/projects/default/runs/events?since=0',
      (_, id) => Number(id) >= Number(last),
    )
    t.strictSame(
      followed.slice(0, told.length),
      told,
      'the project stream has no gaps and no repeats',
    )
    t.strictSame(failures, [], 'no request failed')
    t.strictSame(front.faults, [], 'no connection was rejected')
    t.strictSame(lost, [], 'no job was lost or failed')
    t.equal(performed.length, runs.length * 2, 'every job was executed once')
    t.ok(hints > 0, `streams end with a hint when to return (${hints} of ${streams})`)
    await worker.stop()
    at('done')
  },
)
