/** Settings, keep-warm times, the fence, the log and the terminal of the environment worker. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { tailLog } from '../../../client/environment/actions/logs.ts'
import { Fence } from '../../../client/environment/fence.ts'
import { IdleTimer, keepWarmOf } from '../../../client/environment/keep-warm.ts'
import { LogFile } from '../../../client/environment/log.ts'
import { startEnvironmentWorker } from '../../../client/environment/program.ts'
import { Secrets } from '../../../client/environment/secrets.ts'
import { settingsOf } from '../../../client/environment/settings.ts'
import { openTerminal } from '../../../client/environment/terminal.ts'
import type { Clock } from '../../../client/worker/ports.ts'
import { jobOf } from '../worker/stand.ts'
import { execute, failure } from './support.ts'

const variables = (brand: string, more: Record<string, string> = {}) =>
  Object.fromEntries(
    Object.entries({
      API_URL: 'http://a.test,http://b.test',
      API_KEY: 'key',
      PROJECT: 'acme',
      WORKER_ENVIRONMENT_ID: 'env_1',
      RUNTIME_WORKSPACE: '/w',
      ...more,
    }).map(([name, value]) => [`${brand}_${name}`, value]),
  )

t.test('settings are read with the prefix of any brand', async (t) => {
  for (const brand of ['SERVICE', 'ACME', 'A_B2'])
    t.match(settingsOf(variables(brand)), {
      brand,
      url: ['http://a.test', 'http://b.test'],
      key: 'key',
      project: 'acme',
      environment_id: 'env_1',
      workspace: '/w',
      queues: undefined,
      actions: undefined,
      concurrency: 4,
      keepWarm: { idle_ms: 120_000 },
      quiet: false,
    })
  t.match(
    settingsOf(
      variables('X', {
        QUEUES: 'old',
        WORKER_QUEUES: 'a, b,',
        WORKER_ACTION_NAMES: 'print',
        WORKER_CONCURRENCY: '7',
        WORKER_KEEP_WARM: 'forever',
        WORKER_LOG_DIR: '/e/logs',
        LOG_LEVEL: 'error',
      }),
    ),
    {
      queues: ['a', 'b'],
      actions: ['print'],
      concurrency: 7,
      keepWarm: { idle_ms: Number.POSITIVE_INFINITY },
      logs: '/e/logs',
      fence: '/e/fence',
      quiet: true,
    },
  )
  const other = { OTHER_WORKER_ENVIRONMENT_ID: 'env_2' }
  t.match(settingsOf({ ...variables('X'), ...other }), { brand: 'X' })
})
t.test('addresses may have spaces around them', async (t) => {
  const { url } = settingsOf(variables('X', { API_URL: ' http://a.test , http://b.test, ' }))
  t.strictSame(url, ['http://a.test', 'http://b.test'])
})
t.test('a worker that cannot be created leaves nothing open', async (t) => {
  const { TMPDIR } = process.env
  const temporary = mkdtempSync(join(tmpdir(), 'baton-program-'))
  t.teardown(() => {
    rmSync(temporary, { recursive: true })
    if (TMPDIR === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = TMPDIR
  })
  process.env['TMPDIR'] = temporary
  const given = variables('X', { API_URL: 'nowhere', RUNTIME_WORKSPACE: t.testdir({}) })
  await t.rejects(
    startEnvironmentWorker(settingsOf(given), given, () => {}),
    { code: 'invalid_options' },
  )
  t.strictSame(readdirSync(temporary), [], 'the folder of the credential helper is removed')
})
t.test('the fence is never kept in the workspace', async (t) => {
  const fenceOf = (more: Record<string, string>) => settingsOf(variables('X', more)).fence
  t.equal(fenceOf({}), undefined)
  t.equal(fenceOf({ WORKER_LOG_DIR: '/w/logs' }), undefined)
  t.equal(fenceOf({ WORKER_STATE_DIR: '/w' }), undefined)
  t.equal(fenceOf({ WORKER_STATE_DIR: '/s', WORKER_LOG_DIR: '/e/logs' }), '/s/fence')
})
t.test('missing and invalid settings are named', async (t) => {
  const faultOf = (given: Record<string, string>) => {
    try {
      settingsOf(given)
    } catch (error) {
      return (error as Error).message
    }
    return undefined
  }
  t.match(faultOf({}), /<BRAND>_WORKER_ENVIRONMENT_ID/)
  for (const name of ['API_URL', 'API_KEY', 'RUNTIME_WORKSPACE'])
    t.equal(faultOf(variables('X', { [name]: '' })), `X_${name} is not set.`)
  t.match(faultOf(variables('X', { WORKER_KEEP_WARM: 'soon' })), /X_WORKER_KEEP_WARM/)
  t.match(faultOf(variables('X', { WORKER_CONCURRENCY: '0' })), /X_WORKER_CONCURRENCY/)
  t.match(faultOf({ ...variables('X'), ...variables('Y') }), /Several variables/)
})

t.test('keep-warm times', async (t) => {
  const idle = (text?: string) => keepWarmOf(text)?.idle_ms
  t.equal(idle(), 120_000)
  t.equal(idle(''), 120_000)
  for (const text of ['on-demand', 'ondemand', '0s']) t.equal(idle(text), 1000, text)
  t.match(keepWarmOf('on-demand'), { first_ms: 30_000 })
  t.equal(idle('5m'), 300_000)
  t.equal(idle('1h30m'), 5_400_000)
  t.equal(idle('1500ms'), 1500)
  for (const text of ['forever', 'lifetime', 'always', 'true', 'Forever'])
    t.equal(idle(text), Number.POSITIVE_INFINITY, text)
  for (const text of ['5', 'm', '-5m', '5 m', '5d']) t.equal(idle(text), undefined, text)
})
/** Creates a clock that only records its timers. Tests run the timers. */
function timers() {
  const pending = new Map<number, { ms: number; run: () => void }>()
  let made = 0
  const clock: Clock = {
    now: () => 0,
    random: () => 0,
    unique: () => '',
    after: (ms, run) => {
      const id = made++
      pending.set(id, { ms, run })
      return () => pending.delete(id)
    },
  }
  return { clock, waits: () => [...pending.values()].map(({ ms }) => ms), pending }
}
t.test('the worker is released after its keep-warm time without a job', async (t) => {
  const { clock, waits, pending } = timers()
  let released = 0
  const idle = new IdleTimer(clock, { idle_ms: 10, first_ms: 50 }, () => void released++)
  t.strictSame(waits(), [])
  idle.registered()
  t.strictSame(waits(), [50])
  idle.started()
  idle.started()
  idle.ended()
  idle.registered()
  t.strictSame(waits(), [], 'a job is running')
  idle.ended()
  t.strictSame(waits(), [10])
  for (const { run } of pending.values()) run()
  t.equal(released, 1)
  idle.stop()
  t.strictSame(waits(), [])
  const forever = timers()
  const times = { idle_ms: Number.POSITIVE_INFINITY, first_ms: Number.POSITIVE_INFINITY }
  const never = new IdleTimer(forever.clock, times, () => {})
  never.registered()
  never.started()
  never.ended()
  t.strictSame(forever.waits(), [])
})

