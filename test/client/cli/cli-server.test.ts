/** Commands that follow and download, against a scripted server. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
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
