/** Event streams of runs over real sockets: replay, live events, gaps, slow clients and the end. */
import t, { type Test } from 'tap'
import { timestamp } from '../../../protocol/common.ts'
import type { PlacedEntry } from '../../../protocol/entry.ts'
import { refuse } from '../../../protocol/errors.ts'
import { type RunEvent, timelineRecord } from '../../../protocol/runs/events.ts'
import type { Preview } from '../../../protocol/sessions/transcript/previews.ts'
import { gateway, home, RUN, type TestGateway, until } from '../support/edge-world.ts'

/** Creates the journal of one run, and the view of it that the gateway queries. */
function journal(at: TestGateway) {
  const placed: PlacedEntry[] = []
  const ends = new Set(['run.completed', 'run.failed', 'run.cancelled'])
  at.views['timeline'] = ({ run_id, after, limit }) => {
    const all = placed.flatMap(({ cursor, entry }) =>
      entry.events.map((event, index) => ({
        cursor: cursor + index,
        event: event as RunEvent,
        at: entry.origin.at,
      })),
    )
    const later = all.filter(
      ({ cursor, event }) =>
        cursor > after && event.type !== 'run.created' && !event.type.startsWith('signal.'),
    )
    const items = later
      .slice(0, limit)
      .map(({ cursor, event, at: when }) => timelineRecord(run_id, cursor, timestamp(when), event))
    return {
      items,
      last: all.at(-1)?.cursor ?? 0,
      ended: later.length <= limit && ends.has(all.at(-1)?.event.type ?? ''),
      oldest: 0,
      exists: run_id === RUN,
    }
  }
  return {
    /** Commits an entry. If `heard` is false, its live message is lost. */
    commit(types: readonly string[], { heard = true, payload = {} } = {}): PlacedEntry {
      const before = placed.at(-1)
      const prev = before ? before.cursor + before.entry.events.length - 1 : 0
      const one: PlacedEntry = {
        cursor: (Math.floor(prev / 1000) + 1) * 1000,
        entry: {
          project: home,
          kind: 'run',
          id: RUN,
          command: { id: 'c', name: 'x' },
          origin: { at: Date.UTC(2031, 1, 3), principal: { type: 'system', id: 'system' } },
          events: types.map((type) => ({ type, payload })),
          prev,
        },
      }
      placed.push(one)
      if (heard) at.publish(one)
      return one
    },
  }
}
/** Returns the ids and event types of a stream's frames. */
const frames = (text: string): string[] =>
  text
    .split('\n\n')
    .filter((part) => part.includes('event: '))
    .map((part) => `${/^id: (.*)$/m.exec(part)?.[1] ?? '-'} ${/^event: (.*)$/m.exec(part)?.[1]}`)
const events = `/v1/runs/${RUN}/events`

const on = (
  name: string,
  test: (t: Test, at: TestGateway, run: ReturnType<typeof journal>) => Promise<void>,
) =>
  t.test(name, async (t) => {
    const at = await gateway()
    t.teardown(() => at.server.stop())
    at.views['locate'] = ({ run_id }) => (run_id === RUN ? { project: home } : {})
    await test(t, at, journal(at))
  })

