/** `environment.bash` with real processes: output, exit codes, timeouts, and leftover processes. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { bash } from '../../../client/environment/actions/bash.ts'
import { jobLog } from '../../../client/worker/logs.ts'
import { execute, failure, workspaceOf } from './support.ts'

/** Returns the ids of the live processes that have this argument. */
const running = (text: string): string[] =>
  readdirSync('/proc').filter((id) => {
    if (!/^\d+$/.test(id)) return false
    try {
      return readFileSync(`/proc/${id}/cmdline`, 'latin1').split('\0').includes(text)
    } catch {
      return false
    }
  })
async function appears(file: string): Promise<void> {
  while (!existsSync(file)) await new Promise((done) => setTimeout(done, 10))
}

t.test('output and exit code of a command', async (t) => {
  const world = await workspaceOf(t)
  const run = bash(world)
  t.strictSame(await execute(run, { command: 'echo out; echo err >&2; exit 3' }), {
    stdout: 'out\n',
    stderr: 'err\n',
    exit_code: 3,
  })
  t.match(await execute(run, { command: 'kill -TERM $$' }), { exit_code: 143 })
  await execute(run, { command: 'mkdir -p a/b && echo $WORD > a/b/file', env: { WORD: 'hi' } })
  t.match(await execute(run, { command: 'cat file; pwd', dir: 'a/b' }), {
    stdout: `hi\n${join(world.workspace.root, 'a/b')}\n`,
  })
  t.match(await execute(run, { command: 'read line; echo "<$line>"' }), { stdout: '<>\n' })
})

t.test('each line of the output is logged while the command runs', async (t) => {
  const world = await workspaceOf(t)
  const lines: string[] = []
  const log = jobLog(
    (level, text, fields) => {
      lines.push(`${level} ${String(fields?.['stream'])} ${text}`)
      if (text === 'begun') writeFileSync(join(world.inside, 'go'), '')
    },
    () => {},
  )
  // The command ends only after its first line has been logged.
  const command = "echo begun; while [ ! -e go ]; do sleep 0.01; done; printf 'a\\rb\\n\\nlast'"
  await execute(bash(world), { command }, { log })
  t.strictSame(lines, ['info stdout begun', 'info stdout a', 'info stdout b', 'info stdout last'])
  lines.length = 0
  const long = 'head -c 20000 /dev/zero | tr "\\0" "x" >&2'
  await execute(bash(world), { command: long }, { log })
  t.strictSame(
    lines.map((line) => line.length - 'info stderr '.length),
    [8000, 8000, 4000],
  )
})

t.test('commands get the credential of the worker, and no other variable of it', async (t) => {
  const world = await workspaceOf(t)
  const { stdout } = await execute(bash(world), { command: 'env' })
  t.match(stdout, /^ACME_API_KEY=the-key-of-the-worker$/m)
  t.notMatch(stdout, /KEEP_WARM|OTHER_SECRET/)
  t.match(stdout, /^TERM=dumb$/m)
  world.secrets.add('the-key-of-the-worker')
  const redacted = await execute(bash(world), { command: 'env; env >&2' })
  t.match(redacted, { stdout: /ACME_API_KEY=\[redacted\]/, stderr: /ACME_API_KEY=\[redacted\]/ })
})

t.test('a credential is redacted although it crosses a cut', async (t) => {
  const world = await workspaceOf(t)
  const secret = 'the-key/of-the-worker'
  world.secrets.add(secret)
  let logged = ''
  const log = jobLog(
    (_, text) => {
      logged += world.secrets.redact(text)
    },
    () => {},
  )
  // The lines of the log are divided after 8000 characters, and the result keeps both ends.
  for (const before of [7990, 15]) {
    const spaces = (count: number) => `printf '%*s' ${count} ''`
    const print = `printf '%s' "$W"`
    const command = [spaces(before), print, spaces(9000), print, spaces(15)].join('; ')
    const { stdout } = await execute(
      bash(world),
      { command, env: { W: secret }, max_output_bytes: 100 },
      { log },
    )
    t.notMatch(stdout, /the-key|the-worker/)
  }
  t.equal(logged.replaceAll(' ', ''), '[redacted]'.repeat(4))
})

