/**
 * The dashboard and the alerts refer only to metrics that exist. The operations manual describes
 * every metric, setting and alert, and no metric that does not exist.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { settingsTable } from '../../../nodes/config.ts'
import { errors } from '../../../protocol/errors.ts'
import { operatorGuide } from '../../docs/operator-guide.ts'
import { service } from '../../support/service.ts'
import { acting, instant, until } from '../support/given.ts'

const paper = (name: string): string =>
  readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8')
const manual = operatorGuide()
const PATTERN = /\b(?:baton|process|nodejs)_[a-z0-9_]+/g

const s = await service({ BATON_STATUS_PORT: '0' })
t.teardown(() => s.stop())
const worker = await s.worker({ action_names: ['act'] })
const leased = await s.ok('run.start', { spec: acting('act') })
await worker.job()
await s.ok('run.start', { spec: acting('nobody') })
await s.ok('run.start', { spec: instant() })
await s.refused('run.get', { id: 'run_00000000000000000000000000' }, 404, 'not_found')
const text = await until(
  async () => (await s.raw('GET', '/metrics')).text,
  (now) => /baton_jobs_leased\{shard="[\d.]+"\} 1/.test(now),
)
/** Names of the exported metrics, with and without the suffixes of histograms. */
const told = new Set([...text.matchAll(/^([a-z]\w+)[{ ]/gm)].map(([, name]) => name as string))
const declared = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name as string)
for (const name of declared) told.add(name)

t.test('a running service exports every metric of the dashboard and of the alerts', async (t) => {
  for (const file of ['grafana.json', 'alerts.yml']) {
    const used = [...new Set(paper(file).match(PATTERN))].filter(
      (name) => name !== 'nodejs_' && name !== 'process_',
    )
    t.ok(used.length > 10, `${file} uses metrics`)
    t.strictSame(
      used.filter((name) => !told.has(name)),
      [],
      file,
    )
  }
})
t.test('the manual describes every metric, every setting and every alert', async (t) => {
  t.strictSame(
    declared.filter((name) => name.startsWith('baton_') && !manual.includes(`\`${name}\``)),
    [],
    'metrics',
  )
  t.strictSame(
    [...new Set(manual.match(/\bbaton_[a-z0-9_]+/g))].filter((name) => !told.has(name)),
    [],
    'and no others',
  )
  t.strictSame(
    settingsTable()
      .filter(({ name }) => !manual.includes(`\`${name}\``))
      .map(({ name }) => name),
    [],
    'settings',
  )
  const alerts = [...paper('alerts.yml').matchAll(/alert: (\w+)/g)].map(
    ([, name]) => name as string,
  )
  t.strictSame(
    alerts.filter((name) => !manual.includes(`\`${name}\``)),
    [],
    'alerts',
  )
})
t.test('metrics have the values of the actual events', async (t) => {
  t.match(text, /baton_jobs_waiting\{shard="[\d.]+"\} 1/)
  t.match(text, /baton_refusals_total\{code="not_found"\} 1/)
  t.match(text, /baton_nodes_live\{role="shards"\} 1/)
  t.match(text, /baton_worker_sockets_open 1/)
  t.ok('not_found' in errors)
  for (const name of [
    'baton_shard_checkpoint_age_seconds',
    'baton_shard_mailbox_messages',
    'baton_shard_actors',
  ])
    t.equal((text.match(new RegExp(`^${name}\\{`, 'gm')) ?? []).length, 4, `${name} of four shards`)
  t.match(await s.ok('run.get', { id: leased['id'] }), { status: 'suspended' })
})
t.test('a node without a gateway reports its own status and metrics', async (t) => {
  const node = await s.add({ BATON_ROLES: 'shards', BATON_NODE_ID: 'shards-only' })
  const ask = async (path: string) => {
    const answer = await fetch(`${node.status ?? ''}${path}`)
    return { status: answer.status, text: await answer.text() }
  }
  t.match(await ask('/healthz'), { status: 200, text: /alive/ })
  t.match(
    await until(
      () => ask('/readyz'),
      ({ status }) => status === 200,
    ),
    { text: /ready/ },
  )
  t.match(await ask('/metrics'), { status: 200, text: /baton_shards_owned/ })
  t.match(await ask('/v1/projects'), { status: 404 })
  await t.rejects(
    s.add({ BATON_ROLES: 'shards', BATON_NODE_ID: 'shards-only' }),
    /another node is running with the id shards-only/,
    'node ids are unique',
  )
  node.leave()
  t.match(await ask('/readyz'), { status: 503, text: /stopping/ })
  await node.stop()
  await (await s.add({ BATON_ROLES: 'shards', BATON_NODE_ID: 'shards-only' })).stop()
})
worker.close()
