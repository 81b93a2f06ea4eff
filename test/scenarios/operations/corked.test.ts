/** Every write of a gateway is corked. uWebSockets.js prints a warning for an uncorked write. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { sourceArguments } from '../../../nodes/commands/child.ts'

t.test('concurrent requests, streams and sockets cause no uncorked writes', async (t) => {
  const child = spawn(
    process.execPath,
    sourceArguments(join(import.meta.dirname, 'corked-load.ts')),
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  t.teardown(() => child.kill('SIGKILL'))
  const [said, code] = await Promise.all([
    text(child.stderr),
    new Promise((resolve) => child.once('exit', resolve)),
  ])
  t.equal(code, 0, said.slice(-2000))
  t.notMatch(said, /corked/)
})