t.test('invalid parameters start nothing', async (t) => {
  const run = bash(await workspaceOf(t))
  for (const parameters of [
    {},
    { command: '' },
    { command: 7 },
    { command: 'true', timeout_seconds: 0 },
    { command: 'true', timeout_seconds: 1.5 },
    { command: 'true', max_output_bytes: '7' },
    { command: 'true', env: ['A=1'] },
    { command: 'true', env: { 'A=B': '1' } },
    { command: 'true', env: { A: {} } },
    { command: 'true\0' },
  ])
    t.match(await failure(run, parameters), { name: 'invalid_parameters' }, parameters)
  t.match(await failure(run, { command: 'true', dir: '..' }), { name: 'outside_workspace' })
  t.match(await failure(run, { command: 'true', dir: 'none' }), { name: 'not_found' })
})

t.test('a command that the system does not accept fails with the remedy', async (t) => {
  const run = bash(await workspaceOf(t))
  t.match(await failure(run, { command: `: ${'x'.repeat(200_000)}` }), {
    name: 'not_started',
    message: /too long; write a file/,
  })
})

t.test('long output keeps its beginning and its end, and says so', async (t) => {
  const run = bash(await workspaceOf(t))
  const command = 'echo first; yes ä | head -c 3000000; echo; echo last'
  const { stdout } = await execute(run, { command, max_output_bytes: 1000 })
  t.match(stdout, /^first\n(ä\n)+\n\[\.\.\. \d+ bytes left out \.\.\.\]\n(.*\n)+last\n$/)
  t.ok(Buffer.byteLength(String(stdout)) <= 1000)
  t.notMatch(stdout, /\ufffd/)
  const most = await execute(run, {
    command: 'head -c 1000000 /dev/urandom; head -c 1000000 /dev/zero >&2',
    max_output_bytes: 10_000_000,
  })
  for (const text of [String(most['stdout']), String(most['stderr'])]) {
    t.ok(text.length > 10_000)
    t.ok(Buffer.byteLength(text) <= 128_000)
    t.ok(Buffer.byteLength(JSON.stringify(text)) <= 3 * 128_000)
  }
})

t.test('a timeout ends the command with everything that it started', async (t) => {
  const run = bash(await workspaceOf(t))
  // The command ignores the termination signal, and one process has left its session.
  const command = 'trap "" TERM; setsid sleep 86301 & sleep 86301 & echo started; wait'
  const ended = await execute(run, { command, timeout_seconds: 1 })
  t.match(ended, { stdout: 'started\n', stderr: /\[killed after 1 s\]/, exit_code: 124 })
  t.strictSame(running('86301'), [])
})

t.test('background processes neither delay the result nor stay', async (t) => {
  const run = bash(await workspaceOf(t))
  const command = 'sleep 86302 & setsid sleep 86302 & nohup sleep 86302 2>&1 & disown -a; echo ok'
  t.match(await execute(run, { command }), { stdout: 'ok\n', exit_code: 0 })
  t.strictSame(running('86302'), [])
})

t.test('a cancelled job is killed at once', async (t) => {
  const world = await workspaceOf(t)
  const stop = new AbortController()
  const command = 'trap "" TERM; sleep 86303 & touch begun; wait'
  const failed = failure(bash(world), { command }, { signal: stop.signal })
  await appears(join(world.inside, 'begun'))
  stop.abort(Object.assign(new Error('cancelled'), { name: 'AbortError' }))
  t.strictSame(await failed, { name: 'AbortError', message: 'cancelled' })
  t.strictSame(running('86303'), [])
})
