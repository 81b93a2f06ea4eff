/** Commands that follow and download, against a scripted server. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { commandRunner } from '../../scenarios/support/command-line.ts'

/** Starts a server, and returns a function that runs a command against it. */
async function commandsTo(
  t: Test,
  respond: (request: IncomingMessage, answer: ServerResponse) => void,
): Promise<ReturnType<typeof commandRunner>> {
  const server = createServer(respond)
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(
    () =>
      new Promise<void>((done) => {
        server.closeAllConnections()
        server.close(() => done())
      }),
  )
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return commandRunner({ url, key: 'bat_k' }, t.testdir({}))
}

t.test('the exit code of follow is that of the run, even if no event is shown', async (t) => {
  for (const [status, code] of [
    ['completed', 0],
    ['failed', 1],
    ['cancelled', 1],
  ] as const) {
    const baton = await commandsTo(t, ({ headers }, answer) => {
      if (headers.accept === 'text/event-stream')
        answer.writeHead(200, { 'content-type': 'text/event-stream' }).end(': keepalive\n\n')
      else answer.end(JSON.stringify({ id: 'run_1', status, items: [], has_more: false }))
    })
    const { code: given, out } = await baton(['follow', 'run_1', '--after', '9'])
    t.equal(given, code, status)
    t.equal(out, '')
  }
})

const bytes = Buffer.from('the report of May')
const sha256 = createHash('sha256').update(bytes).digest('hex')
/** Answers requests for the artifact `art_1`. */
function artifact({ url, headers }: IncomingMessage, answer: ServerResponse): void {
  if (!url?.endsWith('/content'))
    return void answer.end(
      JSON.stringify({ id: 'art_1', name: 'may.txt', size_bytes: bytes.length, sha256 }),
    )
  const start = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0)
  answer.writeHead(start > 0 ? 206 : 200).end(bytes.subarray(start))
}

t.test('a refused subscription sets the exit code of streams', async (t) => {
  for (const [event, expected] of [
    ['subscription.refused', 1],
    ['subscription.ended', 0],
  ] as const) {
    const frame = { subscription: 'run=run_1', event, data: {} }
    const baton = await commandsTo(t, ({ method }, answer) => {
      if (method === 'GET') return void answer.end('{"items":[],"has_more":false}')
      answer.writeHead(200, { 'content-type': 'text/event-stream' })
      answer.end(`data: ${JSON.stringify(frame)}\n\n`)
    })
    const { code, out } = await baton(['streams', 'run=run_1'])
    t.strictSame([code, JSON.parse(out)], [expected, frame])
  }
})

t.test('a command that follows ends if no service responds', async (t) => {
  const baton = commandRunner({ url: 'http://127.0.0.1:1', key: 'bat_k' }, t.testdir({}))
  for (const words of [
    ['follow', 'run_1'],
    ['logs', 'run_1', '--follow'],
    ['streams', 'runs'],
    ['env', 'logs', 'env_1', '--follow'],
  ]) {
    const { code, notes } = await baton(words)
    t.equal(code, 1, words.join(' '))
    t.match(notes, /^http:\/\/127\.0\.0\.1:1 does not respond: .*\nIs the server running\?/)
  }
})

t.test('a download continues from its partial file', async (t) => {
  const baton = await commandsTo(t, artifact)
  const file = join(t.testdir({}), 'got.txt')
  const part = `${file}.${sha256.slice(0, 12)}.part`
  for (const size of [0, 4, bytes.length]) {
    writeFileSync(part, bytes.subarray(0, size))
    t.equal((await baton(['artifact', 'get', 'art_1', file])).code, 0)
    t.strictSame(readFileSync(file), bytes)
    t.notOk(existsSync(part))
  }
})

t.test('a damaged partial file is deleted, so that the next download succeeds', async (t) => {
  const baton = await commandsTo(t, artifact)
  const folder = t.testdir({})
  const file = join(folder, 'got.txt')
  const part = `${file}.${sha256.slice(0, 12)}.part`
  for (const damaged of ['xxxx', 'x'.repeat(bytes.length)]) {
    writeFileSync(part, damaged)
    const { code, notes } = await baton(['artifact', 'get', 'art_1', file])
    t.equal(code, 1)
    t.match(notes, /damaged.*\n?.*was deleted\. Run the command again/)
    t.notMatch(notes, /\n +at /, 'no stack trace')
    t.strictSame(readdirSync(folder), [])
  }
  writeFileSync(part, 'x'.repeat(bytes.length + 1))
  t.equal((await baton(['artifact', 'get', 'art_1', file])).code, 0, 'one that is too long')
  t.strictSame(readFileSync(file), bytes)
})

t.test('an empty id is a mistake, and no request is sent', async (t) => {
  let requests = 0
  const baton = await commandsTo(t, (_, answer) => {
    requests++
    answer.end('{}')
  })
  for (const words of [
    ['run', 'get', ''],
    ['follow', ''],
    ['logs', ''],
    ['logs', '', '--follow'],
    ['artifact', 'get', ''],
    ['run', 'signal', '', '--name', 'go'],
    ['call', 'run.get', '--set', 'id='],
  ]) {
    const { code, notes } = await baton(words)
    t.equal(code, 1, words.join(' '))
    t.match(notes, /^bad_request: (GET|POST) \S+ needs (id|artifact_id)\.\n[^\n]+$/)
  }
  t.equal(requests, 0)
})

