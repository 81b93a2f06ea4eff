/**
 * Files of sessions over HTTP: uploaded, shown to models, downloaded and deleted. Also covers
 * context that HTTP actions return, and agents that send messages to themselves with their own key.
 */
import { createHash, randomBytes } from 'node:crypto'
import { Agent, get, request } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { createBlobs, sweepChunks } from '../../../nodes/nats/blobs.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { api } from '../../../protocol/api.ts'
import { fileName } from '../../../protocol/sessions/attachments.ts'
import { names } from '../../../protocol/subjects.ts'
import { docx, paragraph } from '../../nodes/executor/documents/office.ts'
import { silentLog } from '../../support/memory.ts'
import { requestOf, service } from '../../support/service.ts'
import { type Found, fieldsOf, ids, idsOf, listOf, pages, until } from '../support/given.ts'
import { provider } from '../support/servers/provider.ts'
import { receiver } from '../support/servers/receiver.ts'
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

t.setTimeout(60_000)
const there = await provider()
const s = await service({ BATON_MODELS: there.setting, BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
const nats = await connectNats({
  access: s.server.access,
  name: 'test',
  log: silentLog,
  role: 'test',
})
const blobs = createBlobs(nats)
t.teardown(() => s.stop())
t.teardown(() => nats.close())
t.teardown(() => there.close())

type Open = Record<string, unknown>
const png = (size = 100): Buffer =>
  Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(size)])
const project_id = String((await s.ok('project.get', { project: 'default' }))['id'])
const managed = await s.ok('agent.create', {
  name: 'reader',
  model: 'stub/small',
  system_prompt: 'Be brief.',
})
const { id: session_id } = await s.ok('session.create', { agent_id: managed['id'] })
const pathFor = (id: unknown) => `/v1/projects/default/sessions/${String(id)}/attachments`

/** Uploads a file as browsers do: as multipart form data. */
async function upload(
  bytes: Buffer,
  name: string | undefined,
  {
    fields = {},
    headers = {},
    id = session_id,
    key = s.key,
  }: {
    fields?: Record<string, string>
    headers?: Record<string, string>
    id?: unknown
    key?: string | null
  } = {},
): Promise<{ status: number; body: Record<string, never> }> {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.append(field, value)
  form.append('file', new Blob([bytes], { type: 'application/octet-stream' }), name)
  const response = await fetch(s.url + pathFor(id), {
    method: 'POST',
    body: form,
    headers: { ...headers, ...(key !== null && { authorization: `Bearer ${key}` }) },
  })
  return { status: response.status, body: (await response.json()) as Record<string, never> }
}
const codeOf = ({ body }: { body: Open }): unknown => (body['error'] as Open | undefined)?.['code']
const read = async (artifact_id: unknown, id: unknown = session_id): Promise<Response> =>
  fetch(s.url + requestOf(api['session.attachment'], { session_id: id, artifact_id }).path, {
    headers: { authorization: `Bearer ${s.key}` },
  })
const bytesOf = async (response: Response): Promise<Buffer> =>
  Buffer.from(await response.arrayBuffer())
const stored = (artifact_id: unknown) => blobs.get(fileName(project_id, String(artifact_id)))

t.test('a file is uploaded, listed and read again', async (t) => {
  const bytes = png()
  const { status, body } = await upload(bytes, 'plan "b".png', {
    fields: { mime: 'text/plain', size_bytes: String(bytes.length) },
  })
  t.equal(status, 201)
  const artifact = (body as Open)['artifact'] as Found
  t.match(artifact, {
    id: /^art_[A-Za-z0-9]+$/,
    visibility: 'shared',
    name: 'plan "b".png',
    mime_type: 'image/png',
    size_bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    created_by: /./,
  })
  t.same(body['content_block'], {
    type: 'image',
    source: { type: 'artifact', artifact_id: artifact['id'] },
    media_type: 'image/png',
    title: 'plan "b".png',
    size_bytes: bytes.length,
  })
  t.match(await s.ok('session.attachments', { session_id }), { items: [{ id: artifact['id'] }] })
  const response = await read(artifact['id'])
  t.equal(response.status, 200)
  t.same(
    Object.fromEntries(
      ['content-type', 'content-length', 'x-content-type-options', 'content-disposition'].map(
        (name) => [name, response.headers.get(name)],
      ),
    ),
    {
      'content-type': 'image/png',
      'content-length': String(bytes.length),
      'x-content-type-options': 'nosniff',
      'content-disposition': "inline; filename*=utf-8''plan%20%22b%22.png",
    },
  )
  t.ok((await bytesOf(response)).equals(bytes))
  t.ok(Buffer.from((await stored(artifact['id'])) ?? []).equals(bytes))
  const other = await s.ok('session.create', { agent_id: managed['id'], session_key: 'other' })
  t.equal((await read(artifact['id'], other['id'])).status, 404, 'the file belongs to one session')
  await s.refused(
    'session.start_turn',
    { session_id: other['id'], content: [body['content_block']] },
    400,
    'bad_request',
  )
  await s.refused(
    'session.detach',
    { session_id: other['id'], artifact_id: artifact['id'] },
    404,
    'not_found',
  )
  t.ok(await stored(artifact['id']), 'another session cannot delete it')
})

