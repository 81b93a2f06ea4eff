/**
 * The Model Context Protocol over the real stack, with the official client, and with invalid
 * requests that bypass the client.
 */

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  type CallToolResult,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import fc from 'fast-check'
import t from 'tap'
import { api } from '../../../protocol/api.ts'
import { bad } from '../../hostile/support/judge.ts'
import { service } from '../../support/service.ts'
import { acting, ended, instant, listOf, until, waiting } from '../support/given.ts'

const s = await service()
const clients: Client[] = []
t.setTimeout(120_000)
t.teardown(async () => {
  await Promise.all(clients.map((client) => client.close()))
  await s.stop()
})
const path = '/v1/projects/default/mcp'

async function connect(key = s.key, url = s.url): Promise<Client> {
  const client = new Client({ name: 'tests', version: '1.0.0' })
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url + path), {
      requestInit: { headers: { authorization: `Bearer ${key}` } },
    }) as Transport,
  )
  clients.push(client)
  return client
}
const call = async (
  client: Client,
  name: string,
  input: object = {},
  options: Parameters<Client['callTool']>[2] = {},
  meta?: object,
): Promise<CallToolResult> =>
  (await client.callTool(
    { name, arguments: { ...input }, ...(meta && { _meta: { ...meta } }) },
    undefined,
    options,
  )) as CallToolResult
const textOf = ({ content }: CallToolResult): string =>
  content.map((part) => ('text' in part ? part.text : '')).join('')
const namesOf = async (client: Client): Promise<string[]> =>
  (await client.listTools()).tools.map(({ name }) => name)
async function keyOf(name: string, permissions: readonly string[]): Promise<string> {
  const role = await s.ok('role.create', { name, permissions })
  const principal = await s.ok('principal.create', { name, role_ids: [role['id']] })
  return String((await s.ok('key.create', { name, principal_id: principal['id'] }))['key'])
}
const message = (method: string, params?: object, id: unknown = 1) =>
  JSON.stringify({ jsonrpc: '2.0', ...(id !== null && { id }), method, ...(params && { params }) })
const json = { 'content-type': 'application/json' }
const newest = { 'mcp-protocol-version': '2025-11-25' }

interface Frame {
  readonly id?: string
  readonly data: string
}
/** Opens a stream whose frames are read one at a time. */
async function opened(
  url: string,
  init: RequestInit,
): Promise<{ next(): Promise<Frame | undefined>; close(): void }> {
  const abort = new AbortController()
  const answer = await fetch(url + path, {
    ...init,
    signal: abort.signal,
    headers: {
      authorization: `Bearer ${s.key}`,
      accept: 'application/json, text/event-stream',
      ...(init.headers as object),
    },
  })
  if (!answer.body || !/event-stream/.test(answer.headers.get('content-type') ?? ''))
    throw new Error(`no stream: ${answer.status} ${await answer.text()}`)
  const frames = answer.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
    .getReader() as { read(): Promise<{ value?: Frame }> }
  return { next: async () => (await frames.read()).value, close: () => abort.abort() }
}

await s.ok('workflow.create', {
  name: 'Greet',
  description: 'Greets somebody',
  published_as_tool: true,
  spec: acting(
    'greet',
    { config: { action_name: 'greet', parameters: { name: '${{ input.name }}' } } },
    {
      input: { name: { type: 'string', required: true } },
      output: { said: '${{ steps.call.output.text }}' },
    },
  ),
})
await s.ok('workflow.create', {
  name: 'Gate',
  published_as_tool: true,
  spec: waiting('go', {}, { output: { open: true } }),
})
await s.ok('workflow.create', { name: 'Private', spec: instant() })
await s.ok('action.create', {
  name: 'crm.find',
  title: 'Find',
  endpoint_kind: 'worker',
  input_schema: { type: 'object', required: ['id'] },
  output_schema: { type: 'object', required: ['found'] },
  annotations: { read_only: true },
})
const worker = await s.worker({ action_names: ['greet', 'crm.find'] })
t.teardown(() => worker.close())
const runsOf = async (handle: string) =>
  listOf(await s.ok('workflow.runs', { id: handle, limit: 200 }))

