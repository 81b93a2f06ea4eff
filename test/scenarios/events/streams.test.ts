/**
 * Event streams of runs and of a project over HTTP: replay, cursors, live events, stalled clients
 * and restarts.
 */
import { request } from 'node:http'
import t from 'tap'
import { type Frame, service } from '../../support/service.ts'
import { acting, ended, instant, listOf, sleeping, until, waiting } from '../support/given.ts'

const s = await service({ BATON_KEEPALIVE: '1s' })
t.teardown(() => s.stop())
const start = async (spec: unknown) => String((await s.ok('run.start', { spec }))['id'])
/**
 * Reads a run's whole timeline. It may take several pages, because the size of a page is limited to
 * about one megabyte.
 */
const whole = async (id: string) => {
  const items: ReturnType<typeof listOf> = []
  for (let after_sequence = 0, more = true; more; ) {
    const page = await s.ok('run.events', { id, limit: 200, after_sequence })
    items.push(...listOf(page))
    after_sequence = Number(page['next_sequence'])
    more = page['has_more'] === true
  }
  return items
}
const never = () => false
const sequences = (frames: readonly Frame[]) => frames.map(({ id }) => Number(id))

t.test('the stream of an ended run replays it under every path, and ends', async (t) => {
  const id = await start(instant())
  const records = await whole(id)
  const frames = await s.follow('run.events', { id }, never)
  t.strictSame(
    frames.map(({ data }) => data),
    records,
  )
  t.strictSame(
    frames.map(({ id: cursor, event }) => ({ cursor, event })),
    records.map((record) => ({ cursor: String(record['sequence']), event: record['event_type'] })),
  )
  t.strictSame(await s.follow('run.project_events', { id }, never), frames)
  t.strictSame(
    await s.follow('run.events_stream', { id }, never, { headers: { accept: '*/*' } }),
    frames,
    'without an Accept header',
  )
  const json = await s.raw('GET', `/v1/runs/${id}/events`, {
    headers: { 'last-event-id': frames[1]?.id ?? '' },
  })
  t.match(json.headers.get('content-type'), /^application\/json/)
  t.equal(listOf(json.body).length, frames.length, 'a JSON page ignores Last-Event-ID')
})

t.test('a stream continues after a cursor; of two cursors the larger one counts', async (t) => {
  const id = await start(instant())
  const all = await s.follow('run.events', { id }, never)
  const at = (index: number) => Number(all[index]?.id)
  const lastId = (index: number) => ({ headers: { 'last-event-id': String(at(index)) } })
  t.strictSame(await s.follow('run.events', { id, after_sequence: at(1) }, never), all.slice(2))
  t.strictSame(await s.follow('run.events', { id }, never, lastId(2)), all.slice(3))
  t.strictSame(
    await s.follow('run.events', { id, after_sequence: at(0) }, never, lastId(2)),
    all.slice(3),
  )
  t.strictSame(
    await s.follow('run.events_stream', { id, after_sequence: at(2) }, never, lastId(0)),
    all.slice(3),
  )
  t.strictSame(await s.follow('run.events', { id, after_sequence: at(3) }, never), [])
  const odd = await s.raw('GET', `/v1/runs/${id}/events`, {
    headers: { accept: 'text/event-stream', 'last-event-id': 'tomorrow' },
  })
  t.equal(odd.status, 400)
  t.match(odd.body, { error: { details: { fields: [{ field: 'Last-Event-ID' }] } } })
  const none = await s.raw('GET', `/v1/runs/${id.slice(0, -6)}ZZZZ00/events`, {
    headers: { accept: 'text/event-stream' },
  })
  t.match([none.status, none.body], [404, { error: { code: 'not_found' } }])
})