t.test('a project can disable attachments', async (t) => {
  const project = String((await s.ok('project.get', { project: 'default' }))['id'])
  await s.ok('project.update', { project, attachments: false })
  t.match(await upload(png(), 'off.png'), {
    status: 403,
    body: { error: { code: 'permission_denied' } },
  })
  await s.ok('session.attachments', { session_id })
  await s.ok('project.update', { project, attachments: true })
  t.match(await upload(png(), 'on.png'), { status: 201 })
})

t.test('an upload with an idempotency key is stored once', async (t) => {
  const bytes = png()
  const headers = { 'idempotency-key': 'upload 1' }
  const all = await Promise.all(
    Array.from({ length: 4 }, () => upload(bytes, 'a.png', { headers })),
  )
  const one = all[0] as (typeof all)[number]
  t.same(
    all.map(({ body }) => body['artifact']),
    all.map(() => one.body['artifact']),
  )
  t.same(
    all.map(({ status }) => status).sort(),
    [200, 200, 200, 201],
    'one upload created the file',
  )
  t.match(await upload(bytes, 'a.png', { headers }), {
    status: 200,
    body: { artifact: one.body['artifact'] },
  })
  t.match(await upload(png(), 'a.png', { headers }), {
    status: 409,
    body: { error: { code: 'conflict' } },
  })
  t.match(await upload(bytes, 'b.png', { headers }), { status: 409 })
  t.match(
    await upload(bytes, 'c.png', { fields: { name: ' ' } }),
    { body: { artifact: { name: 'c.png' } } },
    'a blank name is ignored',
  )
  const plain = await upload(bytes, 'a.png')
  t.not(
    (plain.body['artifact'] as Open | undefined)?.['id'],
    (one.body['artifact'] as Open | undefined)?.['id'],
  )
  t.match(
    await s.call('session.attach', {
      session_id,
      file: bytes.toString('base64'),
      name: 'json.png',
    }),
    { status: 201, body: { artifact: { name: 'json.png', size_bytes: bytes.length } } },
    'JSON with base64 works as well',
  )
})

t.test('an invalid upload is rejected before anything is stored', async (t) => {
  const before = listOf(await s.ok('session.attachments', { session_id })).length
  t.match(await upload(png(), 'a.png', { fields: { size_bytes: '7' } }), { status: 400 })
  t.match(await upload(png(), 'a.png', { fields: { owner: 'me' } }), {
    status: 400,
    body: { error: { details: { fields: [{ field: 'owner' }] } } },
  })
  t.match(await upload(Buffer.from('PK\x03\x04'), 'a.docx'), {
    status: 400,
    body: { error: { details: { fields: [{ field: 'file' }] } } },
  })
  t.match(await upload(Buffer.alloc(200_000, 'a'), 'a.txt'), {
    status: 413,
    body: { error: { code: 'payload_too_large', details: { limit: 102_400 } } },
  })
  t.match(await upload(png(5_300_000), 'a.png'), {
    status: 413,
    body: {
      error: { message: /^A file may have at most 5242880 bytes/, details: { limit: 5_242_880 } },
    },
  })
  t.match(await upload(png(9_000_000), 'a.png'), { status: 413 })
  t.match(await upload(png(5_000_000), 'a.png', { key: null }), { status: 401 })
  t.match(await upload(png(), 'a.png', { id: 'ses_none' }), { status: 404 })
  const raw = (body: string, type: string) =>
    s.raw('POST', pathFor(session_id), { body, headers: { 'content-type': type } })
  t.match(await raw('hello', 'image/png'), { status: 415 })
  t.match(await raw('hello', 'multipart/form-data; boundary=x'), { status: 400 })
  t.match(await raw('', 'multipart/form-data; boundary=x'), { status: 400 })
  t.same(
    fieldsOf(await s.refused('session.attach', { session_id, file: '*' }, 400, 'bad_request')),
    ['file'],
  )
  t.same(
    fieldsOf(await s.refused('session.attach', { session_id, name: 'x' }, 400, 'bad_request')),
    ['file'],
  )
  const viewer = await s.ok('principal.create', { name: 'viewer', role_ids: ['role_viewer'] })
  const { key } = await s.ok('key.create', { name: 'viewer', principal_id: viewer['id'] })
  t.match(await upload(png(), 'a.png', { key: String(key) }), { status: 403 })
  t.equal(listOf(await s.ok('session.attachments', { session_id })).length, before)
})