t.test('a client sees only the tools that its key may use', async (t) => {
  const owner = await connect()
  t.match(owner.getServerVersion(), { name: 'service', title: 'Service: default' })
  await owner.ping()
  const { tools } = await owner.listTools()
  t.strictSame(
    tools.map(({ name }) => name),
    ['crm_find', 'service_run_get', 'service_run_start', 'workflow_gate', 'workflow_greet'],
  )
  t.match(
    tools.find(({ name }) => name === 'workflow_greet'),
    {
      title: 'Greet',
      description: 'Greets somebody',
      inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      _meta: { 'service/name': 'workflow.greet' },
    },
  )
  t.match(
    tools.find(({ name }) => name === 'crm_find'),
    { annotations: { readOnlyHint: true }, outputSchema: { type: 'object' } },
  )
  t.notOk(
    tools.find(({ name }) => name === 'service_run_start')?.annotations?.idempotentHint,
    'each call starts a run',
  )
  t.strictSame(await namesOf(await connect(await keyOf('reader', ['service.project.view']))), [
    'service_run_get',
  ])
  t.strictSame(await namesOf(await connect(await keyOf('crm only', ['actions.execute.crm.*']))), [
    'crm_find',
  ])
})

t.test('a workflow call reports progress and returns the output', async (t) => {
  const client = await connect()
  const told: { progress: number; message?: string | undefined }[] = []
  const result = call(
    client,
    'workflow_greet',
    { name: 'Ada' },
    { onprogress: (progress) => told.push(progress) },
  )
  const job = await worker.job()
  t.match(job['spec'], { parameters: { name: 'Ada' } })
  await until(
    async () => told,
    ({ length }) => length > 0,
  )
  await worker.report(job, { result: { text: 'Hello, Ada' } })
  const { structuredContent, content, isError, _meta } = await result
  t.strictSame([structuredContent, isError], [{ said: 'Hello, Ada' }, undefined])
  t.match(content, [{ type: 'text', text: '{"said":"Hello, Ada"}' }])
  t.ok(
    told.every(({ progress }, index) => index === 0 || progress > (told[index - 1]?.progress ?? 0)),
    'progress increases',
  )
  const [run] = await runsOf('greet')
  t.match(run, {
    id: _meta?.['service/run_id'],
    status: 'completed',
    external_id: /^mcp:/,
    input: { name: 'Ada' },
  })
  t.match(
    await call(client, 'service.run.get', { run_id: run?.['id'] }),
    { structuredContent: { status: 'completed', output: { said: 'Hello, Ada' } } },
    'the catalog name works as well',
  )
})

t.test('call failures are reported to the model, invalid requests to the client', async (t) => {
  const client = await connect()
  const failing = call(client, 'workflow_greet', { name: 'Bob' })
  await worker.report(await worker.job(), {
    status: 'failed',
    error_type: 'Shy',
    error_message: 'too shy',
  })
  const failed = await failing
  t.equal(failed.isError, true)
  t.match(textOf(failed), /too shy/)
  t.match(textOf(await call(client, 'workflow_greet', {})), /name: /)
  t.match(await call(client, 'workflow_greet', {}), {
    isError: true,
    _meta: { 'service/error': { code: 'bad_request' } },
  })
  t.match(await call(client, 'service_run_get', { run: 'x' }), { isError: true })
  t.match(await call(client, 'service_run_get', { run_id: 'run_x' }), {
    isError: true,
    _meta: { 'service/error': { code: 'not_found' } },
  })
  t.match(await call(client, 'service_run_start', { workflow: 'nothing' }), { isError: true })
  t.match(
    textOf(await call(client, 'service_run_start', { definition_id: 'x' })),
    /workflow: is required.*definition_id: is not a known field/s,
  )
  await t.rejects(
    call(client, 'workflow_private'),
    { code: -32602 },
    'an unpublished workflow is not a tool',
  )
  await t.rejects(
    client.request({ method: 'resources/list' }, ToolListChangedNotificationSchema as never),
    { code: -32601 },
  )
  const reader = await connect(
    String(
      (
        await s.ok('key.create', {
          name: 'viewer',
          principal_id: (
            await s.ok('principal.create', { name: 'viewer', role_ids: ['role_viewer'] })
          )['id'],
        })
      )['key'],
    ),
  )
  await t.rejects(call(reader, 'workflow_greet', { name: 'Eve' }), {
    code: 403,
    message: /service\.runs\.operate/,
  })
  t.equal((await runsOf('greet')).length, 2, 'no other run was started')
})

t.test('an action call validates the output against its schema', async (t) => {
  const client = await connect(await keyOf('crm too', ['actions.execute.crm.find']))
  await client.listTools()
  t.match(await call(client, 'crm_find', {}), { isError: true })
  const good = call(client, 'crm_find', { id: '7' })
  const job = await worker.job()
  await worker.report(job, { result: { found: true } })
  t.match(await good, { structuredContent: { found: true } })
  const odd = call(client, 'crm_find', { id: '8' })
  await worker.report(await worker.job(), { result: { lost: true } })
  t.match(await odd, { isError: true, content: [{ text: /does not match the output schema/ }] })
  t.match(await s.ok('invocation.list', { action_name: 'crm.find' }), {
    items: [
      { source: 'direct', status: 'success' },
      { source: 'direct', status: 'success' },
    ],
  })
  t.match(await call(await connect(), 'service_run_start', { workflow: 'private' }), {
    structuredContent: { status: 'started', run_id: /^run_/ },
  })
})

