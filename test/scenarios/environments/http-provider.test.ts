/**
 * An HTTP provider with the adapter from the documentation and the stock worker: the life cycle of
 * an environment, and an adapter that is restarted, is unavailable, or refuses requests.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sourceOf } from '../../../nodes/boot/program.mjs'
import { service } from '../../support/service.ts'
import { adapterIn, adapterOfDocs, SECRET } from '../support/adapter.ts'
import { bash } from '../support/bash.ts'
import { until } from '../support/given.ts'

const root = join(import.meta.dirname, '../../..')
const loader = import.meta.resolve('@oxc-node/core/register')
const worker = [
  process.execPath,
  ...sourceOf(join(root, 'nodes/main.ts'), loader),
  'environment-worker',
]
const folder = t.testdir()
const adapter = await adapterIn(folder, worker)
const s = await service({
  BATON_ROLES: 'gateway,shards,views,executor,hosts',
  BATON_PROVIDERS: 'cloud,wrong',
  BATON_PROVIDER_ALIASES: 'sprites=cloud',
  BATON_HTTP_PROVIDERS: JSON.stringify([
    { name: 'cloud', url: adapter.url, secret: SECRET },
    { name: 'wrong', url: adapter.url, secret: 'some-other-secret' },
  ]),
})
t.teardown(async () => {
  await s.stop()
  await adapter.stop()
})

const kept = () => readdirSync(join(folder, 'environments'))
const get = (environment_id: string) =>
  s.ok('environment.get', { environment_id, include: 'worker_state,place,isolation' })
const status = (environment_id: string, wanted: string) =>
  until(
    () => get(environment_id),
    (one) => one['status'] === wanted,
  )
t.test('the adapter of the documentation has fewer than 100 lines', async (t) => {
  t.ok(adapterOfDocs().trimEnd().split('\n').length < 100)
})

t.test('an environment is created, used, woken again and destroyed', async (t) => {
  await adapter.start()
  const made = await s.ok('environment.create', { name: 'desk', provider: 'sprites' })
  t.equal(made['provider'], 'cloud', 'the alias')
  const id = made['id'] as unknown as string
  const ready = await status(id, 'ready')
  t.match(ready, { place: 'http/cloud', worker_state: 'stopped' })
  t.strictSame(kept(), [id])
  await s.ok('environment.start_worker', { environment_id: id, keep_warm: '0s' })
  t.equal(await bash(s, id, 'echo hello > kept.txt; cat kept.txt'), 'hello\n')
  await until(
    () => get(id),
    (one) => one['worker_state'] === 'stopped',
  )
  t.equal(await bash(s, id, 'cat kept.txt'), 'hello\n', 'a job wakes it, and files are kept')
  const logs = await s.ok('environment.worker_logs', { environment_id: id, log_name: 'worker' })
  t.match(logs['content'], /registered/)
  await s.ok('environment.delete', { environment_id: id })
  t.match(await status(id, 'destroyed'), { cleanup_status: 'succeeded' })
  t.strictSame(kept(), [])
})

t.test('an adapter that is restarted continues with its environments', async (t) => {
  const made = await s.ok('environment.create', { provider: 'cloud' })
  const id = made['id'] as unknown as string
  await status(id, 'ready')
  const before = await bash(s, id, 'echo $PPID > worker; cat worker')
  await adapter.stop()
  await adapter.start()
  t.equal(await bash(s, id, 'echo $PPID'), before, 'the worker kept running')
  process.kill(Number(before), 'SIGKILL')
  t.not(await bash(s, id, 'echo $PPID'), before, 'another worker continues')
  t.equal(await bash(s, id, 'cat worker'), before, 'with the files')
  await adapter.stop()
  await s.ok('environment.delete', { environment_id: id })
  t.match(await status(id, 'destroying'), { cleanup_status: 'pending' })
  await adapter.start()
  await status(id, 'destroyed')
  t.strictSame(kept(), [], 'what could not be removed is removed later')
})

t.test('a refusal of the adapter is shown', async (t) => {
  const made = await s.ok('environment.create', { provider: 'wrong' })
  const failed = await status(made['id'] as unknown as string, 'failed')
  t.equal(failed['error'], 'The provider wrong refused to create: wrong secret')
})