t.test('large files are uploaded concurrently and read by a slow client', async (t) => {
  const all = await Promise.all(
    Array.from({ length: 14 }, async () => {
      const bytes = png(5_000_000)
      // A busy gateway rejects an upload that would wait too long, and clients retry it.
      const made = await until(
        () => upload(bytes, 'large.png'),
        ({ status }) => status !== 503,
      )
      return { bytes, made }
    }),
  )
  t.same(
    all.map(({ made }) => made.status),
    all.map(() => 201),
  )
  const whole = await pages(s, 'session.attachments', { session_id }, 7)
  t.same(ids(whole), idsOf(await s.ok('session.attachments', { session_id, limit: 200 })))
  t.ok(whole.length > 14)
  const { bytes, made } = all[0] as (typeof all)[number]
  const { path } = requestOf(api['session.attachment'], {
    session_id,
    artifact_id: (made.body['artifact'] as Open | undefined)?.['id'],
  })
  const got = await new Promise<Buffer>((done, failed) => {
    get(s.url + path, { headers: { authorization: `Bearer ${s.key}` } }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => {
        parts.push(part)
        if (parts.length % 40 !== 0) return
        response.pause()
        setTimeout(() => response.resume(), 5)
      })
      response.on('end', () => done(Buffer.concat(parts)))
    }).on('error', failed)
  })
  t.ok(got.equals(bytes))
})

t.test('disconnected uploads release their buffers', async (t) => {
  const { hostname, port } = new URL(s.url)
  await Promise.all(
    Array.from(
      { length: 30 },
      () =>
        new Promise<void>((done) => {
          const socket = connect(Number(port), hostname, () => {
            socket.write(
              `POST ${pathFor(session_id)} HTTP/1.1\r\nHost: x\r\n` +
                `Authorization: Bearer ${s.key}\r\n` +
                'Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 7000000\r\n\r\n--x\r\n',
            )
            socket.write(randomBytes(100_000), () => setTimeout(() => socket.destroy(), 50))
          })
          socket.on('close', () => done())
        }),
    ),
  )
  t.equal((await upload(png(), 'after.png')).status, 201)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const small = (n: number) =>
    new Promise<number>((done, failed) => {
      const body = `--x\r\nContent-Disposition: form-data; name="file"; filename="${n}.txt"\r\n\r\nhello\r\n--x--\r\n`
      request(
        s.url + pathFor(session_id),
        {
          agent,
          method: 'POST',
          headers: {
            authorization: `Bearer ${s.key}`,
            'content-type': 'multipart/form-data; boundary=x',
            'content-length': body.length,
          },
        },
        (response) => {
          response.resume().on('end', () => done(response.statusCode ?? 0))
        },
      )
        .on('error', failed)
        .end(body)
    })
  t.same(
    [await small(1), await small(2), await small(3)],
    [201, 201, 201],
    'one connection serves several uploads',
  )
  agent.destroy()
})