t.test('cancelling a call cancels only the run of that call', async (t) => {
  const [one, two] = await Promise.all([connect(), connect()])
  const abort = new AbortController()
  const heard = new Promise<void>(
    (done) =>
      void call(two as Client, 'workflow_gate', {}, { onprogress: () => done() }).catch(() => {}),
  )
  const first = call(
    one as Client,
    'workflow_gate',
    {},
    {
      signal: abort.signal,
      onprogress: ({ message }) => {
        if (message?.startsWith('wait opened')) abort.abort('enough')
      },
    },
  )
  await t.rejects(first)
  await heard
  const runs = await until(
    () => runsOf('gate'),
    (all) => all.some(({ status }) => status === 'cancelled'),
  )
  t.strictSame(
    runs.map(({ status }) => String(status)).sort(),
    ['cancelled', 'suspended'],
    'the other client used the same request ids',
  )
  const hasty = new AbortController()
  const early = call(one as Client, 'workflow_gate', {}, { signal: hasty.signal })
  hasty.abort()
  await t.rejects(early)
  await until(
    () => runsOf('gate'),
    (all) => all.filter(({ status }) => status === 'cancelled').length === all.length - 1,
  )
})

t.test('a call with an idempotency key is executed once, from any client', async (t) => {
  const client = await connect()
  const before = (await runsOf('gate')).length
  const meta = { idempotency_key: 'release 7' }
  const [one, two] = [
    call(client, 'workflow_gate', { n: 1 }, {}, meta),
    call(await connect(), 'workflow_gate', { n: 1 }, {}, meta),
  ]
  const [run] = await until(
    () => runsOf('gate'),
    (all) => all.length > before,
  )
  await until(
    () => s.ok('run.get', { id: run?.['id'] }),
    ({ status }) => status === 'suspended',
  )
  await s.ok('run.signal', { id: run?.['id'], name: 'go' })
  t.match(await Promise.all([one, two]), [
    { structuredContent: { open: true } },
    { structuredContent: { open: true } },
  ])
  t.match(
    await call(client, 'workflow_gate', { n: 1 }, {}, meta),
    { structuredContent: { open: true }, _meta: { 'service/run_id': run?.['id'] } },
    'a repeat after the end gets the result',
  )
  t.match(await call(client, 'workflow_gate', { n: 2 }, {}, meta), {
    isError: true,
    _meta: { 'service/error': { code: 'idempotency_key_conflict' } },
  })
  t.equal((await runsOf('gate')).length, before + 1)
})

t.test('a client is notified of changed tools, also after a disconnect', async (t) => {
  const client = await connect()
  const heard = new Promise<void>((done) =>
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => done()),
  )
  const listening = await opened(s.url, { headers: newest })
  const place = await listening.next()
  t.match(place, { id: String, data: '' })
  const { id } = await s.ok('workflow.create', { name: 'Late', spec: instant() })
  let waited = 2
  const told = s
    .follow('mcp.listen', {}, () => true)
    .then(([frame]) => {
      waited--
      return frame
    })
  void heard.then(() => waited--)
  let published_as_tool = false
  // The clients do not report when their streams are open, so the tools are changed repeatedly
  // until both clients are notified.
  await until(
    () =>
      s.ok('workflow.update', { id, published_as_tool: (published_as_tool = !published_as_tool) }),
    () => waited === 0,
  )
  await s.ok('workflow.update', { id, published_as_tool: true })
  t.ok((await namesOf(client)).includes('workflow_late'))
  t.match(await told, { data: { method: 'notifications/tools/list_changed' } })
  const changed = await listening.next()
  t.match(JSON.parse(changed?.data ?? ''), {
    jsonrpc: '2.0',
    method: 'notifications/tools/list_changed',
  })
  listening.close()
  const back = await opened(s.url, { headers: { ...newest, 'last-event-id': String(place?.id) } })
  t.match(JSON.parse((await back.next())?.data ?? ''), {
    method: 'notifications/tools/list_changed',
  })
  back.close()
  const now = await opened(s.url, { headers: newest })
  const unchanged = await opened(s.url, {
    headers: { ...newest, 'last-event-id': String((await now.next())?.id) },
  })
  t.equal((await unchanged.next())?.data, '', 'no new notification')
  now.close()
  unchanged.close()
})