on('generation deltas of a run appear on its own path while it runs', async (t, at, run) => {
  const piece = (n: number): Preview => ({
    session_id: 'ses_1',
    turn_id: 'turn_1',
    message_id: 'm1',
    base: 1,
    born: 1,
    n,
    delta: { text: `piece ${n}` },
    job_id: 'job_1',
    run_id: RUN,
    at: Date.UTC(2031, 1, 3),
    worker_id: 'box',
    sequence: n,
  })
  const say = (n: number) => at.previewed.get(`${home} ${RUN}`)?.([piece(n)])
  run.commit(['run.created', 'run.started'])
  const [stream, other] = [
    await at.stream(events),
    await at.stream(`/v1/projects/default/runs/${RUN}/events.stream`),
  ]
  await until(() => [stream, other].every(({ text }) => frames(text).length === 1))
  t.equal(at.previewed.size, 0, 'without an agent step there is no subscription')
  run.commit(['turn.opened'])
  await until(() => at.previewed.size === 1)
  say(1)
  const late = await at.stream(events, { 'last-event-id': '2000' })
  run.commit(['step.completed'])
  await until(() => frames(late.text).length === 1)
  say(2)
  run.commit(['run.completed'])
  await until(() => [stream, other, late].every(({ ended }) => ended), 'the end')
  t.same(frames(stream.text), [
    '1001 run.started',
    '2000 turn.opened',
    '- generation.delta',
    '3000 step.completed',
    '- generation.delta',
    '4000 run.completed',
  ])
  t.same(frames(other.text), [
    '1001 run.started',
    '2000 turn.opened',
    '3000 step.completed',
    '4000 run.completed',
  ])
  t.same(frames(late.text), ['3000 step.completed', '- generation.delta', '4000 run.completed'])
  const first = stream.text.split('\n\n').find((part) => part.includes('generation.delta')) ?? ''
  t.strictSame(JSON.parse(/^data: (.*)$/m.exec(first)?.[1] ?? ''), {
    event_type: 'generation.delta',
    delta: { text: 'piece 1' },
    run_id: RUN,
    session_id: 'ses_1',
    turn_id: 'turn_1',
    job_id: 'job_1',
    delta_sequence: 1,
    sequence: 1,
    emitted_at: '2031-02-03T00:00:00.000Z',
    worker_id: 'box',
  })
  t.equal(at.previewed.size, 0)
  const back = await at.stream(events, { 'last-event-id': '2000' })
  await until(() => back.ended, 'the end')
})

on('a client that reconnects during a turn receives further deltas', async (_, at, run) => {
  run.commit(['run.created', 'run.started', 'turn.opened'])
  const back = await at.stream(events, { 'last-event-id': '1002' })
  await until(() => at.previewed.size === 1)
  back.close()
  await until(() => at.previewed.size === 0)
})

on('a stream replays, continues live, and ends with the run', async (t, at, run) => {
  run.commit(['run.created', 'run.started'])
  const stream = await at.stream(events)
  t.equal(stream.status, 200)
  t.match(stream.headers, {
    'content-type': 'text/event-stream',
    'cache-control': /no-store/,
    'x-request-id': String,
  })
  await until(() => frames(stream.text).length === 1)
  run.commit(['step.started'])
  run.commit(['signal.stored'])
  run.commit(['step.completed', 'run.completed'], { payload: { status: 'completed' } })
  await until(() => stream.ended, 'the end')
  t.same(frames(stream.text), [
    '1001 run.started',
    '2000 step.started',
    '4000 step.completed',
    '4001 run.completed',
  ])
  const last = stream.text.trim().split('\n\n').at(-1) ?? ''
  t.match(JSON.parse(/^data: (.*)$/m.exec(last)?.[1] ?? ''), {
    id: `${RUN}:evt:4001`,
    run_id: RUN,
    sequence: 4001,
    event_type: 'run.completed',
    payload: { status: 'completed' },
    created_at: '2031-02-03T00:00:00.000Z',
  })
  t.equal(at.counted.get('sse'), 0)
})

on('lost live entries are fetched, repeated ones dropped', async (t, at, run) => {
  const stream = await at.stream(events)
  run.commit(['run.started'], { heard: false })
  const second = run.commit(['step.started'])
  at.publish(second)
  await until(() => frames(stream.text).length === 2)
  at.publish(second)
  run.commit(['step.completed'], { heard: false })
  at.edge.advance(30_000)
  await until(() => frames(stream.text).length === 3, 'a look for lost entries')
  t.same(frames(stream.text), ['1000 run.started', '2000 step.started', '3000 step.completed'])
  stream.close()
})

