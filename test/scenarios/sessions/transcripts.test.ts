/**
 * Following sessions over HTTP: pages, both event streams, and turns that are streamed in the
 * response to the request that starts them.
 */
import t from 'tap'
import { followTranscript, readTranscript, Transcript } from '../../../client/transcript.ts'
import { type Frame, service, type TestWorker } from '../../support/service.ts'
import { type Found, fieldsOf, until } from '../support/given.ts'
import {
  agentOf,
  answer,
  invoke,
  modelOf,
  placeOf,
  says,
  text,
  turnIn,
  use,
} from '../support/talk.ts'

const s = await service({ BATON_STREAM_IDLE: '0' })
t.teardown(() => s.stop())

type Open = Record<string, unknown>
const source = (session_id: string, url = s.url) => ({ url, key: s.key, session_id })
const ended = (frame: Frame): boolean => frame.event === 'stream.end'
const events = (frames: readonly Frame[]): string[] => frames.map(({ event = '' }) => event)
/** Claims the next generation and sends its text as deltas. The job stays open. */
async function speak(model: TestWorker, pieces: readonly Open[]): Promise<Found> {
  const job = await model.job()
  for (const [index, delta] of pieces.entries())
    model.send({
      type: 'generation.delta',
      job_id: job['id'],
      lease_token: job['lease_token'],
      sequence: index + 1,
      delta,
    })
  return job
}
/** Returns the parts of a folded transcript that are compared, with turns ordered by id. */
const kept = (transcript: Transcript): object => ({
  rows: transcript.messages(),
  turns: [...transcript.turns.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
  pending: transcript.pending(),
})

t.test('a run stream contains the deltas of its agent, without event ids', async (t) => {
  const agent = await agentOf(s, 'reporter')
  const model = await modelOf(s, 'reporter')
  const run = await s.ok('run.start', {
    spec: {
      steps: [
        { id: 'ask', kind: 'agent', config: { agent_id: agent['id'], instructions: 'status?' } },
      ],
    },
  })
  const over = ({ event }: Frame): boolean => event === 'run.completed'
  const aloud = s.follow('run.events', { id: run['id'] }, over)
  const plain = s.follow('run.project_events', { id: run['id'] }, over)
  const job = await speak(model, [{ text: 'All ' }, { text: 'are up.' }])
  const { session_id } = job as Open
  const read = () => s.ok('session.transcript', { session_id })
  await until(read, ({ messages }) => JSON.stringify(messages).includes('All are up.'))
  await model.report(job, { status: 'completed', ...answer([text('All are up.')]) })
  t.match(
    (await aloud).filter(({ event }) => event === 'generation.delta'),
    [1, 2].map((n) => ({
      id: undefined,
      data: {
        event_type: 'generation.delta',
        delta: { text: n === 1 ? 'All ' : 'are up.' },
        run_id: run['id'],
        session_id,
        job_id: job['id'],
        delta_sequence: n,
        sequence: n,
      },
    })),
  )
  t.notOk((await plain).some(({ event }) => event === 'generation.delta'))
})

t.test('a turn is followed delta by delta, and ends as it is stored', async (t) => {
  const agent = await agentOf(s, 'writer')
  const model = await modelOf(s, 'writer', ['look'])
  const ack = await invoke(s, agent, 'status?', {
    config: { toolkits: [{ name: 'x', actions: ['look'] }] },
  })
  const { session_id, turn_id } = placeOf(ack)
  const following = s.follow(
    'session.transcript_stream',
    { session_id, cursor: ack['resume_cursor'] },
    ended,
  )
  const job = await speak(model, [
    { type: 'thinking', thinking: 'Hm.' },
    { text: 'All ' },
    { text: 'hosts\u2028' },
  ])
  const seen = await until(
    async () =>
      (await s.ok('session.transcript', { session_id })) as unknown as {
        messages: { status: string; content: { text?: string }[] }[]
      },
    ({ messages }) => messages.at(-1)?.content[1]?.text === 'All hosts\u2028',
  )
  t.equal(seen.messages.at(-1)?.status, 'streaming', 'a page contains the text so far')
  t.match(await s.ok('session.turn_live', { session_id, turn_id }), {
    frames: [
      {
        event_type: 'session.message.preview',
        content: [{ thinking: 'Hm.' }, { text: 'All hosts\u2028' }],
      },
    ],
    last_live_sequence: 1,
  })
  await model.report(job, {
    status: 'completed',
    ...answer([text('Looking.'), use('call_1', 'look', { at: 1 })]),
  })
  const call = await model.job()
  await model.report(call, { status: 'completed', result: { up: 3 } })
  await model.report(await speak(model, [{ text: 'All ' }, { text: 'are up.' }]), {
    status: 'completed',
    ...answer([text('All are up.')]),
  })
  const frames = await following
  const last = frames.at(-1)
  t.match(last?.data, { event_type: 'stream.end', session_id, reason: 'idle' })
  t.equal(
    frames.findIndex(({ event }) => event === 'stream.ready') <
      frames.findIndex(({ event }) => event === 'message.delta'),
    true,
  )
  t.strictSame(
    frames
      .filter(({ event }) => event === 'message.delta')
      .map(({ data }) => data['text'] ?? data['thinking'])
      .join('|')
      .includes('Hm.|All |hosts\u2028'),
    true,
  )
  t.ok(
    frames.some(
      ({ event, data }) => event === 'message.block.patch' && data['status'] === 'running',
    ),
  )
  for (const { event, id, data } of frames)
    if (event?.startsWith('message.') && data['status'] !== 'final')
      t.equal(id, undefined, 'a streaming frame has no cursor')
  const rows = frames.filter(({ event }) => event?.startsWith('message.'))
  const final = rows.findIndex(({ data }) => data['status'] === 'final' && data['sequence'] === 4)
  const block = { type: 'text', text: 'All are up.' }
  t.match(rows[final - 1], { event: 'message.block', data: { content_index: 0, block } })
  const folded = new Transcript()
  for (const { id, data } of frames) folded.apply(data as never, id)
  t.strictSame(kept(folded), kept(await readTranscript(source(session_id))))
  t.match(
    folded.messages().map(({ role, sequence, turn_index }) => [role, sequence, turn_index]),
    [
      ['user', 1, 0],
      ['assistant', 2, 1],
      ['user', 3, 2],
      ['assistant', 4, 3],
    ],
  )
  t.equal(folded.turns.get(turn_id)?.status, 'completed')
  t.equal(
    (await s.ok('session.transcript', { session_id }))['resume_cursor'],
    folded.cursor,
    'page and stream end at the same cursor',
  )
  const { frames: none } = (await s.ok('session.turn_live', {
    session_id,
    turn_id,
  })) as unknown as { frames: object[] }
  t.strictSame(none, [])

  const again = await s.follow(
    'session.transcript_stream',
    { session_id, cursor: ack['resume_cursor'] },
    ended,
  )
  t.strictSame(events(again), [
    'message.upsert',
    'message.upsert',
    'message.upsert',
    'message.upsert',
    'turn.upsert',
    'stream.ready',
    'stream.end',
  ])
  const fresh = await s.follow('session.transcript_stream', { session_id }, ended, {
    headers: { 'last-event-id': String(folded.cursor) },
  })
  t.strictSame(events(fresh), ['stream.ready', 'stream.end'], 'the header is accepted as a cursor')
  model.close()
})

t.test('transcripts are read in pages and from cursors', async (t) => {
  const agent = await agentOf(s, 'pager')
  const made = await s.ok('session.create', { agent_id: agent['id'], session_key: 'p' })
  const session_id = String(made['id'])
  await s.ok('session.append', {
    session_id,
    messages: Array.from({ length: 45 }, (_, n) => ({
      role: n % 2 === 0 ? 'user' : 'assistant',
      content: [text(`row ${n + 1}`)],
    })),
  })
  type Page = {
    messages: { sequence: number }[]
    has_more: boolean
    resume_cursor: string
    next_page_token?: string
  }
  const page = async (query: Open): Promise<Page> =>
    (await s.ok('session.transcript', { session_id, ...query })) as unknown as Page
  const tail = await page({})
  t.strictSame(
    tail.messages.map(({ sequence }) => sequence),
    Array.from({ length: 20 }, (_, n) => n + 26),
  )
  t.match(tail, { has_more: false })
  t.notOk('next_page_token' in tail)
  const start = await s.ok('session.start_turn', {
    session_id,
    content: [text('go')],
    idempotency_key: 'b',
  })
  const all: number[] = []
  let next = await page({ cursor: String(start['resume_cursor']), limit: 1 })
  t.match(next, { has_more: true, messages: [{ sequence: 46 }] })
  for (; ; next = await page({ page_token: next.next_page_token })) {
    all.push(...next.messages.map(({ sequence }) => sequence))
    if (!next.has_more) break
    t.ok(next.next_page_token)
  }
  t.strictSame(
    all.filter((n) => n !== null),
    [46],
  )
  const append = (count: number) =>
    s.ok('session.append', {
      session_id,
      messages: Array.from({ length: count }, () => ({ role: 'user', content: [text('late')] })),
    })
  const { resume_cursor: before } = await page({})
  await append(3)
  let part = await page({ cursor: before, limit: 1 })
  await append(2)
  const drained = [part.messages]
  while (part.has_more) {
    part = await page({ page_token: part.next_page_token })
    drained.push(part.messages)
  }
  const finals = (rows: { sequence: number | null }[]) =>
    rows.filter((row) => row.sequence !== null)
  t.equal(finals(drained.flat()).length, 3, 'the first page fixes the end of the pages')
  const rest = await page({ cursor: part.resume_cursor })
  t.equal(finals(rest.messages).length, 2, 'later messages follow from the next cursor')
  const transcript = new Transcript()
  await readTranscript(source(session_id), transcript)
  const mark = transcript.cursor
  await readTranscript(source(session_id), transcript)
  t.equal(transcript.cursor, mark, 'the cursor is unchanged without new messages')
  const other = await s.ok('session.create', { agent_id: agent['id'], session_key: 'q' })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'session.transcript',
        { session_id: other['id'], cursor: mark },
        400,
        'bad_request',
      ),
    ),
    ['cursor'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused('session.transcript', { session_id, page_token: mark }, 400, 'bad_request'),
    ),
    ['page_token'],
  )
  await s.refused(
    'session.transcript',
    { session_id: `${session_id.slice(0, -4)}0000` },
    404,
    'not_found',
  )
  await s.refused('session.turn_live', { session_id, turn_id: 'turn_x' }, 404, 'not_found')
  const stream = await s.raw(
    'GET',
    `/v1/projects/default/sessions/${session_id}/transcript/stream?cursor=zzz`,
  )
  t.equal(stream.status, 400)
  t.equal(
    (
      await s.raw('GET', `/v1/projects/default/sessions/${session_id}/stream`, {
        headers: { 'last-event-id': 'x' },
      })
    ).status,
    400,
  )
  t.equal((await s.raw('GET', '/v1/projects/default/sessions/ses_x/stream')).status, 404)
  await s.ok('session.cancel', { session_id })
})