t.test('a call survives the stop of its gateway: its client resumes at another one', async (t) => {
  const other = await s.add({ BATON_ROLES: 'gateway' })
  const calling = await opened(other.url ?? '', {
    method: 'POST',
    headers: { ...json, ...newest },
    body: message('tools/call', { name: 'workflow_gate', _meta: { progressToken: 'p' } }, 'seven'),
  })
  const place = await calling.next()
  t.match(place, { id: String, data: '' })
  const progress = await calling.next()
  t.match(JSON.parse(progress?.data ?? ''), {
    method: 'notifications/progress',
    params: { progressToken: 'p', progress: Number },
  })
  const [run] = await runsOf('gate')
  await until(
    () => s.ok('run.get', { id: run?.['id'] }),
    ({ status }) => status === 'suspended',
  )
  const another = request(`${other.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${s.key}`,
      accept: 'application/json, text/event-stream',
      ...json,
      ...newest,
    },
  })
  another.end(message('tools/call', { name: 'workflow_gate' }, 'eight'))
  const [response] = (await once(another, 'response')) as [IncomingMessage]
  const closed = once(response.resume(), 'close')
  await other.stop()
  await closed
  t.ok(response.complete, 'the response has a regular end')
  for (let frame = await calling.next(); frame; frame = await calling.next())
    t.notMatch(frame.data, /"result"/)
  const stranger = await keyOf('stranger', ['service.runs.operate'])
  t.match(
    await s.raw('GET', path, { key: stranger, headers: { 'last-event-id': String(place?.id) } }),
    { status: 400 },
    'a cursor is valid only for its principal',
  )
  for (const id of [place?.id, progress?.id]) {
    const resumed = await opened(s.url, { headers: { ...newest, 'last-event-id': String(id) } })
    if (id === progress?.id) await s.ok('run.signal', { id: run?.['id'], name: 'go' })
    const frames: Frame[] = []
    for (let frame = await resumed.next(); frame; frame = await resumed.next()) {
      frames.push(frame)
      if (id === place?.id) break
    }
    resumed.close()
    const parsed = frames.map(({ data }) => JSON.parse(data))
    t.match(parsed[0], { method: 'notifications/progress', params: { progressToken: 'p' } })
    if (id === progress?.id)
      t.match(parsed.at(-1), {
        jsonrpc: '2.0',
        id: 'seven',
        result: { structuredContent: { open: true } },
      })
  }
})

t.test('without a stream the response is JSON, and tools are listed in pages', async (t) => {
  const run = (
    await s.call('mcp.send', {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'workflow_late' },
    })
  ).body
  t.match(run, { id: 1, result: { structuredContent: { done: true } } })
  await Promise.all(
    Array.from({ length: 101 }, (_, n) =>
      s.ok('action.create', { name: `many.n${n}`, endpoint_kind: 'worker' }),
    ),
  )
  const names = await until(
    async () => {
      const found: string[] = []
      for (let cursor: unknown; ; ) {
        const { result } = (await s.ok('mcp.send', {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/list',
          params: { ...(cursor !== undefined && { cursor }) },
        })) as unknown as { result: { tools: { name: string }[]; nextCursor?: string } }
        t.ok(result.tools.length <= 100)
        found.push(...result.tools.map(({ name }) => name))
        if (result.nextCursor === undefined) return found
        cursor = result.nextCursor
      }
    },
    ({ length }) => length >= 107,
  )
  t.equal(new Set(names).size, 107)
  for (const params of [{ cursor: 'x' }, { cursor: 7 }])
    t.match(
      (await s.call('mcp.send', { jsonrpc: '2.0', id: 1, method: 'tools/list', params })).body,
      { error: { code: -32602 } },
    )
})

