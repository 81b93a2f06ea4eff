/**
 * Terminals over real sockets: the person and the worker are connected to different gateways, which
 * relay over NATS. The worker is the worker library with a scripted program.
 */
import { get } from 'node:http'
import t, { type Test } from 'tap'
import type { BatonError } from '../../../client/errors.ts'
import { openTerminal, type TerminalOptions } from '../../../client/terminal.ts'
import type { OpenTerminal, WorkerTerminal } from '../../../client/worker/terminals.ts'
import { Worker } from '../../../client/worker.ts'
import { terminalLimits } from '../../../protocol/workers/terminals.ts'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { open } from '../support/sockets.ts'

const s = await service()
t.teardown(() => s.stop())
const second = await s.add({ BATON_ROLES: 'gateway' })
const otherUrl = second.url ?? ''

class Program implements WorkerTerminal {
  readonly asked: Parameters<OpenTerminal>[0]
  input = ''
  readonly sizes: string[] = []
  paused = false
  closed = false
  #data: (data: Uint8Array) => void = () => {}
  #exit: (exit: { exit_code: number }) => void = () => {}
  constructor(asked: Parameters<OpenTerminal>[0]) {
    this.asked = asked
  }
  write(data: Uint8Array) {
    this.input += Buffer.from(data).toString()
  }
  resize(columns: number, rows: number) {
    this.sizes.push(`${columns}x${rows}`)
  }
  pause() {
    this.paused = true
  }
  resume() {
    this.paused = false
  }
  close() {
    this.closed = true
  }
  onData(listener: (data: Uint8Array) => void) {
    this.#data = listener
  }
  onExit(listener: (exit: { exit_code: number }) => void) {
    this.#exit = listener
  }
  print(text: string) {
    this.#data(Buffer.from(text))
  }
  exit(exit_code: number) {
    this.#exit({ exit_code })
  }
}

let count = 0
/** Connects a worker to the second gateway and attaches an environment for the worker. */
async function attached(t: Test, capabilities: readonly string[] = ['terminal']) {
  const instance = `worker-${++count}`
  const programs: Program[] = []
  const worker = new Worker({
    url: otherUrl,
    key: s.key,
    instance,
    capabilities,
    actions: {},
    terminals: async (asked) => {
      const program = new Program(asked)
      programs.push(program)
      return program
    },
  })
  t.teardown(() => worker.stop())
  await worker.start()
  const { id } = await s.ok('environment.attach', { name: instance, worker_instance_id: instance })
  return { worker, programs, environment_id: String(id) }
}
const terminal = (environment_id: string, more: Partial<TerminalOptions> = {}) =>
  openTerminal({
    url: s.url,
    key: s.key,
    project: 'default',
    environment_id,
    columns: 80,
    rows: 24,
    onOutput: () => {},
    ...more,
  })
const holds = (holds: () => boolean) =>
  until(
    async () => holds(),
    (is) => is,
  )
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'ok',
    (error: BatonError) => error.code,
  )

t.test('input, output, size and exit code go through two gateways', async (t) => {
  const { programs, environment_id } = await attached(t)
  let output = ''
  const session = await terminal(environment_id, {
    command: ['vi', 'a b'],
    onOutput: (data) => void (output += Buffer.from(data).toString()),
  })
  await holds(() => programs.length === 1)
  const [program] = programs as [Program]
  t.strictSame(program.asked, { columns: 80, rows: 24, command: ['vi', 'a b'] })
  await session.write(Buffer.from('hällo\r'))
  await session.write(Buffer.from([3]))
  session.resize(100, 30)
  await holds(() => program.sizes.length === 1)
  t.equal(program.input, 'hällo\r\u0003')
  t.strictSame(program.sizes, ['100x30'])
  for (let line = 0; line < 100; line++) program.print(`line ${line}\r\n`)
  program.exit(7)
  t.equal(await session.ended, 7)
  t.equal(output.split('\r\n').length, 101, 'all output comes before the exit')
  t.match(output, /^line 0\r\nline 1\r\n/)
  await holds(() => !program.closed)
  // The audit entry for the end of the terminal is written after the exit code is sent.
  const uses = async () =>
    listOf(await s.ok('audit.list', { resource_id: environment_id, limit: 50 })).filter(
      ({ changes }) => changes && 'terminal' in changes,
    )
  await until(uses, ({ length }) => length === 2)
})

t.test('a reader that stops pauses the program, and buffers stay bounded', async (t) => {
  const { programs, environment_id } = await attached(t)
  let received = 0
  const waiting: (() => void)[] = []
  const gate = new Promise<void>((open) => waiting.push(open))
  const session = await terminal(environment_id, {
    onOutput: async (data) => {
      await gate
      received += data.length
    },
  })
  await holds(() => programs.length === 1)
  const [program] = programs as [Program]
  const chunk = 'y'.repeat(terminalLimits.chunk)
  let printed = 0
  while (!program.paused && printed < 100) {
    program.print(chunk)
    printed++
  }
  t.ok(program.paused, `paused after ${printed} chunks`)
  t.ok(printed * chunk.length <= terminalLimits.output_window + 2 * chunk.length)
  for (const open of waiting) open()
  await holds(() => !program.paused)
  program.exit(0)
  t.equal(await session.ended, 0)
  t.equal(received, printed * chunk.length)
})