on(
  'a stream starts after the larger of after_sequence and Last-Event-ID; other paths serve the same',
  async (t, at, run) => {
    for (const type of ['run.started', 'step.started', 'step.completed', 'run.completed'])
      run.commit([type])
    const after = async (path: string, headers = {}) => {
      const stream = await at.stream(path, headers)
      await until(() => stream.ended)
      return frames(stream.text).length
    }
    t.equal(await after(`${events}?after_sequence=1000`), 3)
    t.equal(await after(`${events}?after_sequence=1000`, { 'last-event-id': '3000' }), 1)
    t.equal(
      await after(`/v1/projects/default/runs/${RUN}/events?after_sequence=2000`, {
        'last-event-id': '1000',
      }),
      2,
    )
    t.equal(await after(`/v1/projects/default/runs/${RUN}/events.stream`, { accept: '' }), 4)
    t.match(
      await at.call('GET', events, undefined, {
        accept: 'text/event-stream',
        'last-event-id': 'x',
      }),
      { status: 400, body: { error: { details: { fields: [{ field: 'Last-Event-ID' }] } } } },
    )
    t.match(await at.call('GET', `${events}?after_sequence=-1`), { status: 400 })
    t.match(
      await at.call(
        'GET',
        `/v1/projects/default/runs/${RUN.replace('0C', '0D')}/events`,
        undefined,
        { accept: 'text/event-stream' },
      ),
      { status: 404 },
    )
    t.equal(at.listeners.get(`${home} run ${RUN}`)?.size, 0, 'no subscription is left')
  },
)

on('without a request for an event stream, the timeline is a page of JSON', async (t, at) => {
  at.views['run.events'] = () => ({ items: [], has_more: false })
  t.match(
    await at.call('GET', `${events}?after_sequence=5`, undefined, { 'last-event-id': 'ignored' }),
    { status: 200, body: { items: [], has_more: false } },
  )
  t.match(at.questions.at(-1), {
    name: 'run.events',
    input: { id: RUN, after_sequence: 5, limit: 20 },
  })
})

on('clients of one run share a subscription, and all receive everything', async (t, at, run) => {
  const streams = await Promise.all([1, 2, 3].map(() => at.stream(events)))
  t.equal(at.listeners.get(`${home} run ${RUN}`)?.size, 1)
  run.commit(['run.started'])
  run.commit(['run.failed'])
  await until(() => streams.every(({ ended }) => ended))
  for (const stream of streams) t.same(frames(stream.text), ['1000 run.started', '2000 run.failed'])
})

on('an idle stream is kept alive by comments', async (t, at) => {
  const stream = await at.stream(events)
  at.edge.advance(15_000)
  await until(() => stream.text.split(': keepalive').length === 3)
  t.same(frames(stream.text), [])
  stream.close()
  await until(() => at.counted.get('sse') === 0, 'the client is gone')
})

on(
  'a slow client receives everything once it reads, and the gateway buffers nothing',
  async (t, at, run) => {
    const stream = await at.stream(events)
    stream.pause()
    const payload = { text: 'x'.repeat(100_000) }
    for (let i = 0; i < 150; i++) run.commit(['step.started'], { payload })
    run.commit(['run.completed'])
    await until(() => at.counted.get('stream_fallbacks') === 1, 'the fallback')
    t.ok((at.counted.get('events_sent') ?? 0) < 100)
    stream.resume()
    await until(() => stream.ended, 'the end')
    t.equal(frames(stream.text).length, 151)
    t.equal(new Set(frames(stream.text)).size, 151)
  },
)

on('a stream ends when its key is revoked', async (t, at, run) => {
  const key = at.projectKey(home, 'watcher')
  const stream = await at.stream(events, { authorization: `Bearer ${key.text}` })
  run.commit(['run.started'])
  await until(() => frames(stream.text).length === 1)
  at.change(home, 'principal.create', { name: 'somebody' })
  t.equal((await at.call('DELETE', `/v1/projects/default/api-keys/${key.id}`)).status, 204)
  await until(() => stream.ended, 'the end')
})

