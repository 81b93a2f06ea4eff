/** Following a timeline over a real stream that breaks, repeats events, falls silent, and ends. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type Client, client } from '../../client/client.ts'
import { BatonError } from '../../client/errors.ts'
import {
  type FollowOptions,
  followChannel,
  followLogs,
  followRun,
  timeline,
} from '../../client/follow.ts'
import { followStreams } from '../../client/streams/follow.ts'
import { followTranscript } from '../../client/transcript.ts'
import type { RunEventRecord } from '../../protocol/runs/schema.ts'

const run = 'run_1'
const record = (sequence: number, event_type: string): RunEventRecord => ({
  id: `${run}:evt:${sequence}`,
  run_id: run,
  sequence,
  event_type,
  created_at: '2031-02-03T04:05:06.000Z',
})
const frame = (event: RunEventRecord): string =>
  `data: ${JSON.stringify(event)}\nevent: ${event.event_type}\nid: ${event.sequence}\n\n`
const story = [
  record(1000, 'run.started'),
  record(1001, 'step.started'),
  record(2000, 'step.completed'),
  record(2001, 'run.completed'),
]

/**
 * Starts a service with one run. `stream` answers the n-th stream request with the events after
 * cursor `after`.
 */
async function service(
  t: Test,
  stream: (answer: ServerResponse, after: number, n: number) => void,
  all: readonly RunEventRecord[] = story,
) {
  const cursors: (number | undefined)[] = []
  let status = 'running'
  const handle = (request: IncomingMessage, answer: ServerResponse): void => {
    const url = new URL(request.url ?? '', 'http://x')
    const after = url.searchParams.get('after_sequence')
    if (url.pathname.endsWith(`/projects/default/runs/${run}`))
      return void answer.end(JSON.stringify({ id: run, status }))
    if (url.pathname.startsWith('/v1/projects/'))
      return void answer.writeHead(404).end('{"error":{"code":"not_found","message":"No run."}}')
    if (!/text\/event-stream/.test(request.headers.accept ?? '')) {
      const limit = Number(url.searchParams.get('limit'))
      const items = all.filter(({ sequence }) => sequence > Number(after))
      return void answer.end(
        JSON.stringify({ items: items.slice(0, limit), has_more: items.length > limit }),
      )
    }
    cursors.push(after === null ? undefined : Number(after))
    stream(answer, Number(after ?? 0), cursors.length)
  }
  const server = createServer(handle)
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(
    () =>
      new Promise<void>((done) => {
        server.closeAllConnections()
        server.close(() => done())
      }),
  )
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const end = () => {
    status = 'completed'
  }
  return { url, cursors, end }
}
const open = (answer: ServerResponse) =>
  answer.writeHead(200, { 'content-type': 'text/event-stream' }).write(': keepalive\n\n')
const pause = () => Promise.resolve()
async function follow(
  url: string | readonly string[],
  options: FollowOptions = {},
): Promise<number[]> {
  const seen: number[] = []
  for await (const { id } of followRun(client({ url, key: 'k', pause }), run, options))
    seen.push(id ?? -1)
  return seen
}

t.test('yields every event once, in order, and ends with the run', async (t) => {
  const { url, cursors, end } = await service(t, (answer) => {
    open(answer)
    for (const event of story) answer.write(frame(event))
    end()
    answer.end()
  })
  t.strictSame(await follow(url), [1000, 1001, 2000, 2001])
  t.strictSame(cursors, [undefined])
})

t.test('follows a run of another project to its end', async (t) => {
  const { url } = await service(t, (answer) => {
    open(answer)
    answer.end(story.map(frame).join(''))
  })
  const other = client({ url, key: 'k', pause, project: 'other' })
  const types: string[] = []
  for await (const { type } of followRun(other, run)) types.push(type)
  t.strictSame(types.at(-1), 'run.completed')
  t.equal(types.length, story.length)
})

t.test('continues after the last received event when the connection breaks', async (t) => {
  const { url, cursors, end } = await service(t, (answer, after, n) => {
    open(answer)
    const [next] = story.filter(({ sequence }) => sequence > after)
    if (next) answer.write(frame(next))
    if (n === story.length) {
      end()
      answer.end()
    } else setImmediate(() => answer.destroy())
  })
  const reasons: string[] = []
  t.strictSame(
    await follow(url, { onReconnect: (reason) => reasons.push(reason) }),
    [1000, 1001, 2000, 2001],
  )
  t.strictSame(cursors, [undefined, 1000, 1001, 2000])
  t.equal(reasons.length, 3)
})

t.test('starts after a cursor; repeated events are omitted and reported', async (t) => {
  const { url, cursors, end } = await service(t, (answer) => {
    open(answer)
    for (const event of story) answer.write(frame(event))
    end()
    answer.end()
  })
  const repeats: number[] = []
  t.strictSame(await follow(url, { after: 1001, onRepeat: (id) => repeats.push(id) }), [2000, 2001])
  t.strictSame(cursors, [1001])
  t.strictSame(repeats, [1000, 1001])
})

t.test(
  'a stream that ends early is reopened; one that ends with nothing left ends the iteration',
  async (t) => {
    const { url, cursors, end } = await service(t, (answer, _, n) => {
      open(answer)
      if (n === 1) return answer.end(frame(story[0] as RunEventRecord))
      end()
      return answer.end(n === 2 ? story.slice(1).map(frame).join('') : '')
    })
    t.strictSame(await follow(url), [1000, 1001, 2000, 2001])
    t.strictSame(await follow(url, { after: 2001 }), [], 'also for a run that had ended before')
    t.strictSame(cursors, [undefined, 1000, 2001])
  },
)