t.test('the terminal ends with either side', async (t) => {
  const { programs, environment_id, worker } = await attached(t)
  const first = await terminal(environment_id)
  await holds(() => programs.length === 1)
  first.close()
  await holds(() => programs[0]?.closed === true)
  t.equal(await codeOf(first.ended), 'unreachable')
  const next = await terminal(environment_id)
  await holds(() => programs.length === 2)
  await worker.stop()
  t.equal(await codeOf(next.ended), 'environment_worker_unavailable')
  t.ok(programs[1]?.closed)
})

t.test('a terminal ends at once when its key is revoked', async (t) => {
  const { programs, environment_id } = await attached(t)
  const made = await s.ok('key.create', { name: 'person' })
  await s.ok('principal.update', { id: made['principal_id'], role_ids: ['role_operator'] })
  const session = await terminal(environment_id, { key: String(made['key']) })
  await holds(() => programs.length === 1)
  const begun = performance.now()
  t.equal((await s.call('key.revoke', { id: made['id'] })).status, 204)
  t.equal(await codeOf(session.ended), 'unauthorized')
  t.ok(performance.now() - begun < terminalLimits.beat / 2, 'before the next beat')
  await holds(() => programs[0]?.closed === true)
})

t.test('the number of terminals of an environment is limited', async (t) => {
  const { environment_id } = await attached(t)
  const sessions = []
  for (let n = 0; n < terminalLimits.per_environment; n++)
    sessions.push(await terminal(environment_id))
  t.equal(await codeOf(terminal(environment_id)), 'rate_limit_exceeded')
  sessions[0]?.close()
  await until(
    () => codeOf(terminal(environment_id)),
    (code) => code === 'ok',
  )
  for (const session of sessions) session.close()
})

t.test('terminals that cannot be opened', async (t) => {
  const { environment_id } = await attached(t, [])
  t.equal(
    await codeOf(terminal(environment_id)),
    'environment_worker_unavailable',
    'a worker without terminals',
  )
  t.equal(await codeOf(terminal('env_01AAAAAAAAAAAAAAAAAAAAAA0C')), 'not_found')
  t.equal(await codeOf(terminal('desk')), 'not_found')
  t.equal(await codeOf(terminal(environment_id, { key: 'bat_wrong' })), 'unauthorized')
  const { id } = await s.ok('role.create', {
    name: 'reader',
    permissions: ['service.project.view'],
  })
  const { key } = await s.ok('key.create', { name: 'reader', scope_role_id: id })
  t.equal(await codeOf(terminal(environment_id, { key: String(key) })), 'permission_denied')
  const plain = await s.raw('GET', `/v1/projects/default/environments/${environment_id}/terminal`)
  t.equal(plain.status, 426)
  const { hostname, port } = new URL(s.url)
  const headers = {
    authorization: `Bearer ${s.key}`,
    connection: 'close',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': Buffer.alloc(16).toString('base64'),
  }
  const path = `/v1/projects/default/environments/${environment_id}/terminal`
  const refused = await new Promise<number | undefined>((resolve, reject) =>
    get({ hostname, port, path, headers }, (answer) => resolve(answer.resume().statusCode))
      .on('upgrade', () => resolve(101))
      .on('error', reject),
  )
  t.equal(refused, 400, 'a Connection header without upgrade')
  await s.ok('project.create', { name: 'other', handle: 'other' })
  t.equal(await codeOf(terminal(environment_id, { project: 'other' })), 'not_found')
})

t.test('invalid messages of a person close the terminal', async (t) => {
  const { environment_id } = await attached(t)
  const say = async (...messages: unknown[]) => {
    const { socket } = await open(s.url, {
      headers: { authorization: `Bearer ${s.key}` },
      path: `environments/${environment_id}/terminal`,
    })
    if (!socket) throw new Error('refused')
    const closed = new Promise<number>((done) => socket.on('close', (code) => done(code)))
    for (const message of messages)
      socket.send(typeof message === 'string' ? message : JSON.stringify(message))
    return closed
  }
  const begin = { type: 'terminal.open', columns: 80, rows: 24 }
  t.equal(await say('no json'), 4400)
  t.equal(await say({ type: 'terminal.input', data: '' }), 4400, 'not open yet')
  t.equal(await say({ ...begin, columns: 0 }), 4400)
  t.equal(await say(begin, begin), 4400)
  t.equal(await say({ type: 'terminal.close' }), 1000)
})