t.test('jobs of an earlier lease are refused before they do anything', async (t) => {
  const file = join(t.testdir({}), 'fence')
  let calls = 0
  const guarded = (fence: Fence) => fence.guard(() => ++calls)
  const job = (fence?: unknown) => ({ job: jobOf('x', { spec: { environment: { fence } } }) })
  const first = guarded(new Fence(file, t.fail))
  await execute(first, {}, job(3))
  await execute(first, {}, job(3))
  await execute(first, {}, { job: jobOf('x') })
  t.match(await failure(first, {}, job(2)), { name: 'environment_fenced', message: /lease 2/ })
  t.equal(calls, 3)
  const second = guarded(new Fence(file, t.fail))
  t.match(await failure(second, {}, job(2)), { name: 'environment_fenced' }, 'after a restart')
  await execute(second, {}, job(4))
  t.match(await failure(second, {}, job(3)), { name: 'environment_fenced' })
  const lines: string[] = []
  const unwritable = guarded(new Fence(join(file, 'none'), (line) => lines.push(line)))
  await execute(unwritable, {}, job(1))
  await execute(unwritable, {}, job(2))
  t.match(await failure(unwritable, {}, job(1)), { name: 'environment_fenced' })
  t.match(lines, [/in memory/])
  t.equal(lines.length, 1)
})
t.test('a job is admitted if and only if no later lease was seen', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 6 })), async (numbers) => {
      const fence = new Fence(undefined, () => {})
      let highest = 0
      for (const number of numbers) {
        const job = jobOf('x', { spec: { environment: { fence: number } } })
        const admitted = await execute(
          fence.guard(() => ({})),
          {},
          { job },
        ).then(
          () => true,
          () => false,
        )
        if (admitted !== number >= highest) return false
        highest = Math.max(highest, number)
      }
      return true
    }),
  )
})