t.test('a managed model receives images and the text of documents', async (t) => {
  const bytes = png()
  const [picture, paper] = [
    await upload(bytes, 'p.png'),
    await upload(Buffer.from('The code is 4711.'), 'note.md'),
  ]
  const office = await upload(docx(paragraph('The minutes of Monday.')), 'minutes.docx')
  const broken = await upload(docx('<w:p>'), 'broken.docx')
  t.match(office, {
    status: 201,
    body: { artifact: { mime_type: /wordprocessingml/, conversion: { state: 'converting' } } },
  })
  const ack = await s.ok('session.start_turn', {
    session_id,
    content: [
      text('what is it?'),
      picture.body['content_block'],
      paper.body['content_block'],
      office.body['content_block'],
      broken.body['content_block'],
    ],
  })
  t.match(await turnIn(s, ack, 'completed', 'failed'), { status: 'completed' })
  const sent = JSON.stringify((await there.seen()).at(-1)?.body)
  t.match(sent, `data:image/png;base64,${bytes.toString('base64')}`)
  t.match(sent, 'The code is 4711.')
  t.match(sent, 'The minutes of Monday.', 'the turn has waited for the conversion')
  t.match(sent, /broken.docx.*its text could not be extracted\. The part .* not well-formed/)
  const { items } = (await s.ok('session.turn_messages', {
    turn_id: placeOf(ack).turn_id,
  })) as unknown as { items: { content: Open[] }[] }
  t.match(
    items[0]?.content[1],
    { type: 'image', source: { type: 'artifact' }, size_bytes: bytes.length },
    'the transcript contains references only',
  )

  await s.ok('session.detach', {
    session_id,
    artifact_id: (picture.body['artifact'] as Open | undefined)?.['id'],
  })
  await s.ok('session.detach', {
    session_id,
    artifact_id: (picture.body['artifact'] as Open | undefined)?.['id'],
  })
  t.equal(
    await stored((picture.body['artifact'] as Open | undefined)?.['id']),
    undefined,
    'the content is deleted',
  )
  t.equal((await read((picture.body['artifact'] as Open | undefined)?.['id'])).status, 404)
  await turnIn(
    s,
    await s.ok('session.start_turn', { session_id, content: [text('again')] }),
    'completed',
  )
  const later = JSON.stringify((await there.seen()).at(-1)?.body)
  t.notMatch(later, bytes.toString('base64'))
  t.match(later, 'it was deleted')
})

t.test('a provider without support for files receives a text note instead', async (t) => {
  const { id } = await s.ok('session.create', { agent_id: managed['id'], session_key: 'blind' })
  const picture = await upload(png(), 'p.png', { id })
  const play = text(
    JSON.stringify({ play: [{ status: 400 }, { say: 'I cannot see it.' }], id: 'blind' }),
  )
  const ack = await s.ok('session.start_turn', {
    session_id: id,
    content: [picture.body['content_block'], play],
  })
  t.match(await turnIn(s, ack, 'completed', 'failed'), { status: 'completed' })
  const [first, second] = (await there.seen()).slice(-2).map(({ body }) => JSON.stringify(body))
  t.match([first, second], [/data:image\/png/, /cannot read files of this type/])
  t.notMatch(second, 'data:image/png')
})

t.test("a worker's model receives the files that fit into its frame", async (t) => {
  const agent = await agentOf(s, 'local')
  const model = await modelOf(s, 'local')
  const { id } = await s.ok('session.create', { agent_id: agent['id'] })
  const small = png()
  const blocks = [
    await upload(small, 's.png', { id }),
    await upload(png(2_000_000), 'l.png', { id }),
  ].map(({ body }) => body['content_block'])
  const ack = await s.ok('session.start_turn', {
    session_id: id,
    content: [text('look'), ...blocks],
  })
  const job = await model.job()
  const { messages } = (job['spec'] as unknown as { request: { messages: { content: Open[] }[] } })
    .request
  t.match(messages[0]?.content, [
    text('look'),
    {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: small.toString('base64') },
    },
    { type: 'text', text: /"l.png".*too many/ },
  ])
  await model.report(job, { status: 'completed', ...answer([text('seen')]) })
  await turnIn(s, ack, 'completed')
  model.close()
})

t.test('deleting a session also deletes the outputs of its turns', async (t) => {
  const agent = await agentOf(s, 'counter')
  const model = await modelOf(s, 'counter')
  const ack = await invoke(s, agent, 'count', {
    output: { schema: { type: 'object', required: ['n'] } },
  })
  await says(model, [use('o1', 'service_submit_output', { n: 7 })])
  t.match(await turnIn(s, ack, 'completed'), { output: { n: 7 } })
  await s.ok('session.delete', { session_id: placeOf(ack).session_id })
  const turn = await s.ok('session.turn', placeOf(ack))
  t.match(turn, { status: 'completed', usage: { calls: 1 } })
  t.same([turn['output'], turn['output_source']], [undefined, undefined])
  model.close()
})