t.test('a question appears, is answered and closed in the transcript', async (t) => {
  const agent = await agentOf(s, 'curious')
  const model = await modelOf(s, 'curious')
  const ack = await invoke(s, agent, 'may I?')
  const { session_id, turn_id } = placeOf(ack)
  const steps: string[] = []
  const transcript = new Transcript(String(ack['resume_cursor']))
  const done = (async () => {
    for await (const { frame } of followTranscript({ ...source(session_id), transcript })) {
      if (frame?.event_type === 'interaction.upsert')
        steps.push(`interaction ${String(frame['status'])}`)
      if (frame?.event_type === 'turn.upsert') steps.push(`turn ${String(frame['status'])}`)
    }
  })()
  await says(model, [
    use('c1', 'service_ask_person', { title: 'Really?', kind: 'request_approval' }),
  ])
  await turnIn(s, ack, 'waiting')
  await until(
    async () => transcript.pending(),
    (pending) => pending.length === 1,
  )
  t.match(transcript.active(), {
    id: turn_id,
    status: 'waiting',
    wait: { kind: 'interaction', tool_call_id: 'c1' },
  })
  const [asked] = transcript.pending()
  type Part = { interactions: { id: string }[]; has_more: boolean; next_page_token?: string }
  const partOf = async (query: Open) =>
    (await s.ok('session.transcript', { session_id, ...query })) as unknown as Part
  const early: string[] = []
  for (
    let part = await partOf({ cursor: ack['resume_cursor'], limit: 1 });
    part.has_more;
    part = await partOf({ page_token: part.next_page_token })
  )
    early.push(...part.interactions.map(({ id }) => id))
  t.strictSame(early, [asked?.id], 'a page before the last contains the open question')
  const without = new Transcript()
  for (const interactions of [transcript.pending(), undefined])
    without.page({ messages: [], turns: [], interactions, has_more: false, resume_cursor: 'c' })
  t.equal(without.pending().length, 1, 'a page without interactions changes none')
  const wait = {
    kind: 'interaction',
    tool_call_id: 'c1',
    interaction_id: asked?.id,
    expires_at: /Z$/,
  }
  t.match(
    await s.ok('session.transcript', { session_id }),
    { turns: [{ id: turn_id, wait }] },
    'a transcript page contains the wait',
  )
  t.match(
    await s.ok('session.turns', { session_id }),
    { items: [{ id: turn_id, status: 'waiting', wait: undefined, phase: undefined }] },
    'turn records do not contain the wait',
  )
  t.match((await s.ok('session.transcript', { session_id }))['interactions'], [
    { id: asked?.id, status: 'pending' },
  ])
  await s.ok('interaction.cancel', { id: asked?.id })
  await says(model, [text('Then not.')])
  await done
  t.notOk('wait' in (await s.ok('session.turn', { session_id, turn_id })))
  const tail = steps.slice(steps.indexOf('interaction pending'))
  t.strictSame(tail, [
    'interaction pending',
    'turn waiting',
    'interaction cancelled',
    'turn queued',
    'turn running',
    'turn completed',
  ])
  t.strictSame(transcript.pending(), [])
  model.close()
})

