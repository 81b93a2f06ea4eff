/**
 * The journal is the only source of truth: all derived state can be deleted, and every response
 * stays identical byte for byte.
 */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import t from 'tap'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { ended, ids, instant, listOf } from '../support/given.ts'
import { everything, fill } from '../support/record.ts'

const s = await service()
t.teardown(() => s.stop())

async function deleteStates(): Promise<void> {
  const connection = (
    await connectNats({ access: s.server.access, name: 'test', log: silentLog, role: 'test' })
  ).connection
  const manager = await jetstreamManager(connection)
  const names: string[] = []
  for await (const { config } of manager.streams.list())
    if (config.name.startsWith('KV_STATE_')) names.push(config.name)
  for (const name of names) await manager.streams.delete(name)
  await connection.close()
  t.ok(names.length > 0, 'there were snapshots')
}
/** Returns the subjects of the stored snapshots and checkpoints. */
async function snapshotKeys(): Promise<string[]> {
  const { connection } = await connectNats({
    access: s.server.access,
    name: 'test',
    log: silentLog,
    role: 'test',
  })
  const { streams } = await jetstreamManager(connection)
  const { state } = await streams.info('KV_STATE_0', { subjects_filter: '>' })
  await connection.close()
  return Object.keys(state.subjects ?? {})
}
function deleteViews(): void {
  const files = readdirSync(s.data)
    .filter((name) => name.startsWith('node-'))
    .flatMap((name) =>
      readdirSync(join(s.data, name, 'views')).map((file) => join(name, 'views', file)),
    )
    .filter((name) => /\.sqlite/.test(name))
  for (const name of files) rmSync(join(s.data, name))
  t.ok(files.length > 0, 'there were views')
}

const record = await fill(s)
const { runs, early, asleep, inDay } = record
const before = await everything(s, record)
const compare = async (t: Tap, how: string) => {
  const after = await everything(s, record)
  for (const [name, answer] of Object.entries(before))
    t.equal(after[name], answer, `${how}: ${name}`)
}
type Tap = { equal(found: unknown, wanted: unknown, message: string): boolean }

t.test('the project contains a record of every kind', async (t) => {
  t.strictSame(
    Object.entries(before).filter(([, answer]) => /^[45]/.test(answer)),
    [],
  )
  const listed = new Set(listOf(await s.ok('run.list', { limit: 200 })).map(({ id }) => String(id)))
  t.ok(
    runs.every((id) => listed.has(id)),
    'the list also contains runs of actions and loops',
  )
})
t.test('every response is the same after a restart', async (t) => {
  await s.restart()
  await compare(t, 'restarted')
})
t.test('every response is the same without snapshots and checkpoints', async (t) => {
  await s.restart(deleteStates)
  await compare(t, 'without STATE')
})
t.test('every response is the same without views', async (t) => {
  await s.restart(deleteViews)
  await compare(t, 'without views')
})
t.test('every response is the same without either, and work continues', async (t) => {
  await s.restart(async () => {
    await deleteStates()
    deleteViews()
  })
  await compare(t, 'without both')
  await s.ok('run.signal', { id: early, name: 'first' })
  t.match(
    await s.ok('run.get', { id: early }),
    { status: 'completed', result: { b: { event: { payload: { n: 1 } } } } },
    'a stored signal is applied once',
  )
  await s.ok('run.signal', { id: asleep, name: 'go' })
  t.match(await s.ok('run.get', { id: asleep }), { status: 'completed', definition_version: 2 })
  await s.ok('run.resume', { id: inDay })
  const again = await s.worker({ action_names: ['nobody'] })
  const job = await again.job()
  t.equal(job['run_id'], runs[2], 'the waiting job is handed out')
  await again.report(job)
  t.match(await s.ok('run.get', { id: runs[2] }), { status: 'completed' })
  again.close()
  t.ok(ids(listOf(await s.ok('worker.list'))).length > 0)
})
t.test('completed runs are known after a restart, without a snapshot of each', async (t) => {
  const headers = { 'idempotency-key': 'once' }
  const start = () => s.ok('run.start', { spec: instant() }, { headers })
  const keyed = { spec: instant(), idempotency_key: 'order' }
  const [first, second] = [await start(), await s.ok('run.start', keyed)]
  for (const { id } of [first, second]) t.match(await ended(s, id), { status: 'completed' })
  await s.restart()
  t.strictSame(await start(), first, 'a repeat gets the first answer')
  const { details } = await s.refused('run.start', keyed, 409, 'idempotency_key_conflict')
  t.strictSame(details, { run_id: second['id'], status: 'completed' })
  await s.refused('run.signal', { id: first['id'], name: 'go' }, 409, 'conflict')
  const keys = await snapshotKeys()
  t.notOk(
    keys.some((key) => key.includes(String(first['id']))),
    'no snapshot is stored',
  )
  t.ok(
    keys.some((key) => key.includes('ended')),
    'an index is stored',
  )
})
