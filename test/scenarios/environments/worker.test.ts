/**
 * The worker of an environment as a process, against a real service. The environment is not a
 * record but a label that only this worker registers. Therefore, no host is needed, and the jobs
 * have no environment lease.
 */

import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { programArguments } from '../../../nodes/commands/child.ts'
import { environmentActions } from '../../../protocol/environments/actions.ts'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { type Received, runOf, start } from '../support/sockets.ts'

const s = await service()
t.teardown(() => s.stop())
const args = programArguments()

interface Started {
  readonly id: string
  readonly workspace: string
  readonly logs: string
  /** Resolves with the exit code, or the signal that ended the process. */
  readonly exited: Promise<string>
  kill(signal: NodeJS.Signals): void
}
/**
 * Starts the worker of an environment, and waits until it is registered.
 * @param folder contains its workspace and its logs.
 */
async function startWorker(
  t: Pick<Test, 'teardown' | 'testdir'>,
  id: string,
  variables: Readonly<Record<string, string>> = {},
  folder: string = t.testdir({ logs: {} }),
): Promise<Started> {
  const [workspace, logs] = [join(folder, 'workspace'), join(folder, 'logs')]
  const child = spawn(process.execPath, [...args, 'environment-worker'], {
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      ...Object.fromEntries(
        Object.entries({
          API_URL: s.url,
          API_KEY: s.key,
          PROJECT: 'default',
          WORKER_ENVIRONMENT_ID: id,
          RUNTIME_WORKSPACE: workspace,
          WORKER_LOG_DIR: logs,
          ...variables,
        }).map(([name, value]) => [`ACME_${name}`, value]),
      ),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = new Promise<string>((done) =>
    child.once('exit', (code, signal) => done(signal ?? String(code))),
  )
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await until(
    () => s.ok('worker.list'),
    ({ items }) =>
      (items as unknown as Received[]).some(({ environment_id }) => String(environment_id) === id),
    `the worker of ${id} registers`,
  )
  return { id, workspace, logs, exited, kill: (signal) => void child.kill(signal) }
}
async function ended(id: string, action: string, parameters = {}): Promise<Received> {
  const run = await start(s, action, { environment_id: id, parameters })
  await s.follow('run.events', { id: run['id'] }, () => false)
  return runOf(s, run)
}
async function result(id: string, action: string, parameters = {}): Promise<Received> {
  const run = await ended(id, action, parameters)
  t.match(run, { status: 'completed' }, `${action}: ${JSON.stringify(run)}`)
  return (run['result'] as unknown as { do: Received }).do
}

t.test('every action of an environment', async (t) => {
  const worker = await startWorker(t, 'bench-1', { WORKER_KEEP_WARM: 'forever' })
  const { id, workspace, logs } = worker
  const { items } = await s.ok('worker.list')
  const [listed] = items as unknown as Record<string, string[]>[]
  t.match(listed, { name: 'environment worker', environment_id: id, concurrency_limit: 4 })
  for (const name of [...Object.keys(environmentActions), 'print', 'fail', 'json', 'random'])
    t.ok(listed?.['action_names']?.includes(name), name)
  t.match(listed?.['capabilities'], ['keep-warm:established', 'keep-warm:lifetime'])

  t.match(await result(id, 'environment.files.write', { path: 'a/b.txt', content: 'grün' }), {
    path: 'a/b.txt',
    bytes_written: 5,
  })
  t.equal(readFileSync(join(workspace, 'a/b.txt'), 'utf8'), 'grün')
  t.match(await result(id, 'environment.files.read', { path: 'a/b.txt' }), { content: 'grün' })
  t.match(await result(id, 'environment.files.list', { path: 'a' }), {
    entries: [{ path: 'a/b.txt', dir: false, size: 5 }],
  })
  const command = 'git init -q . && echo $ACME_WORKER_ENVIRONMENT_ID && cat a/b.txt && exit 3'
  t.match(await result(id, 'environment.bash', { command }), {
    stdout: 'bench-1\ngrün',
    stderr: '',
    exit_code: 3,
  })
  t.match(await result(id, 'environment.git.status'), { stdout: /\?\? a\// })
  await result(id, 'environment.bash', { command: 'git add . && echo more >> a/b.txt' })
  t.match(await result(id, 'environment.git.diff'), { stdout: /\+grünmore/ })

  const published = await result(id, 'environment.artifact.publish', {
    path: 'a/b.txt',
    name: 'report.txt',
    tags: { kind: 'test' },
  })
  t.match(published, { type: 'artifact', name: 'report.txt', mime: 'text/plain', size: 10 })
  const artifact_id = published['id']
  t.match(await s.ok('artifact.get', { artifact_id }), { metadata: { kind: 'test' } })
  t.match(await result(id, 'environment.artifact.download', { artifact_id, dest: 'copy/' }), {
    artifact_id,
    path: 'copy/report.txt',
    bytes_written: 10,
  })
  t.equal(readFileSync(join(workspace, 'copy/report.txt'), 'utf8'), 'grünmore\n')
  const small = { artifact_id, dest: 'small', max_bytes: 9 }
  t.match(await ended(id, 'environment.artifact.download', small), { status: 'failed' })
  t.notOk(existsSync(join(workspace, 'small')))

  t.match(await result(id, 'environment.files.delete', { path: 'a', recursive: true }), {
    deleted: true,
  })
  t.match(await result(id, 'environment.logs.tail', { tail: 500 }), {
    log_name: 'worker',
    content: /completed environment\.bash job_/,
  })
  t.notOk(readFileSync(join(logs, 'worker.log'), 'utf8').includes(s.key))
  // The environment does not exist in the service, so the service issues no credentials.
  const repository = { repo_full_name: 'acme/app' }
  const refused = await ended(id, 'environment.git.clone', repository)
  t.match(refused, { status: 'failed' })
  t.match(JSON.stringify(refused), /not_found/)
  t.match(await result(id, 'print', { message: 'hello' }), { output: 'hello' })
})

t.test('a worker without work ends with 0 after its keep-warm time', async (t) => {
  const { id, logs, exited } = await startWorker(t, 'bench-2', { WORKER_KEEP_WARM: 'on-demand' })
  const both = [1, 2].map(() => result(id, 'environment.bash', { command: 'sleep 1; echo done' }))
  for (const one of await Promise.all(both)) t.match(one, { stdout: 'done\n' })
  t.equal(await exited, '0')
  t.match(readFileSync(join(logs, 'worker.log'), 'utf8'), /no work for the keep-warm time/)
})

t.test('a stopped worker returns its job, and the next worker performs it', async (t) => {
  const folder = t.testdir({ logs: {} })
  const first = await startWorker(t, 'bench-3', {}, folder)
  const command = 'if [ -e again ]; then echo second; else touch again begun; sleep 86305; fi'
  const run = await start(s, 'environment.bash', {
    environment_id: first.id,
    parameters: { command },
  })
  const begun = join(first.workspace, 'begun')
  await until(
    async () => ({ begun: existsSync(begun) }) as unknown as Received,
    (state) => Boolean(state['begun']),
    'the command runs',
  )
  first.kill('SIGTERM')
  t.equal(await first.exited, '0')
  await startWorker(t, first.id, {}, folder)
  await s.follow('run.events', { id: run['id'] }, () => false)
  t.match(await runOf(s, run), { status: 'completed', result: { do: { stdout: 'second\n' } } })
})

t.test('a worker that the service rejects ends with 1', async (t) => {
  const folder = t.testdir({})
  mkdirSync(join(folder, 'logs'))
  writeFileSync(join(folder, 'logs', 'worker.log'), 'earlier\n')
  const child = spawn(process.execPath, [...args, 'environment-worker'], {
    env: {
      PATH: process.env['PATH'],
      SERVICE_API_URL: s.url,
      SERVICE_API_KEY: `${s.key.slice(0, -4)}0000`,
      SERVICE_WORKER_ENVIRONMENT_ID: 'bench-4',
      SERVICE_RUNTIME_WORKSPACE: join(folder, 'workspace'),
      SERVICE_WORKER_LOG_DIR: join(folder, 'logs'),
    },
    stdio: 'ignore',
  })
  t.equal(await new Promise((done) => child.once('exit', done)), 1)
  t.match(readFileSync(join(folder, 'logs', 'worker.log'), 'utf8'), /^earlier\n[\s\S]*refused: /)
})