t.test('the numbered stream contains messages, tool calls, nudges and turns', async (t) => {
  const agent = await agentOf(s, 'older')
  const model = await modelOf(s, 'older', ['look'])
  const ack = await invoke(s, agent, 'hello', {
    config: { toolkits: [{ name: 'x', actions: ['look'] }] },
  })
  const { session_id, turn_id } = placeOf(ack)
  const following = s.follow('session.stream', { session_id }, ended)
  await until(
    async () => s.ok('session.turn', placeOf(ack)),
    (turn) => turn['status'] === 'running',
  )
  const job = await speak(model, [{ text: 'Hi' }])
  await model.report(job, { status: 'completed', ...answer([text('Hi'), use('v1', 'look')]) })
  await model.report(await model.job(), { status: 'completed', result: { fine: true } })
  const second = await model.job()
  await s.ok('session.nudge', { session_id, content: 'be quick' })
  await model.report(second, { status: 'completed', ...answer([text('One')]) })
  await says(model, [text('Done')])
  const frames = await following
  t.strictSame(
    frames.filter(({ id }) => id !== undefined).map(({ id, event }) => `${id} ${event}`),
    [
      '1 user.message',
      '2 agent.message',
      '3 user.message',
      '4 agent.message',
      '5 user.message',
      '6 agent.message',
    ],
  )
  for (const { data } of frames) t.match(data, { event_type: String, session_id })
  const types = events(frames)
  t.strictSame(types.slice(-2), ['turn.completed', 'stream.end'])
  for (const type of [
    'turn.started',
    'tool.call',
    'tool.result',
    'nudge.queued',
    'nudge.delivered',
  ])
    t.ok(types.includes(type), type)
  t.match(frames.find(({ event }) => event === 'tool.result')?.data, {
    turn_id,
    tool_call_id: 'v1',
    tool_name: 'look',
    content: [{ type: 'text', text: '{"fine":true}' }],
    is_error: false,
  })
  t.notOk(
    frames.some(({ event, data }) => event === 'tool.result' && 'error' in data),
    'a successful result has no error',
  )
  t.match(frames.find(({ event }) => event === 'nudge.delivered')?.data, {
    turn_id,
    delivery: 'current_turn',
    status: 'delivered',
  })
  const later = await s.follow('session.stream', { session_id, after_sequence: 4 }, ended, {
    headers: { 'last-event-id': '5' },
  })
  t.strictSame(
    events(later),
    ['agent.message', 'turn.completed', 'stream.end'],
    'the larger sequence applies',
  )
  const most = '9223372036854775807'
  for (const at of [{ after_sequence: most }, {}])
    t.strictSame(
      events(
        await s.follow('session.stream', { session_id, ...at }, ended, {
          headers: { 'last-event-id': 'after_sequence' in at ? '5' : most },
        }),
      ).filter((type) => type.endsWith('message')),
      [],
      'a sequence beyond the end starts at the end',
    )
  model.close()
})