t.test('the transport validates messages, headers and origins', async (t) => {
  const send = (body: string, headers: Record<string, string> = {}, key: string | null = s.key) =>
    s.raw('POST', path, { key, headers: { ...json, ...headers }, body })
  for (const body of [
    message('notifications/initialized', {}, null),
    message('notifications/cancelled', { requestId: 99 }, null),
    message('notifications/cancelled', {}, null),
    message('tools/call', { name: 'workflow_late' }, null),
    '{"jsonrpc":"2.0","id":1,"result":{}}',
  ])
    t.match(await send(body), { status: 202, text: '' }, body)
  t.match(
    await send(
      message('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} }),
    ),
    { status: 200, body: { result: { protocolVersion: '2025-06-18' } } },
  )
  const old = await send(message('initialize', { protocolVersion: '1999-01-01' }))
  t.equal(
    (old.body as unknown as { result: { protocolVersion: string } }).result.protocolVersion,
    '2025-11-25',
  )
  t.match(old.headers.get('mcp-session-id'), /^[0-9a-f]{32}$/)
  for (const params of [undefined, {}, { protocolVersion: 7 }])
    t.match(await send(message('initialize', params)), {
      status: 200,
      body: { error: { code: -32602 } },
    })
  for (const params of [
    undefined,
    {},
    { name: 7 },
    { name: 'workflow_late', arguments: [] },
    { name: 'workflow_late', _meta: { progressToken: {} } },
  ])
    t.match(await send(message('tools/call', params)), {
      status: 200,
      body: { error: { code: -32602 } },
    })
  t.match(await send(message('ping'), { 'mcp-protocol-version': '1999-01-01' }), {
    status: 400,
    body: { error: { details: { fields: [{ field: 'MCP-Protocol-Version' }] } } },
  })
  t.match(await send(message('ping'), { origin: 'https://elsewhere.example' }), {
    status: 403,
    body: { error: { code: 'forbidden' } },
  })
  for (const body of [
    '',
    '{',
    '[]',
    `[${message('ping')}]`,
    '{"jsonrpc":"1.0","id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":null,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1}',
  ])
    t.match(await send(body), { status: 400, body: { error: { code: 'bad_request' } } }, body)
  t.match(await send(message('ping'), {}, null), { status: 401 })
  t.match(await s.raw('GET', path, { key: null }), { status: 401 })
  t.match(await s.raw('GET', path, { headers: { 'last-event-id': 'x' } }), { status: 400 })
  const gone = await s.raw('DELETE', path)
  t.equal(gone.status, 405)
  t.match(gone.headers.get('allow'), /POST/)
  await s.ok('project.create', { name: 'Other' })
  const foreign = String(
    (
      await s.ok('key.create', {
        project: 'other',
        name: 'foreign',
        principal_id: (
          await s.ok('principal.create', {
            project: 'other',
            name: 'foreign',
            role_ids: ['role_owner'],
          })
        )['id'],
      })
    )['key'],
  )
  t.match(await send(message('tools/list'), {}, foreign), { status: 403 })
  t.equal((await runsOf('late')).length, 1, 'a call without an id is not executed')
  await ended(s, (await runsOf('late'))[0]?.['id'])
})

t.test('every message gets a documented response', async (t) => {
  const name = fc.constantFrom(
    'workflow_late',
    'service_run_get',
    'service_run_start',
    'service_memory_recall',
    '__proto__',
    'constructor',
    'workflow.',
    'x'.repeat(128),
    'x'.repeat(129),
    '\u202e',
  )
  const some = fc.oneof(
    fc.dictionary(
      fc.constantFrom('run_id', 'workflow', 'input', 'id', 'refused', 'constructor', '\u0000'),
      fc.oneof(name, fc.jsonValue({ maxDepth: 2 })),
      { maxKeys: 3, noNullPrototype: true },
    ),
    fc.jsonValue({ maxDepth: 1 }),
  )
  const params = fc.oneof(
    fc.record(
      { name, arguments: some, cursor: some, requestId: some, protocolVersion: some, _meta: some },
      { requiredKeys: [], noNullPrototype: true },
    ),
    some,
  )
  const method = fc.constantFrom(
    'initialize',
    'ping',
    'tools/list',
    'tools/call',
    'tools/call',
    'tools/call',
    'notifications/cancelled',
    'prompts/list',
    '__proto__',
  )
  const id = fc.oneof(fc.integer(), fc.string({ maxLength: 300 }), fc.constant(undefined))
  const session = fc.constantFrom('', 'a', '\u00ff'.repeat(400))
  const asked = fc.record({ method, params, id, session })
  await fc.assert(
    fc.asyncProperty(asked, async ({ method, params, id, session }) => {
      const { status, headers, text } = await s.raw('POST', path, {
        headers: { ...json, ...(session && { 'mcp-session-id': session }) },
        body: JSON.stringify({ jsonrpc: '2.0', method, params, id }),
      })
      const fault = bad(
        'mcp.send',
        api['mcp.send'],
        { status, headers: Object.fromEntries(headers), text },
        5000,
      )
      if (fault !== undefined) throw new Error(`${fault}: ${text}`)
    }),
    { numRuns: 150 },
  )
  t.match((await s.raw('GET', '/readyz')).body, { status: 'ready' })
})
