/** The command line as a process whose standard streams fail. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync, readdirSync, readFileSync, watch } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { programArguments } from '../../../nodes/commands/child.ts'

/** Starts a server and returns its address. The server is stopped after the test. */
async function listen(t: Test, server: Server): Promise<string> {
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('output to a full disk is a mistake', { skip: !existsSync('/dev/full') }, async (t) => {
  const child = spawn(process.execPath, [...programArguments(), 'completion', 'bash'], {
    stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
  })
  const [notes, [code]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ])
  t.match(notes, /^Standard output cannot be written: ENOSPC: [^\n]*\n$/)
  t.equal(code, 1)
})

t.test('an interrupted export leaves no incomplete file', async (t) => {
  const folder = t.testdir({})
  const schema = { identity_column: 'k', columns: [{ name: 'k', type: 'string' }] }
  const server = createServer(({ url = '' }, answer) => {
    if (url.includes('/query')) return
    answer.setHeader('content-type', 'application/json')
    answer.end(JSON.stringify({ items: [{ id: 'tbl_1', name: 'orders', schema }] }))
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const watcher = watch(folder)
  t.teardown(() => watcher.close())
  const begun = once(watcher, 'change')
  const child = spawn(
    process.execPath,
    [
      ...programArguments(),
      'table',
      'export',
      'orders',
      join(folder, 'orders.csv'),
      '--key',
      'bat_k',
    ],
    { env: { ...process.env, BATON_URL: url }, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  await begun
  t.match(readdirSync(folder), [/^orders\.csv\..*\.part$/])
  child.kill('SIGINT')
  t.strictSame(await once(child, 'exit'), [null, 'SIGINT'])
  t.strictSame(readdirSync(folder), [])
})

t.test('an interrupted copy to an environment leaves no incomplete file', async (t) => {
  const calls: { url: string | undefined; input: { path: string } }[] = []
  const server = createServer(async (request, answer) => {
    calls.push({ url: request.url, ...JSON.parse(await text(request)) })
    if (calls.length === 2) child.kill('SIGINT')
    answer.setHeader('content-type', 'application/json')
    answer.end(JSON.stringify({ status: 'completed', output: {} }))
  })
  const BATON_URL = await listen(t, server)
  const file = join(t.testdir({ big: 'x'.repeat(1_000_000) }), 'big')
  const target = 'env_01JZ3M0Q0R8XG4V2T6Y9ABCDEF:big'
  const child = spawn(
    process.execPath,
    [...programArguments(), 'env', 'cp', file, target, '--key', 'bat_k'],
    {
      env: { ...process.env, BATON_URL },
      stdio: 'ignore',
    },
  )
  t.strictSame(await once(child, 'exit'), [null, 'SIGINT'])
  const part = calls[0]?.input.path
  t.match(part, /^big\..*\.part$/)
  t.match(calls.at(-1), { url: /environment\.files\.delete/, input: { path: part } })
})

t.test('the error of a run cannot control the terminal', async (t) => {
  const run = {
    id: 'run_1',
    status: 'failed',
    created_at: '2026-11-29T00:00:00.000Z',
    error_message: 'no\n\u001b]52;c;aGk=\u0007\u009b31mred',
  }
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', 'application/json')
    answer.end(JSON.stringify({ preview: { count: 1, runs: [run] }, results: [], next: null }))
  })
  const BATON_URL = await listen(t, server)
  const child = spawn(
    process.execPath,
    [...programArguments(), 'run', 'bulk', 'retry', '--preview', '--key', 'bat_k'],
    { env: { ...process.env, BATON_URL }, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  t.equal(
    await text(child.stderr as NodeJS.ReadableStream),
    '1 run to retry, oldest first:\n  run_1  failed  2026-11-29T00:00:00.000Z  no red\n',
  )
})

t.test('a folder as standard input is a mistake', async (t) => {
  const folder = openSync(t.testdir({}), 'r')
  const child = spawn(
    process.execPath,
    [...programArguments(), 'artifact', 'put', '-', '--name', 'x', '--key', 'bat_k'],
    {
      env: { ...process.env, BATON_URL: 'http://127.0.0.1:1' },
      stdio: [folder, 'ignore', 'pipe'],
    },
  )
  t.equal(
    await text(child.stderr as NodeJS.ReadableStream),
    'Standard input is a folder, not a file.\n',
  )
})

t.test('a command succeeds although its remarks are not read', async (t) => {
  const env = { ...process.env, BATON_CONFIG: `${t.testdirName}-none/profiles.json` }
  const child = spawn(process.execPath, [...programArguments(), 'profile', 'list'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stderr.destroy()
  t.strictSame((await once(child, 'exit'))[0], 0)
})

t.test('the usage is printed without an error if nothing reads it', async (t) => {
  const child = spawn(process.execPath, ['nodes/boot.mjs'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  const [notes, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  t.strictSame([code, notes], [0, ''])
})

t.test(
  'a field is read from a pipe that is written later',
  {
    skip: !existsSync('/proc/self/syscall'),
  },
  async (t) => {
    const [server, received] = [createServer(), [] as unknown[]]
    server.on('request', async (request, answer) => {
      received.push(JSON.parse(await text(request)))
      answer.writeHead(202, { 'content-type': 'application/json' }).end('{}')
    })
    const BATON_URL = await listen(t, server)
    const child = spawn(
      process.execPath,
      [...programArguments(), 'run', 'signal', 'run_1', '--name', 'go', '--payload', '@-'],
      { env: { ...process.env, BATON_URL, BATON_KEY: 'bat_k' }, stdio: ['pipe', 'ignore', 'pipe'] },
    )
    const notes = text(child.stderr)
    const ended = once(child, 'exit')
    // The program waits for standard input in a system call whose first argument is 0.
    const isReading = () => /^\d+ 0x0 /.test(readFileSync(`/proc/${child.pid}/syscall`, 'utf8'))
    while (child.exitCode === null && !isReading()) await new Promise(setImmediate)
    child.stdin.on('error', () => {}).end('{"n":1}')
    t.equal((await ended)[0], 0, await notes)
    t.strictSame(received, [{ name: 'go', payload: { n: 1 } }])
  },
)
