/** Calls that the console copies as commands, executed by the command line. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { cliOf } from '../../console/api/call-text.ts'
import { programArguments } from '../../nodes/commands/child.ts'

t.test('a call that is copied as a command is sent unchanged', async (t) => {
  const sent: unknown[] = []
  const server = createServer(async (request, answer) => {
    const body = await text(request)
    sent.push([request.method, request.url, body === '' ? undefined : JSON.parse(body)])
    answer.setHeader('content-type', 'application/json').end('{"items":[]}')
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const env = {
    ...process.env,
    BATON_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    BATON_KEY: 'bat_k',
  }
  for (const [name, input] of [
    ['run.list', { status: ['failed', 'queued'], q: "it's @here", limit: 5 }],
    ['run.cancel', { id: 'run_1', reason: '@$(rm) "x"' }],
    ['workflow.run', { id: 'w', input: { a: [null, 1.5, true] } }],
  ] as const) {
    const command = cliOf(name, { project: 'shop', ...input })
    // The shell replaces `npm run baton --` with the program.
    const script = command.replace('npm run baton --', '"$@"')
    const child = spawn('sh', ['-c', script, 'sh', process.execPath, ...programArguments()], {
      env,
      stdio: 'ignore',
    })
    t.strictSame(await once(child, 'exit'), [0, null], command)
  }
  t.match(sent, [
    ['GET', /^\/v1\/projects\/shop\/runs\?status=failed%2Cqueued&q=it%27s\+%40here&limit=5/],
    ['POST', '/v1/projects/shop/runs/run_1/cancel', { reason: '@$(rm) "x"' }],
    ['POST', /^\/v1\/projects\/shop\/workflows\/w\/run/, { input: { a: [null, 1.5, true] } }],
  ])
})
