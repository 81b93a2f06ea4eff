/**
 * Terminals over real sockets: the frames between a worker on the worker socket and a person on the
 * terminal socket.
 */
import t, { type Test } from 'tap'
import { terminalLimits } from '../../../protocol/workers/terminals.ts'
import { service, type TestWorker } from '../../support/service.ts'
import { open, type Received, seen } from '../support/sockets.ts'

const s = await service()
t.teardown(() => s.stop())
let count = 0

/** Connects a worker, attaches an environment for it, and opens a terminal there as a person. */
async function opened(t: Pick<Test, 'teardown'>) {
  const instance = `box-${++count}`
  const worker = await s.worker({ worker_instance_id: instance, capabilities: ['terminal'] })
  t.teardown(() => worker.close())
  await seen(worker, 'worker.registered')
  const { id } = await s.ok('environment.attach', { name: instance, worker_instance_id: instance })
  const { socket } = await open(s.url, {
    headers: { authorization: `Bearer ${s.key}` },
    path: `environments/${id}/terminal`,
  })
  if (!socket) throw new Error('the terminal was refused')
  t.teardown(() => socket.terminate())
  const got: Received[] = []
  const waiting = new Set<() => void>()
  const closed = new Promise<number>((done) => socket.on('close', (code) => done(code)))
  socket.on('message', (text) => {
    got.push(JSON.parse(String(text)))
    for (const look of waiting) look()
  })
  /** Resolves with the first message of this type to the person, which may already have arrived. */
  const person = (type: string) =>
    new Promise<Received>((done) => {
      const look = () => {
        const found = got.find((message) => message['type'] === type)
        if (found) done(found)
      }
      waiting.add(look)
      look()
    })
  const say = (message: object) => socket.send(JSON.stringify(message))
  say({ type: 'terminal.open', columns: 80, rows: 24, command: ['sh'] })
  const begun = await seen(worker, 'terminal.open')
  await person('terminal.opened')
  return { worker, terminal_id: String(begun['terminal_id']), begun, person, say, closed, got }
}
const base64 = (text: string) => Buffer.from(text).toString('base64')
const frame = (worker: TestWorker, type: string) => seen(worker, type)

t.test('every frame reaches the other side', async (t) => {
  const { worker, terminal_id, begun, person, say, closed } = await opened(t)
  t.match(begun, { columns: 80, rows: 24, command: ['sh'] } as unknown as Received)
  say({ type: 'terminal.input', data: base64('ls\n') })
  t.match(await frame(worker, 'terminal.input'), {
    terminal_id,
    data: base64('ls\n'),
  } as unknown as Received)
  worker.send({ type: 'terminal.ack', terminal_id, bytes: 3 })
  t.match(await person('terminal.ack'), { bytes: 3 } as unknown as Received)
  say({ type: 'terminal.resize', columns: 100, rows: 50 })
  t.match(await frame(worker, 'terminal.resize'), {
    columns: 100,
    rows: 50,
  } as unknown as Received)
  worker.send({ type: 'terminal.output', terminal_id, sequence: 0, data: base64('a.txt\n') })
  t.match(await person('terminal.output'), { data: base64('a.txt\n') } as unknown as Received)
  say({ type: 'terminal.ack', bytes: 6 })
  t.match(await frame(worker, 'terminal.ack'), { bytes: 6 } as unknown as Received)
  worker.send({ type: 'terminal.exit', terminal_id, exit_code: 2 })
  t.match(await person('terminal.exit'), { exit_code: 2 } as unknown as Received)
  t.equal(await closed, 1000)
})

t.test('the worker is notified when the person has left', async (t) => {
  const { worker, terminal_id, say } = await opened(t)
  say({ type: 'terminal.close' })
  t.match(await frame(worker, 'terminal.close'), { terminal_id } as unknown as Received)
})

t.test('a worker that ignores the window loses the terminal, not its connection', async (t) => {
  const { worker, terminal_id, person } = await opened(t)
  const data = Buffer.alloc(terminalLimits.chunk).toString('base64')
  const frames = terminalLimits.output_window / terminalLimits.chunk + 1
  for (let sequence = 0; sequence < frames; sequence++)
    worker.send({ type: 'terminal.output', terminal_id, sequence, data })
  t.match(await person('terminal.exit'), { error: /more output/ } as unknown as Received)
  t.match(await frame(worker, 'terminal.close'), { terminal_id } as unknown as Received)
  t.equal(worker.socket.readyState, worker.socket.OPEN)
})

t.test('output that is lost on the way ends the terminal', async (t) => {
  const { worker, terminal_id, person, closed } = await opened(t)
  worker.send({ type: 'terminal.output', terminal_id, sequence: 5, data: base64('x') })
  t.match(await person('error'), {
    error: { code: 'service_unavailable' },
  } as unknown as Received)
  t.equal(await closed, 1011)
})

t.test('a worker cannot write to the terminal of another', async (t) => {
  const { terminal_id, got, person, worker } = await opened(t)
  const other = await opened(t)
  other.worker.send({ type: 'terminal.output', terminal_id, sequence: 0, data: base64('x') })
  t.match(await frame(other.worker, 'terminal.close'), { terminal_id } as unknown as Received)
  worker.send({ type: 'terminal.exit', terminal_id, exit_code: 0 })
  await person('terminal.exit')
  t.notOk(got.some(({ type }) => String(type) === 'terminal.output'))
})