on('a stream ends when its key expires', async (t, at, run) => {
  const key = at.projectKey(home, 'brief', {
    expires_at: new Date(at.edge.world.now() + 2000).toISOString(),
  })
  const stream = await at.stream(events, { authorization: `Bearer ${key.text}` })
  run.commit(['run.started'])
  await until(() => frames(stream.text).length === 1)
  at.edge.advance(1900)
  t.notOk(stream.ended)
  at.edge.advance(101)
  await until(() => stream.ended, 'the end')
  t.equal(stream.text.split(': keepalive').length, 2, 'before the next keepalive')
})

const linesOf = (feed: readonly { seq: number; type: string; json: string }[]) =>
  feed.map(({ seq, type, json }) => `${seq} ${type} ${json}\n`).join('')
/** The lines of a stream that carry data of events. */
const dataOf = (text: string) => text.split('\n').filter((line) => line.startsWith('data: {'))

on(
  'the project stream: live only by default, replay after a cursor, frames of one event together',
  async (t, at) => {
    const feed = [
      { seq: 1000, type: 'run_updated' },
      { seq: 2000, type: 'action_appended' },
      { seq: 2000, type: 'job_updated' },
    ].map((one) => ({ ...one, json: `{"text":"two words of ${one.type}\u0085\u2028\u2029"}` }))
    let earlierRelease = false
    const page = (after: number, limit: number) =>
      feed.filter(({ seq }) => seq > after).slice(0, limit)
    at.views['feed'] = ({ after, limit, appended }) => ({
      ...(appended && !earlierRelease
        ? { items: [], appended: linesOf(page(after, limit)) }
        : { items: page(after, limit) }),
      last: (feed.at(-1)?.seq ?? 0) + 999,
      oldest: 0,
      more: feed.filter(({ seq }) => seq > after).length > limit,
    })
    const live = await at.stream('/v1/projects/default/runs/events')
    const replay = await at.stream('/v1/projects/default/runs/events?since=1000')
    await until(() => frames(replay.text).length === 2)
    t.same(frames(replay.text), ['2000 action_appended', '2000 job_updated'])
    feed.push({ seq: 5001, type: 'job_updated', json: '{}' })
    at.publish({
      cursor: 5000,
      entry: {
        project: home,
        kind: 'queue',
        id: '1.default',
        command: { id: 'c', name: 'x' },
        origin: { at: 0, principal: { type: 'system', id: 's' } },
        events: [{ type: 'a' }, { type: 'b' }],
        prev: 0,
      },
    })
    at.edge.advance(20)
    await until(() => frames(live.text).length === 1 && frames(replay.text).length === 3)
    t.same(frames(live.text), ['5001 job_updated'])
    earlierRelease = true
    const older = await at.stream('/v1/projects/default/runs/events?since=1000')
    await until(() => frames(older.text).length === 3)
    t.same(dataOf(older.text), dataOf(replay.text))
    for (const { text } of [replay, older])
      t.notMatch(
        text,
        /[\u0085\u2028\u2029]/,
        'no characters that some clients take as line breaks',
      )
    older.close()
    at.edge.advance(15_000)
    await until(() => live.text.includes(':keepalive\n\n'))
    live.close()
    replay.close()
  },
)

on('stopping ends open streams', async (t, at) => {
  const stream = await at.stream(events)
  await at.server.stop()
  await until(() => stream.ended)
  t.pass()
})

on('a view that cannot answer causes 503 before the stream starts', async (t, at) => {
  at.views['timeline'] = () => refuse('service_unavailable')
  t.match(await at.call('GET', events, undefined, { accept: 'text/event-stream' }), { status: 503 })
  t.equal(at.listeners.get(`${home} run ${RUN}`)?.size, 0)
})