t.test(
  'new events follow the replayed ones in an open stream, without loss or repetition',
  async (t) => {
    const id = await start({
      steps: Array.from({ length: 12 }, (_, n) => ({
        id: `s${n}`,
        kind: 'wait_for_event',
        config: { event_type: 'signal.next' },
      })),
    })
    const open = Array.from({ length: 5 }, () => s.follow('run.events', { id }, never))
    for (let n = 0; n < 12; n++) {
      await s.ok('run.signal', { id, name: 'next', payload: { n } })
      if (n % 3 === 0) open.push(s.follow('run.events', { id }, never))
    }
    const records = await whole(id)
    for (const frames of await Promise.all(open))
      t.strictSame(
        frames.map(({ data }) => data),
        records,
      )
  },
)

t.test('the stream of a retried run continues to its second end', async (t) => {
  const worker = await s.worker({ action_names: ['again'] })
  t.teardown(() => worker.close())
  const id = await start(acting('again'))
  await worker.report(await worker.job(), { status: 'failed' })
  const first = await s.follow('run.events', { id }, never)
  t.equal(first.at(-1)?.event, 'run.failed')
  await s.ok('run.retry', { id })
  const rest = s.follow('run.events', { id, after_sequence: Number(first.at(-1)?.id) }, never)
  await worker.report(await worker.job())
  t.equal((await rest).at(-1)?.event, 'run.completed')
})

t.test('a quiet stream sends keepalive comments', async (t) => {
  const id = await start(sleeping())
  const streams = [
    [`/v1/runs/${id}/events`, ': keepalive\n\n'],
    ['/v1/projects/default/runs/events', ':keepalive\n\n'],
  ] as const
  await Promise.all(
    streams.map(async ([path, comment]) => {
      const count = (await readFor(path, 2300)).split(comment).length - 1
      t.ok(count >= 2, `${count} comments`)
    }),
  )
})

const readFor = (path: string, ms: number): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ''
    const req = request(
      `${s.url}${path}`,
      { headers: { authorization: `Bearer ${s.key}`, accept: 'text/event-stream' } },
      (res) =>
        res
          .setEncoding('utf8')
          .on('data', (part: string) => (text += part))
          .on('error', () => {}),
    )
    req.on('error', reject).end()
    setTimeout(() => {
      req
        .off('error', reject)
        .on('error', () => {})
        .destroy()
      resolve(text)
    }, ms)
  })

t.test('the project feed contains every run, live or from a cursor', async (t) => {
  const worker = await s.worker({ action_names: ['fed'] })
  t.teardown(() => worker.close())
  const old = await start(instant())
  const live = s.follow(
    'run.feed',
    {},
    ({ data }) =>
      data['type'] === 'run_updated' && (data['data'] as { status: string }).status === 'completed',
  )
  await new Promise((resolve) => setTimeout(resolve, 150))
  const id = await start(acting('fed'))
  await worker.report(await worker.job(), { result: { n: 1 } })
  const frames = await live
  t.ok(
    frames.every(({ data }) => data['run_id'] === id),
    'no frames of earlier runs',
  )
  t.ok(
    frames.every(
      ({ id: cursor, event, data }) =>
        cursor === String(data['seq']) &&
        event === data['type'] &&
        /Z$/.test(String(data['timestamp'])),
    ),
  )
  const told = frames.map(
    ({ data }) => `${String(data['type'])} ${String((data['data'] as { status?: string }).status)}`,
  )
  for (const expected of [
    'run_updated running',
    'run_updated suspended',
    'job_updated queued',
    'job_updated claimed',
    'job_updated completed',
    'action_appended called',
    'action_appended completed',
    'run_updated completed',
  ])
    t.ok(told.includes(expected), expected)
  t.match(frames.find(({ event }) => event === 'job_updated')?.data['data'], {
    job_id: /^job_/,
    status: 'queued',
    step_key: 'call',
    claim_attempt: 0,
  })
  t.match(frames.find(({ event }) => event === 'action_appended')?.data['data'], {
    run_id: id,
    action_name: 'fed',
    status: 'called',
  })
  t.strictSame(
    sequences(frames),
    [...sequences(frames)].sort((a, b) => a - b),
  )

  const last = frames.at(-1)?.id
  const replay = await s.follow('run.feed', { since: 0 }, ({ id: cursor }) => cursor === last)
  t.ok(
    replay.some(({ data }) => data['run_id'] === old),
    'from the beginning',
  )
  t.strictSame(replay.slice(-frames.length), frames, 'the same frames again')
  const middle = Number(frames[2]?.id)
  const after = frames.filter(({ id: cursor }) => Number(cursor) > middle)
  t.strictSame(
    await s.follow('run.feed', { since: middle }, ({ id: cursor }) => cursor === last),
    after,
  )
  t.strictSame(
    await s.follow('run.feed', {}, ({ id: cursor }) => cursor === last, {
      headers: { 'last-event-id': String(middle) },
    }),
    after,
  )
})

