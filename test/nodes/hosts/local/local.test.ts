/** The provider `local` with every kind of isolation: its operations, restarts and leftovers. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isolationKinds } from '../../../../nodes/hosts/local/isolation.ts'
import { createLocalProvider } from '../../../../nodes/hosts/local/provider.ts'
import { ProviderFault } from '../../../../nodes/hosts/provider.ts'
import {
  dataFolder,
  limits,
  openLocal,
  PROJECT,
  processesWith,
  skipped,
  stage,
  task,
  until,
} from './stage.ts'

const forever = 'exec sleep 1000000'

for (const kind of isolationKinds)
  t.test(`isolation ${kind}`, { skip: skipped[kind] }, async (t) => {
    await t.test('a worker runs in an empty workspace with its variables', async (t) => {
      const { run, provider, data, gateway_url } = await stage(t, kind)
      const { exit, output } = await run(
        'env_1',
        'test "$PWD" = "$ACME_RUNTIME_WORKSPACE" && test -z "$(ls)" && echo one >file && ' +
          'echo two >"$ACME_WORKER_LOG_DIR/worker.log" && echo "$ACME_API_KEY $(cat file)"; ' +
          'echo three >&2; echo "$ACME_API_URL"',
      )
      t.match(exit, { project: PROJECT, environment_id: 'env_1', generation: 1 })
      t.match(exit, { idle: true, exit_code: 0 })
      const url = kind === 'sandbox' ? 'http://127.0.0.1:18480' : gateway_url
      t.equal(output, `credential-of-the-worker one\n${url}\n`)
      const log = async (log_name: 'worker' | 'stderr' | 'bootstrap') =>
        provider.logs('env_1', { log_name, tail: 200, max_bytes: 64_000 })
      t.strictSame(await log('worker'), { content: 'two\n', truncated: false })
      t.strictSame(await log('stderr'), { content: 'three\n', truncated: false })
      t.match((await log('bootstrap'))?.content, /workspace created.*\n.*worker 1 started\n/)
      t.notMatch((await log('bootstrap'))?.content, /credential/)
      t.equal(
        await provider.logs('env_2', { log_name: 'stdout', tail: 1, max_bytes: 1 }),
        undefined,
      )
      t.equal(readFileSync(join(data, 'environments/env_1/workspace/file'), 'utf8'), 'one\n')
      t.equal(statSync(join(data, 'environments/env_1/workspace')).mode & 0o777, 0o700)
    })

    await t.test('the exit code of a worker is reported', async (t) => {
      const { run, provider } = await stage(t, kind)
      const { exit } = await run('env_1', 'exit 7', { generation: 4 })
      t.match(exit, { generation: 4, idle: false, exit_code: 7, error: /exit code 7/ })
      t.strictSame(await provider.inspect(), [{ project: PROJECT, environment_id: 'env_1' }])
    })

    await t.test('the end of a worker is reported when the disk accepts nothing', async (t) => {
      const { provision, start, exitOf, data } = await stage(t, kind)
      await provision('env_1')
      await start('env_1', 'while [ ! -e go ]; do sleep 0.1; done; exit 3')
      // A file cannot replace a folder.
      const control = join(data, 'environments/env_1/control.json')
      rmSync(control)
      mkdirSync(control)
      writeFileSync(join(data, 'environments/env_1/workspace/go'), '')
      t.match(await exitOf('env_1'), { exit_code: 3, idle: false })
    })

    await t.test('the next start ends the worker and its descendants', async (t) => {
      const { provision, start, provider, exitOf, log } = await stage(t, kind)
      await provision('env_1')
      // One descendant leaves the process group and the session of the worker, and ignores SIGTERM.
      const left = `setsid sh -c 'trap "" TERM; echo ready; exec sleep 1000001' & ${forever}`
      await start('env_1', left)
      t.match(await provider.inspect(), [{ generation: 1 }])
      await until(() => processesWith('sleep', '1000001').length > 0)
      await start('env_1', 'exit 1', { generation: 2 })
      t.strictSame(processesWith('1000001'), [])
      t.match(
        await exitOf('env_1', 2),
        { generation: 2, exit_code: 1 },
        'only the second is reported',
      )
      t.match(
        await log('env_1', 'bootstrap'),
        /worker 1 started\n.*ended on request\n.*worker 2 st/,
      )
    })

    await t.test('files stay over restarts of the worker and of the host', async (t) => {
      const first = await stage(t, kind)
      await first.run('env_1', 'echo kept >file')
      await first.provider.close()
      const { provider, start, exitOf, log } = await stage(t, kind, { data: first.data })
      t.equal(provider.place, first.provider.place)
      t.strictSame(await provider.inspect(), [{ project: PROJECT, environment_id: 'env_1' }])
      await start('env_1', 'cat file', { generation: 2 })
      await exitOf('env_1', 2)
      t.equal(await log('env_1'), 'kept\n')
    })

    await t.test('an environment is removed with its processes and all of its files', async (t) => {
      const { provision, start, provider, data, log } = await stage(t, kind)
      await provision('env_1')
      const deep = 'd=dddddddddddddddddddddddddddddddddddddddddddddddddd; i=0; '
      await start(
        'env_1',
        `setsid sleep 1000002 & mkdir closed && touch closed/file && chmod 0 closed; ${deep}` +
          `(while [ $i -lt 150 ]; do mkdir $d && cd $d; i=$((i+1)); done); echo made; ${forever}`,
      )
      // The path of the deepest folder is longer than the system accepts.
      await until(async () => (await log('env_1')) === 'made\n')
      await provider.destroy('env_1')
      t.strictSame(processesWith('1000002'), [])
      t.strictSame(await provider.inspect(), [])
      t.notOk(existsSync(join(data, 'environments/env_1')))
      t.strictSame(
        readdirSync(join(data, 'environments'), { withFileTypes: true }).filter((entry) =>
          entry.isDirectory(),
        ),
        [],
      )
      await provider.destroy('env_1')
    })

    await t.test('preparing again begins with an empty workspace', async (t) => {
      const { run, provision, start, exitOf, log } = await stage(t, kind)
      await run('env_1', 'echo one >file')
      await provision('env_1')
      await start('env_1', 'ls', { generation: 2 })
      await exitOf('env_1', 2)
      t.equal(await log('env_1'), '')
    })

    await t.test('what cannot be started is reported, and leaves no process', async (t) => {
      const { provision, start, provider, log } = await stage(t, kind)
      await t.rejects(start('env_1', forever), new ProviderFault(), 'it was not prepared')
      await provision('env_1')
      await t.rejects(start('env_1', '', { command: ['/no/such/program', 'secret'] }), {
        message: /cannot be started: spawn \/no\/such\/program ENOENT/,
      })
      t.match(await log('env_1', 'bootstrap'), /worker 1 not started: .*ENOENT/)
      const abort = AbortSignal.abort()
      await t.rejects(
        provider.startWorker(
          task('env_1'),
          {
            generation: 3,
            command: ['/bin/sh', '-c', 'exec sleep 1000003'],
            variables: {},
            gateway_url: 'http://127.0.0.1:1',
            url_variable: 'A',
            workspace_variable: 'B',
            log_variable: 'C',
            allowed_hosts: [],
          },
          abort,
        ),
        new ProviderFault(),
      )
      t.strictSame(processesWith('1000003'), [])
      t.strictSame(await provider.inspect(), [{ project: PROJECT, environment_id: 'env_1' }])
    })

    await t.test('workers end when the host stops, and may end their work before', async (t) => {
      const { provision, start, provider, data, log } = await stage(t, kind)
      await provision('env_1')
      const command = 'trap "echo last >file; exit 0" TERM; echo set; while :; do sleep 0.1; done'
      await start('env_1', command)
      await until(async () => (await log('env_1')) === 'set\n')
      await provider.close()
      t.equal(readFileSync(join(data, 'environments/env_1/workspace/file'), 'utf8'), 'last\n')
    })

    await t.test('what an interrupted operation left is removed at the next start', async (t) => {
      const first = await stage(t, kind)
      await first.provider.close()
      const root = join(first.data, 'environments')
      for (const name of ['env_2', '.removed-1']) {
        mkdirSync(join(root, name, 'workspace/closed'), { recursive: true })
        writeFileSync(join(root, name, 'workspace/closed/file'), '')
        chmodSync(join(root, name, 'workspace/closed'), 0)
      }
      const { provider } = await stage(t, kind, { data: first.data })
      t.strictSame(await provider.inspect(), [])
      t.notOk(existsSync(join(root, 'env_2')))
      t.notOk(existsSync(join(root, '.removed-1')))
    })
  })

t.test('ids that are no file names are refused', { skip: skipped.none }, async (t) => {
  const { provision, provider, data } = await stage(t, 'none')
  writeFileSync(join(data, 'control.json'), '{}')
  for (const id of ['..', '../x', '.', '', 'a/b', '.removed-x']) {
    await t.rejects(provision(id), new ProviderFault())
    await t.rejects(provider.destroy(id), new ProviderFault())
  }
  t.ok(existsSync(join(data, 'control.json')))
})

t.test('a machine without isolation refuses, and says what to do', async (t) => {
  const data = dataFolder(t)
  const unsafe = await createLocalProvider({ data, limits, unsafe: false, kinds: ['none'] })
  t.match(unsafe, { unavailable: /Install bubblewrap .*BATON_UNSAFE_LOCAL=1/ })
})

t.test('a plain process is only the last choice, with a warning', async (t) => {
  const { provider, warnings } = await stage(t, 'none')
  t.match(warnings, [/without a sandbox.*NO ISOLATION.*can read the data folder/])
  t.match(provider.isolation, /NO ISOLATION.*limits by /)
})

t.test('one process uses a data folder', { skip: skipped.none }, async (t) => {
  const data = dataFolder(t)
  const options = { data, limits, unsafe: true, kinds: ['none'] } as const
  const root = join(data, 'environments')
  mkdirSync(root)
  // Process 1 stands in for another host: it exists while the machine runs, and is not this
  // process.
  const [, , ...fields] = readFileSync('/proc/1/stat', 'utf8').split(' ')
  writeFileSync(join(root, 'owner.json'), JSON.stringify({ pid: 1, started: fields[19] }))
  t.match(await createLocalProvider(options), { unavailable: /process 1 runs environments/ })
  // A different start time means that the process id was reused.
  writeFileSync(join(root, 'owner.json'), JSON.stringify({ pid: 1, started: '-1' }))
  const provider = await openLocal(options)
  await provider.close()
  rmSync(root, { recursive: true })
})
