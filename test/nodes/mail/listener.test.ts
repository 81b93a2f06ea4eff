/** The limit on the duration of an SMTP connection, tested with a manual clock. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import type { World } from '../../../gateway/ports.ts'
import { listenForMail } from '../../../nodes/mail/listener.ts'
import { createMailReader } from '../../../nodes/mail/reader.ts'
import { ManualClock, silentLog } from '../../support/memory.ts'

t.test('a connection ends after ten minutes, even if it is not silent', async (t) => {
  const clock = new ManualClock()
  const world = {
    log: silentLog,
    later: (ms: number, run: () => void) => clock.later(ms, run),
  } as unknown as World
  const settings = { host: '127.0.0.1', port: 0, domain: 'agents.example', limit: 1000 }
  const listener = await listenForMail(world, settings, createMailReader(1000, [], world.later))
  t.teardown(() => listener.stop())
  const socket = connect(listener.port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'data')
  await clock.advance(599_000)
  socket.write('NOOP\r\n')
  const [reply] = (await once(socket, 'data')) as [Buffer]
  t.match(reply.toString(), /^250/)
  const closed = once(socket, 'close')
  await clock.advance(1000)
  await closed
  t.pass('the connection was ended')
})