t.test(
  'late followers receive uncommitted results, and later ones the whole summary',
  async (t) => {
    const agent = await agentOf(s, 'slow')
    const model = await modelOf(s, 'slow', ['look'])
    const ack = await invoke(s, agent, 'hello', {
      config: { toolkits: [{ name: 'x', actions: ['look'] }] },
    })
    const { session_id, turn_id } = placeOf(ack)
    await says(model, [
      use('w1', 'look', { n: 1 }),
      use('w2', 'look', { n: 2 }),
      use('w3', 'nothing_such'),
    ])
    const [first, second] = [await model.job(), await model.job()].sort((a, b) =>
      String(a['tool_call_id']) < String(b['tool_call_id']) ? -1 : 1,
    ) as [Found, Found]
    await model.report(first, { status: 'completed', result: { fine: true } })
    const live = await until(
      async () =>
        (await s.ok('session.turn_live', { session_id, turn_id })) as unknown as {
          frames: Open[]
          last_live_sequence: number
        },
      ({ frames }) => frames.length === 6,
    )
    t.strictSame(
      live.frames.map(
        (frame) =>
          `${frame['live_sequence']} ${frame['event_type']} ${frame['tool_call_id'] ?? ''}`,
      ),
      [
        '1 session.message.preview ',
        '2 tool.call w1',
        '3 tool.call w2',
        '4 tool.call w3',
        '5 tool.result w1',
        '6 tool.result w3',
      ],
    )
    t.match(live.frames[4], {
      session_id,
      turn_id,
      tool_name: 'look',
      display: '{"fine":true}',
      is_error: false,
      error: null,
    })
    const early = await s.follow(
      'session.stream',
      { session_id },
      ({ event, data }) => event === 'tool.result' && data['tool_call_id'] === 'w3',
    )
    t.strictSame(
      early.filter(({ event }) => event === 'tool.result').map(({ data }) => data['tool_call_id']),
      ['w1', 'w3'],
    )
    await model.report(second, { status: 'completed', result: {} })
    await says(model, [text('Done')])
    await turnIn(s, ack, 'completed')
    const compacting = s.ok('session.compact', { session_id })
    await says(model, [text('They looked.')])
    await compacting
    const later = (await s.follow('session.stream', { session_id, after_sequence: 4 }, ended)).find(
      ({ event }) => event === 'compaction.created',
    )
    t.match(later, {
      id: '5',
      data: {
        trigger: 'manual',
        sequence: 5,
        role: 'compaction',
        content: [{ text: 'They looked.' }],
        covers_through_sequence: 4,
        message_count: 4,
        summary_model: 'slow',
      },
    })
    model.close()
  },
)