t.test('https to a server without TLS is explained in words', async (t) => {
  const server = createServer(() => {})
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(() => void server.close())
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const baton = commandRunner({ url, key: 'bat_k' }, t.testdir({}))
  const { notes } = await baton(['run', 'list'])
  t.match(notes, `${url} does not respond: wrong version number (TLS); the address may begin`)
})

t.test('a file that cannot be written is a mistake, before bytes are sent', async (t) => {
  let contents = 0
  const baton = await commandsTo(t, (request, answer) => {
    if (request.url?.endsWith('/content')) contents++
    artifact(request, answer)
  })
  const folder = t.testdir({ file: '' })
  mkdirSync(join(folder, 'existing'))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const [target, message] of [
    ['missing/x', /^ENOENT: [^\n]*missing\/x[^\n]*$/],
    ['file/x', /^ENOTDIR: [^\n]*file\/x[^\n]*$/],
    ['existing', /^[^\n]*existing is a folder\.[^\n]*$/],
    ['pipe', /^[^\n]*pipe is not a file\.[^\n]*$/],
  ] as const) {
    const { code, notes } = await baton(['artifact', 'get', 'art_1', join(folder, target)])
    t.equal(code, 1, target)
    t.match(notes, message)
  }
  t.equal(contents, 0)
  for (const [target, message] of [
    ['missing/x', /^ENOENT: [^\n]*missing\/x[^\n]*$/],
    ['pipe', /^[^\n]*pipe is not a file\.$/],
  ] as const) {
    const from = 'env_01JZ3M0Q0R8XG4V2T6Y9ABCDEF:f'
    const { code, notes } = await baton(['env', 'cp', from, join(folder, target)])
    t.equal(code, 1, target)
    t.match(notes, message)
  }
  t.ok(statSync(pipe).isFIFO(), 'a pipe or device is not replaced')
})

t.test('a field of a reply without a body does not exist', async (t) => {
  const baton = await commandsTo(t, (_, answer) => void answer.writeHead(204).end())
  const { code, out, notes } = await baton(['run', 'cancel', 'run_1', '-o', 'field=status'])
  t.strictSame([code, out], [1, ''])
  t.equal(notes, 'Done.\nThe response has no field status.')
  t.match(await baton(['run', 'cancel', 'run_1', '-o', 'json']), { code: 0, notes: 'Done.' })
})

t.test('an import outlasts a restart of the service, and says so', async (t) => {
  // The pauses between attempts have a jitter, so they are no whole numbers.
  const wait = globalThis.setTimeout
  t.intercept(globalThis, 'setTimeout', {
    value: (run: () => void, ms = 0, ...given: []) =>
      wait(run, Number.isInteger(ms) ? ms : 0, ...given),
  })
  const schema = { identity_column: 'k', columns: [{ name: 'k', type: 'string' }] }
  let [answered, failed] = [0, 0]
  const baton = await commandsTo(t, ({ method }, answer) => {
    if (method === 'GET')
      return void answer.end(JSON.stringify({ items: [{ id: 'tbl_1', name: 'orders', schema }] }))
    if (failed++ < 10) return void answer.writeHead(503).end('{}')
    answered++
    answer.end('{"items":[]}')
  })
  const file = join(t.testdir({ 'orders.csv': 'k\na\nb\n' }), 'orders.csv')
  const { code, notes } = await baton(['table', 'import', 'orders', file])
  t.strictSame([code, answered], [0, 1], notes)
  t.equal(notes.match(/503 .*trying again/g)?.length, 1, notes)
  t.match(notes, 'Wrote 2 rows to the table orders.')
})

t.test('the remark about an empty list repeats the filters as they were given', async (t) => {
  const baton = await commandsTo(t, (_, answer) => void answer.end('{"items":[],"has_more":false}'))
  const { notes } = await baton([
    'table',
    'query',
    'tbl_01JZ3M0Q0R8XG4V2T6Y9ABCDEF',
    '--filter',
    '{"a":[1]}',
  ])
  t.equal(notes, 'table.query returned no results for --filter {"a":[1]}.')
})

t.test('a list of which only a part is printed says so', async (t) => {
  const page = { items: [{ id: 'run_1' }], has_more: true, next_cursor: 'c1' }
  const baton = await commandsTo(t, (_, answer) => void answer.end(JSON.stringify(page)))
  for (const format of ['field=id', 'table', 'wide']) {
    const { out, notes } = await baton(['run', 'list', '-o', format])
    t.match(out, 'run_1')
    t.equal(notes, 'There are more results: repeat the command with --cursor c1', format)
  }
  for (const format of ['json', 'yaml'])
    t.match(await baton(['run', 'list', '-o', format]), { out: 'c1', notes: '' })
  const { notes } = await baton(['call', 'run.list', '-o', 'field=id'])
  t.equal(notes, 'There are more results: repeat the command with --set cursor=c1')
})