t.test('the log stays bounded, and its end is read', async (t) => {
  const folder = join(t.testdir({}), 'logs')
  const log = new LogFile(folder)
  for (let n = 0; n < 3000; n++) log.write(`${n} ${'x'.repeat(1000)}`)
  log.write('the\nlast key-of-the-worker')
  const file = join(folder, 'worker.log')
  t.ok(statSync(file).size < 2.1 * 1_048_576)
  t.match(readFileSync(file, 'utf8'), /^\d+ x+\n/, 'it begins with a whole line')
  const secrets = new Secrets()
  secrets.add('key-of-the-worker')
  const tail = tailLog(folder, secrets)
  t.match(await execute(tail, { tail: 1 }), {
    log_name: 'worker',
    path: file,
    tail: 1,
    content: 'the last [redacted]\n',
  })
  const { content } = await execute(tail, { max_bytes: 2500 })
  t.match(content, /^2998 x+\n2999 x+\nthe last/)
  writeFileSync(join(folder, 'stderr.log'), 'no line feed')
  t.match(await execute(tail, { log_name: 'stderr' }), { content: 'no line feed' })
  t.match(await failure(tail, { log_name: 'bootstrap' }), { name: 'not_found' })
  t.match(await failure(tail, { log_name: '../x' }), { name: 'invalid_parameters' })
  t.match(await failure(tailLog(undefined, secrets)), { name: 'not_found' })
})

t.test('a terminal has a size, takes input and Ctrl-C, and ends with an exit code', async (t) => {
  const cwd = t.testdir({})
  const env = { PATH: process.env['PATH'] ?? '' }
  // This timer keeps the process alive, because an open terminal does not.
  const alive = setInterval(() => {}, 60_000)
  t.teardown(() => clearInterval(alive))
  const terminalOf = async (...command: string[]) => {
    const terminal = await openTerminal({ command, columns: 77, rows: 33, env, cwd })
    let output = ''
    const waiting: { text: string; done: () => void }[] = []
    terminal.onData((data) => {
      output += Buffer.from(data).toString()
      for (const { text, done } of waiting) if (output.includes(text)) done()
    })
    const exit = new Promise<number>((done) => terminal.onExit(({ exit_code }) => done(exit_code)))
    const shows = (text: string) =>
      new Promise<void>((done) => {
        waiting.push({ text, done })
        if (output.includes(text)) done()
      })
    return { terminal, exit, shows }
  }
  const { terminal, exit, shows } = await terminalOf('/bin/sh')
  terminal.write('tty; stty size; echo $TERM\n')
  await shows('/dev/pts/')
  await shows('33 77')
  await shows('xterm-256color')
  terminal.resize(100, 40)
  terminal.write('stty size\n')
  await shows('40 100')
  // The output `ready` shows that the shell with the trap is in the foreground.
  const trap = 'trap "echo ca""ught; exit" INT; echo rea""dy; while :; do sleep 0.05; done'
  terminal.write(`sh -c '${trap}'\n`)
  await shows('ready')
  terminal.write('\x03')
  await shows('caught')
  terminal.write(Buffer.from('echo "<gr""ün>"; exit 7\n'))
  await shows('<grün>')
  t.equal(await exit, 7)
  terminal.write('ignored')
  terminal.resize(1, 1)
  const hung = await terminalOf(
    '/bin/sh',
    '-c',
    'trap "" HUP; echo ready; while :; do sleep 1; done',
  )
  await hung.shows('ready')
  hung.terminal.close()
  t.equal(await hung.exit, 137, 'it ignores the hangup and is killed')
})
