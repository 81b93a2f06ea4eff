/** Nothing but the journal counts: whatever is derived from it may be deleted, and every answer is the same, byte for byte. */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import t from 'tap'
import { api, type RowName } from '../../protocol/api.ts'
import type { Row } from '../../protocol/contract.ts'
import { requestOf, service } from '../service.ts'
import { acting, failing, ids, instant, listOf, sleeping, until, waiting } from './given.ts'

const s = await service()
t.teardown(() => s.stop())

/** Delete the buckets of snapshots and checkpoints. */
async function deleteStates(): Promise<void> {
  const connection = await connect({ servers: s.server.url })
  const manager = await jetstreamManager(connection)
  const names: string[] = []
  for await (const { config } of manager.streams.list()) if (config.name.startsWith('KV_STATE_')) names.push(config.name)
  for (const name of names) await manager.streams.delete(name)
  await connection.close()
  t.ok(names.length > 0, 'there were snapshots')
}
/** Delete what the views keep. */
function deleteViews(): void {
  const files = readdirSync(s.data).filter((name) => name.startsWith('node-')).flatMap((name) => readdirSync(join(s.data, name, 'views')).map((file) => join(name, 'views', file))).filter((name) => /\.sqlite/.test(name))
  for (const name of files) rmSync(join(s.data, name))
  t.ok(files.length > 0, 'there were views')
}

const worker = await s.worker({ action_names: ['do', 'break'], worker_instance_id: 'w-restart' })
const workflow = await s.ok('workflow.create', { name: 'Flow', spec: sleeping(), tags: { a: 'b' } })
await s.ok('workflow.update', { id: workflow['id'], spec: waiting(), description: 'two' })
await s.ok('workflow.delete', { id: (await s.ok('workflow.create', { name: 'Gone', spec: instant() }))['id'] })
const principal = await s.ok('principal.create', { name: 'bot', role_ids: ['role_editor'] })
const key = await s.ok('key.create', { name: 'bot key', principal_id: principal['id'] })
await s.ok('key.revoke', { id: (await s.ok('key.create', { name: 'gone' }))['id'] })
const organization = await s.ok('key.create_organization', { name: 'org key', role: 'Viewer' })
await s.ok('project.create', { name: 'Other', external_ref: 'x/1' })
await s.ok('project.delete', { project: (await s.ok('project.create', { name: 'Deleted' }))['handle'] })
const runs: string[] = []
const start = async (input: Record<string, unknown>) => {
  const { id } = await s.ok('run.start', input)
  runs.push(String(id))
  return String(id)
}
await start({ spec: instant({ n: '${{ input.n }}' }), input: { n: 1 }, external_id: 'e' })
const asleep = await start({ definition_id: workflow['id'], queue: 'q' })
await start({ spec: acting('nobody') })
await s.ok('run.cancel', { id: await start({ spec: sleeping() }), reason: 'no' })
await start({ spec: failing() })
const large = await start({ spec: waiting('big', {}, { output: { size: 'large' } }) })
await s.ok('run.signal', { id: large, name: 'big', payload: { text: 'x'.repeat(400_000) } })
const early = await start({ spec: { steps: [{ id: 'a', kind: 'wait_for_event', config: { event_type: 'signal.first' } }, { id: 'b', kind: 'wait_for_event', config: { event_type: 'signal.early' } }] } })
await s.ok('run.signal', { id: early, name: 'early', payload: { n: 1 } })
for (const [action, outcome] of [['do', { result: { n: 1 } }], ['break', { status: 'failed', error_type: 'Boom', error_message: 'no' }]] as const) {
  await start({ spec: acting(action) })
  await worker.report(await worker.job(), outcome)
}
const inDay = await start({ spec: waiting('never', { timeout: { duration: '24h' } }) })
worker.close()
await until(() => s.ok('worker.list'), ({ items }) => !JSON.stringify(items).includes('online'))
await until(() => s.ok('key.list_organization'), (keys) => listOf(keys).every(({ name, last_used_at }) => name !== 'root' || last_used_at !== undefined))

/** The answers of every row that reads, for every record there is. */
async function everything(): Promise<Record<string, string>> {
  const answers: Record<string, string> = {}
  for (const [name, row] of Object.entries(api) as [RowName, Row][]) {
    if (row.verb !== 'query' && row.shape.stream !== 'accept') continue
    const named: unknown[] = !row.route.includes(':id') ? [undefined] : name.startsWith('run.') ? runs : name.startsWith('workflow.') ? [workflow['id']]
      : name.startsWith('key.') ? [name.includes('organization') ? organization['id'] : key['id']] : name.startsWith('principal.') ? [principal['id']] : ['role_admin']
    for (const id of named) {
      const list = row.shape.query && JSON.stringify(row.shape.query).includes('"limit"')
      const { method, path } = requestOf(row, { ...(id !== undefined && { id }), ...(list && { limit: 200 }), ...(name === 'workflow.versions' && { include_spec: true }), ...(name === 'principal.list' && { include_disabled: true }) })
      const { status, text } = await s.raw(method, path)
      answers[`${name} ${String(id ?? '')}`] = `${status} ${text}`
    }
  }
  for (const id of runs.slice(0, 2)) answers[`stream ${id}`] = JSON.stringify(await s.follow('run.events', { id }, ({ event }) => event === 'run.suspended'))
  const last = listOf(await s.ok('run.events', { id: runs.at(-1), limit: 200 })).at(-1)?.['sequence']
  answers['feed'] = JSON.stringify(await s.follow('run.feed', { since: 0 }, ({ id }) => Number(id) >= Number(last)))
  return answers
}

const before = await everything()
const compare = async (t: Tap, how: string) => {
  const after = await everything()
  for (const [name, answer] of Object.entries(before)) t.equal(after[name], answer, `${how}: ${name}`)
}
type Tap = { equal(found: unknown, wanted: unknown, message: string): boolean }

t.test('the snapshot itself has something of every kind', async (t) => {
  t.ok(Object.values(before).every((answer) => !/^[45]/.test(answer)))
  t.equal(listOf(await s.ok('run.list', { limit: 200 })).length, runs.length)
})
t.test('a restart', async (t) => {
  await s.restart()
  await compare(t, 'restarted')
})
t.test('a restart without snapshots and checkpoints', async (t) => {
  await s.restart(deleteStates)
  await compare(t, 'without STATE')
})
t.test('a restart without views', async (t) => {
  await s.restart(deleteViews)
  await compare(t, 'without views')
})
t.test('a restart without either, after which work goes on where it was', async (t) => {
  await s.restart(async () => {
    await deleteStates()
    deleteViews()
  })
  await compare(t, 'without both')
  await s.ok('run.signal', { id: early, name: 'first' })
  t.match(await s.ok('run.get', { id: early }), { status: 'completed', result: { b: { event: { n: 1 } } } }, 'a stored signal is still there, once')
  await s.ok('run.signal', { id: asleep, name: 'go' })
  t.match(await s.ok('run.get', { id: asleep }), { status: 'completed', definition_version: 2 })
  await s.ok('run.resume', { id: inDay })
  const again = await s.worker({ action_names: ['nobody'] })
  const job = await again.job()
  t.equal(job['run_id'], runs[2], 'the job that waited is handed out')
  await again.report(job)
  t.match(await s.ok('run.get', { id: runs[2] }), { status: 'completed' })
  again.close()
  t.ok(ids(listOf(await s.ok('worker.list'))).length > 0)
})