t.test('the context that an HTTP action returns reaches the model', async (t) => {
  const board = await receiver()
  board.answer = (_, res) => {
    res.writeHead(200, { 'content-type': 'application/vnd.service.action+json' })
    res.end(
      JSON.stringify({
        output: { moved: true },
        context: [{ name: 'board', content: 'card 7 is done' }],
      }),
    )
  }
  await s.ok('action.create', { name: 'board.move', endpoint_url: board.url })
  const agent = await agentOf(s, 'mover')
  const model = await modelOf(s, 'mover')
  const ack = await invoke(s, agent, 'move it', {
    config: { toolkits: [{ name: 'board', actions: ['board.move'] }] },
  })
  await model.report(await model.job(), {
    status: 'completed',
    ...answer([use('call_1', 'board_move')]),
  })
  const next = await model.job()
  const { messages } = (next['spec'] as unknown as { request: { messages: { content: Open[] }[] } })
    .request
  t.match(messages.at(-1)?.content, [
    { type: 'tool_result', content: '{"moved":true}' },
    { type: 'text', text: /app-board[\s\S]*card 7 is done/ },
  ])
  await model.report(next, { status: 'completed', ...answer([text('done')]) })
  await turnIn(s, ack, 'completed')
  const shown = async (more: Open) =>
    listOf(await s.ok('session.messages', { session_id: placeOf(ack).session_id, ...more })).map(
      ({ role }) => role,
    )
  t.same(
    [await shown({}), await shown({ include: 'context' })],
    [
      ['user', 'assistant', 'user', 'assistant'],
      ['user', 'assistant', 'user', 'system', 'assistant'],
    ],
  )
  model.close()
  await board.close()
})

t.test('an agent with its own key can message only itself', async (t) => {
  const [agent, other] = [await agentOf(s, 'selfish'), await agentOf(s, 'stranger')]
  const key = String(
    (
      await s.ok('key.create', {
        name: 'selfish',
        principal_id: agent['id'],
        allow_unassigned_principal: true,
      })
    )['key'],
  )
  const mine = { input: { content: [text('note to myself')] } }
  const ack = await s.ok('agent.invoke', { ...mine, agent_ref: { name: 'selfish' } }, { key })
  const { session_id: own, turn_id } = placeOf(ack)
  await s.ok('session.nudge', { session_id: own, content: 'faster' }, { key })
  await s.ok('session.cancel_turn', { session_id: own, turn_id }, { key })
  await s.ok('session.start_turn', { session_id: own, content: [text('more')] }, { key })
  await s.ok('session.cancel', { session_id: own }, { key })
  const foreign = placeOf(await s.ok('agent.invoke', { ...mine, agent_ref: { id: other['id'] } }))
  const missing = 'service.agent.invoke'
  for (const refused of [
    s.refused(
      'agent.invoke',
      { ...mine, agent_ref: { id: other['id'] } },
      403,
      'permission_denied',
      { key },
    ),
    s.refused(
      'agent.invoke',
      { ...mine, agent_ref: { name: 'stranger' } },
      403,
      'permission_denied',
      { key },
    ),
    s.refused(
      'session.nudge',
      { session_id: foreign.session_id, content: 'x' },
      403,
      'permission_denied',
      { key },
    ),
    s.refused('session.cancel', { session_id: foreign.session_id }, 403, 'permission_denied', {
      key,
    }),
    s.refused(
      'session.append',
      { session_id: own, messages: [{ role: 'user', content: [text('x')] }] },
      403,
      'permission_denied',
      { key },
    ),
    s.refused('session.messages', { session_id: own }, 403, 'permission_denied', { key }),
  ])
    t.type((await refused).details, 'object', missing)
})

t.test('files survive a restart and are deleted with their session', async (t) => {
  const { id } = await s.ok('session.create', { agent_id: managed['id'], session_key: 'brief' })
  const bytes = png(300_000)
  const artifact_id = String(
    ((await upload(bytes, 'r.png', { id })).body['artifact'] as Open | undefined)?.['id'],
  )
  await s.restart()
  t.ok((await bytesOf(await read(artifact_id, id))).equals(bytes))
  await s.ok('session.delete', { session_id: id })
  await until(
    () => stored(artifact_id),
    (found) => found === undefined,
  )
  t.equal((await read(artifact_id, id)).status, 404)
  t.match(await upload(bytes, 'r.png', { id }), { status: 404 })
  t.equal(codeOf(await upload(bytes, 'r.png', { id })), 'not_found')
})

t.test('only chunks of abandoned uploads are deleted', async (t) => {
  const before = listOf(await s.ok('session.attachments', { session_id }))
  // The restart in the previous test may have left chunks of files. They are deleted first.
  await sweepChunks(nats, Date.now() + 1000, 0)
  await nats.streams.publish(`$O.${names.blobs}.C.lost`, randomBytes(1000))
  t.equal(await sweepChunks(nats, Date.now(), 3_600_000), 0, 'a recent chunk may still be in use')
  t.equal(await sweepChunks(nats, Date.now() + 1000, 0), 1)
  t.equal(await sweepChunks(nats, Date.now() + 1000, 0), 0)
  for (const { id } of before.slice(0, 3)) t.ok(await stored(id))
})