t.test(
  'the gateway does not buffer for a stalled client, which loses nothing when it reads again',
  async (t) => {
    const fallbacks = async () =>
      Number(
        /^baton_stream_fallbacks_total (\d+)$/m.exec((await s.raw('GET', '/metrics')).text)?.[1],
      )
    const id = await start({
      steps: Array.from({ length: 40 }, (_, n) => ({
        id: `s${n}`,
        kind: 'wait_for_event',
        config: { event_type: 'signal.next' },
      })),
    })
    const slow = await stalled(`/v1/runs/${id}/events`)
    const before = await fallbacks()
    const payload = { text: 'x'.repeat(100_000) }
    for (let n = 0; n < 40; n++) await s.ok('run.signal', { id, name: 'next', payload })
    const text = await slow.read()
    const got = [...text.matchAll(/^id: (\d+)$/gm)].map(([, cursor]) => Number(cursor))
    const all = await s.follow('run.events', { id }, never)
    t.strictSame(got, sequences(all), `${all.length} events, ${Math.round(text.length / 1e6)} MB`)
    t.ok((await fallbacks()) > before, 'the follower left the live feed')
  },
)

t.test('an open stream receives an event above the size limit of messages whole', async (t) => {
  const id = await start({ ...waiting('big'), output: { small: true } })
  const open = s.follow('run.events', { id }, never)
  await new Promise((resolve) => setTimeout(resolve, 100))
  const text = 'x'.repeat(600_000)
  await s.ok('run.signal', { id, name: 'big', payload: { text } })
  const frames = await open
  t.strictSame(
    frames.map(({ data }) => data),
    await whole(id),
  )
  t.match(frames.find(({ event }) => event === 'wait.resumed')?.data, {
    payload: { payload: { event: { payload: { text } } } },
  })
})

/** Opens a stream whose client reads nothing until `read` is called. */
function stalled(path: string): Promise<{ read(): Promise<string> }> {
  return new Promise((resolve, reject) => {
    request(
      `${s.url}${path}`,
      { headers: { authorization: `Bearer ${s.key}`, accept: 'text/event-stream' } },
      (res) => {
        res.pause()
        resolve({
          read: () =>
            new Promise((done, failed) => {
              const parts: Buffer[] = []
              res
                .on('data', (part: Buffer) => parts.push(part))
                .on('end', () => done(Buffer.concat(parts).toString()))
                .on('error', failed)
                .resume()
            }),
        })
      },
    )
      .on('error', reject)
      .end()
  })
}

t.test('a stream continues after a restart of the node, from its last cursor', async (t) => {
  const id = await start(waiting())
  const before = await s.follow('run.events', { id }, ({ event }) => event === 'run.suspended')
  await s.restart()
  const rest = s.follow('run.events', { id, after_sequence: Number(before.at(-1)?.id) }, never)
  await s.ok('run.signal', { id, name: 'go' })
  await ended(s, id)
  t.strictSame(
    [...before, ...(await rest)].map(({ data }) => data),
    await whole(id),
  )
  await until(
    () => s.raw('GET', '/readyz'),
    ({ status }) => status === 200,
  )
})
