/**
 * An environment of the provider `local` from its creation to its end, with a real worker in a
 * sandbox: a command that a run requests, files that survive a restart of the worker, logs, and
 * destruction.
 */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { processesWith, skipped } from '../../nodes/hosts/local/stage.ts'
import { service } from '../../support/service.ts'
import { until } from '../support/given.ts'
import { start } from '../support/sockets.ts'

t.test('a command in a sandbox', { skip: skipped.sandbox }, async (t) => {
  const s = await service({ BATON_ROLES: 'gateway,shards,views,executor,hosts' })
  t.teardown(() => s.stop())
  const made = await s.ok('environment.create', { name: 'desk' })
  const environment_id = String(made['id'])
  const read = () =>
    s.ok('environment.get', { environment_id, include: 'worker_state,place,isolation' })
  await until(read, ({ status }) => status === 'ready')
  t.match(await read(), { place: /^local\//, isolation: /^sandbox \(bubblewrap\)/ })
  const [node = ''] = readdirSync(s.data).filter((name) => name.startsWith('node-'))
  const folder = join(s.data, node, 'environments', environment_id)
  writeFileSync(join(s.data, node, 'root.key'), 'secret')

  const bash = async (command: string) => {
    const record = await start(s, 'environment.bash', {
      environment_id,
      parameters: { command },
    })
    await s.follow('run.events', { id: record['id'] }, () => false)
    return s.ok('run.get', { id: record['id'] })
  }
  const first = await bash(
    `pwd; echo kept >file; cat ${s.data}/*/root.key; ls /proc | grep -c '^[0-9]'`,
  )
  t.match(first, { status: 'completed' })
  t.match(JSON.stringify(first), '/workspace')
  t.notMatch(JSON.stringify(first), /secret/)
  t.match(await read(), { worker_state: 'connected' })
  const logs = await s.ok('environment.worker_logs', { environment_id, log_name: 'bootstrap' })
  t.match(logs['content'], /worker 1 started/)
  const [begun, first_text] = (
    await s.follow(
      'stream.follow',
      {
        subscriptions: [
          {
            id: 'log',
            project: 'default',
            topic: 'environment_log',
            target: environment_id,
            filter: { log_name: 'bootstrap' },
          },
        ],
      },
      ({ data }) => data['event'] === 'log.text',
    )
  ).map(({ data }) => data)
  t.match(begun, { subscription: 'log', event: 'subscription.started' })
  t.match(first_text, {
    event: 'log.text',
    data: { log_name: 'bootstrap', text: logs['content'], reset: true, truncated: false },
  })

  t.match(JSON.stringify(await bash('cat file')), 'kept')
  await s.ok('environment.delete', { environment_id })
  await until(read, ({ status }) => status === 'destroyed')
  t.notOk(existsSync(folder))
  t.strictSame(processesWith(environment_id), [])
})