t.test('a failed run that was retried is followed beyond its failure', async (t) => {
  const failed = [
    record(1000, 'run.failed'),
    record(2000, 'run.resumed'),
    record(3000, 'run.completed'),
  ]
  const { url, end } = await service(
    t,
    (answer, after) => {
      open(answer)
      const [next] = failed.filter(({ sequence }) => sequence > after)
      if (next?.event_type === 'run.completed') end()
      answer.end(next ? frame(next) : '')
    },
    failed,
  )
  t.strictSame(await follow(url), [1000, 2000, 3000])
})

t.test('tries the next address if one does not answer or is unavailable', async (t) => {
  const well = await service(t, (answer) => {
    open(answer)
    end()
    answer.end(story.map(frame).join(''))
  })
  const { end } = well
  const unwell = await service(t, (answer) => answer.writeHead(503).end())
  t.strictSame(await follow(['http://127.0.0.1:9', unwell.url, well.url]), [1000, 1001, 2000, 2001])
  t.equal(unwell.cursors.length, 1)
})

t.test('a refusal is an error with the message of the service', async (t) => {
  const { url } = await service(t, (answer) =>
    answer
      .writeHead(404)
      .end('{"error":{"code":"not_found","message":"There is no such record."}}'),
  )
  await t.rejects(follow(url), new BatonError(404, 'not_found', 'There is no such record.'))
})

t.test('a silent stream is reopened', async (t) => {
  const { url, cursors, end } = await service(t, (answer, _, n) => {
    open(answer)
    if (n === 1) return void answer.write(frame(story[0] as RunEventRecord))
    end()
    return answer.end(story.slice(1).map(frame).join(''))
  })
  const reasons: string[] = []
  t.strictSame(
    await follow(url, { silence: 60, onReconnect: (reason) => reasons.push(reason) }),
    [1000, 1001, 2000, 2001],
  )
  // On a busy machine, the second stream may also be silent for too long. The client then repeats
  // the second request, so repeated cursors are ignored.
  t.strictSame([...new Set(cursors)], [undefined, 1000])
  t.match(reasons[0], /no data received/)
})

t.test('stops when it is aborted', async (t) => {
  const { url } = await service(t, (answer) => {
    open(answer)
    answer.write(frame(story[0] as RunEventRecord))
  })
  const stop = new AbortController()
  const seen: number[] = []
  for await (const { id } of followRun(client({ url, key: 'k' }), run, { signal: stop.signal })) {
    seen.push(id ?? -1)
    stop.abort()
  }
  t.strictSame(seen, [1000])
})

t.test('an abort ends the check for the end, and a pause', async (t) => {
  const never = new Promise<never>(() => {})
  const isStream = (init?: RequestInit) =>
    new Headers(init?.headers).get('accept') === 'text/event-stream'
  const ended = () =>
    new Response(': keepalive\n\n', { headers: { 'content-type': 'text/event-stream' } })

  const checked = (follow: (baton: Client, signal: AbortSignal) => AsyncGenerator<unknown>) => {
    const stop = new AbortController()
    const baton = client({
      url: 'http://a.test',
      key: 'k',
      fetch: async (_, init) => {
        if (isStream(init)) return ended()
        setImmediate(() => stop.abort())
        return never
      },
    })
    return follow(baton, stop.signal).next()
  }
  const done = { done: true, value: undefined }
  t.strictSame(await checked((baton, signal) => followRun(baton, run, { signal })), done)
  t.strictSame(await checked((baton, signal) => followLogs(baton, run, {}, { signal })), done)
  t.strictSame(await checked((baton, signal) => followChannel(baton, 'c', { signal })), done)

  const stop = () => {
    const controller = new AbortController()
    const pause = () => {
      setImmediate(() => controller.abort())
      return never
    }
    const fetch = async () => {
      throw new TypeError('fetch failed')
    }
    return { url: 'http://a.test', key: 'k', signal: controller.signal, pause, fetch }
  }
  const [a, b, c] = [stop(), stop(), stop()]
  t.strictSame(await followRun(client(a), run, { signal: a.signal }).next(), done)
  t.strictSame(await followStreams(client(b), [{ id: 'a', topic: 'runs' }], b).next(), done)
  t.strictSame(await followTranscript({ ...c, session_id: 's' }).next(), done)
})

t.test('a stream is requested again after the wait that the service requests', async (t) => {
  const limited = async () =>
    new Response('{"error":{"code":"rate_limit_exceeded","message":"Too many requests."}}', {
      status: 429,
      headers: { 'retry-after': '20' },
    })
  const waitOf = async (
    follow: (options: {
      readonly url: string
      readonly key: string
      readonly fetch: typeof fetch
      readonly signal: AbortSignal
      readonly pause: (ms: number) => Promise<void>
    }) => AsyncGenerator<unknown>,
  ) => {
    const stop = new AbortController()
    let waited = 0
    const pause = async (ms: number) => {
      waited = ms
      stop.abort()
    }
    await follow({
      url: 'http://a.test',
      key: 'k',
      fetch: limited,
      signal: stop.signal,
      pause,
    }).next()
    return waited
  }
  for (const wait of [
    await waitOf((options) => followRun(client(options), run, options)),
    await waitOf((options) =>
      followStreams(client(options), [{ id: 'a', topic: 'runs' }], options),
    ),
    await waitOf((options) => followTranscript({ ...options, session_id: 's' })),
  ])
    t.ok(wait >= 20_000 && wait <= 25_000, String(wait))
})

t.test('the timeline is read in pages', async (t) => {
  const many = Array.from({ length: 250 }, (_, index) => record(1000 + index, 'step.retried'))
  const { url } = await service(t, () => {}, many)
  t.strictSame(
    (await timeline(client({ url, key: 'k' }), run)).map(({ sequence }) => sequence),
    many.map(({ sequence }) => sequence),
  )
})