t.test('a turn is streamed in the response of its own request', async (t) => {
  const agent = await agentOf(s, 'inline')
  const model = await modelOf(s, 'inline')
  const body = JSON.stringify({
    agent_ref: { id: agent['id'] },
    input: { content: [text('now')], idempotency_key: 'i1' },
  })
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json;q=0.1, Text/Event-Stream; charset=utf-8',
  }
  const asking = s.raw('POST', '/v1/projects/default/agents/invoke', { body, headers })
  const job = await speak(model, [{ text: 'He' }, { text: 're.' }])
  await model.report(job, { status: 'completed', ...answer([text('Here.')]) })
  const { status, headers: given, text: stream } = await asking
  t.equal(status, 200)
  t.match(given.get('content-type'), /^text\/event-stream/)
  const types = [...stream.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
  t.strictSame(
    types.filter(
      (type) =>
        type !== 'generation.delta' &&
        type !== 'turn.started' &&
        type !== 'session.message.preview',
    ),
    ['agent.message', 'turn.completed', 'stream.end'],
  )
  const again = await s.raw('POST', '/v1/projects/default/agents/invoke', { body, headers })
  t.strictSame(
    [...again.text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type),
    ['agent.message', 'turn.completed', 'stream.end'],
    'a repeat replays the turn',
  )
  const refused = await s.raw('POST', '/v1/projects/default/agents/invoke', { body: '{}', headers })
  t.equal(refused.status, 400)
  t.match(refused.body, { error: { code: 'bad_request' } })
  const known = await s.ok('session.list', { agent_id: agent['id'] })
  const session_id = String((known['items'] as unknown as { id: string }[])[0]?.id)
  const second = s.raw('POST', `/v1/projects/default/sessions/${session_id}/turns`, {
    body: JSON.stringify({ content: [text('more')] }),
    headers,
  })
  await says(model, [text('More.')])
  t.match(
    (await second).text,
    /event: agent\.message[\s\S]*More\.[\s\S]*event: turn\.completed[\s\S]*"reason":"idle"/,
  )
  model.close()
})
