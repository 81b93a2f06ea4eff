/** The command line as a process whose standard streams fail. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { program } from '../../../nodes/commands/child.ts'

t.test('output to a full disk is a mistake', { skip: !existsSync('/dev/full') }, async (t) => {
  const child = spawn(process.execPath, [...program(), 'completion', 'bash'], {
    stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
  })
  const [notes, [code]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ])
  t.match(notes, /^Standard output cannot be written: ENOSPC: [^\n]*\n$/)
  t.equal(code, 1)
})

t.test('a command succeeds although its remarks are not read', async (t) => {
  const env = { ...process.env, BATON_CONFIG: `${t.testdirName}-none/profiles.json` }
  const child = spawn(process.execPath, [...program(), 'profile', 'list'], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stderr.destroy()
  t.strictSame((await once(child, 'exit'))[0], 0)
})
