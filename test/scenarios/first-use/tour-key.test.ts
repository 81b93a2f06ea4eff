/** `baton tour` when the server whose key is known does not answer. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { programArguments } from '../../../nodes/commands/child.ts'

t.test('the tour uses the key of the server that it starts', async (t) => {
  const folder = t.testdir({ files: { 'a.txt': 'one\n' }, data: {} })
  const parts = ['--no-loop', '--no-agent', '--no-tables', '--no-coding']
  const words = ['tour', '--server', 'http://127.0.0.1:1', '--folder', `${folder}/files`, ...parts]
  const child = spawn(process.execPath, [...programArguments(), ...words], {
    env: { ...process.env, BATON_KEY: 'bat_of_another_server', BATON_DATA: `${folder}/data` },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.teardown(() => child.kill())
  const [shown, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    once(child, 'exit'),
  ])
  t.match(shown, /^No server answers at http:\/\/127\.0\.0\.1:1; starting one for the tour\.\n/)
  t.equal(code, 0, shown)
})
