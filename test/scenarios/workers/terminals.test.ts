/** Every frame about terminals, as a worker without the worker library receives and sends it. */
import t from 'tap'
import type WebSocket from 'ws'
import { service } from '../../support/service.ts'
import { open, seen } from '../support/sockets.ts'

const s = await service()
t.teardown(() => s.stop())
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** Returns a function that waits for the next message of a type. */
function reader(socket: WebSocket) {
  const messages: Record<string, unknown>[] = []
  let notify = () => {}
  socket.on('message', (text) => {
    messages.push(JSON.parse(String(text)) as Record<string, unknown>)
    notify()
  })
  return async (type: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const at = messages.findIndex((message) => message['type'] === type)
      if (at >= 0) return messages.splice(at, 1)[0] ?? {}
      await new Promise<void>((done) => {
        notify = done
      })
    }
  }
}
/** Opens a terminal of the environment as a person. */
async function person(environment_id: string) {
  const { socket } = await open(s.url, {
    headers: { authorization: `Bearer ${s.key}` },
    path: `environments/${environment_id}/terminal`,
  })
  if (!socket) throw new Error('the terminal was refused')
  const next = reader(socket)
  const say = (message: object) => socket.send(JSON.stringify(message))
  say({ type: 'terminal.open', columns: 80, rows: 24, command: ['sh'] })
  return { say, next }
}

t.test('the frames of a terminal', async (t) => {
  const worker = await s.worker({ worker_instance_id: 'box', capabilities: ['terminal'] })
  t.teardown(() => worker.close())
  const environment = await s.ok('environment.attach', { name: 'box', worker_instance_id: 'box' })
  const { say, next } = await person(String(environment['id']))
  const opening = await seen(worker, 'terminal.open')
  t.match(opening, { columns: 80, rows: 24, command: ['sh'] })
  const { terminal_id } = opening
  const send = (frame: object) => worker.send({ terminal_id, ...frame })

  say({ type: 'terminal.input', data: base64('ls\n') })
  t.match(await seen(worker, 'terminal.input'), { terminal_id, data: base64('ls\n') })
  say({ type: 'terminal.resize', columns: 100, rows: 30 })
  t.match(await seen(worker, 'terminal.resize'), { terminal_id, columns: 100, rows: 30 })
  send({ type: 'terminal.ack', bytes: 3 })
  t.match(await next('terminal.ack'), { bytes: 3 })

  send({ type: 'terminal.output', sequence: 0, data: base64('file\n') })
  t.match(await next('terminal.output'), { sequence: 0, data: base64('file\n') })
  say({ type: 'terminal.ack', bytes: 5 })
  t.match(await seen(worker, 'terminal.ack'), { terminal_id, bytes: 5 })

  send({ type: 'terminal.exit', exit_code: 3 })
  t.match(await next('terminal.exit'), { exit_code: 3 })
})

t.test('a person closes a terminal', async (t) => {
  const worker = await s.worker({ worker_instance_id: 'desk', capabilities: ['terminal'] })
  t.teardown(() => worker.close())
  const environment = await s.ok('environment.attach', { name: 'desk', worker_instance_id: 'desk' })
  const { say } = await person(String(environment['id']))
  const { terminal_id } = await seen(worker, 'terminal.open')
  say({ type: 'terminal.close' })
  t.match(await seen(worker, 'terminal.close'), { terminal_id })
})
