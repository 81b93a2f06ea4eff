/**
 * An upgrade from a release that wrote only format 1 of the journal. The fixture contains a backup
 * that commit 46571e76 took, and the answers of that commit about the runs in the backup.
 * Invariant: the records and events of these runs, and the answers to repeated starts, stay the
 * same, byte for byte.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { restoreBackup } from '../../../nodes/backup/restore.ts'
import { connectNats } from '../../../nodes/nats/server/connect.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { accessTo, natsServers, settingsFor } from '../support/clusters.ts'
import { instant } from '../support/given.ts'

type Run = { readonly status: string }
interface Answered {
  readonly key: string
  readonly starts: readonly {
    readonly key: string
    readonly spec: object
    readonly answer: { readonly id: string }
  }[]
  readonly runs: Readonly<Record<string, { readonly record: Run; readonly events: object }>>
}
/** Returns the answer to a start that repeats the idempotency key of a completed run. */
const conflict = (run_id: string): object => ({
  error: { code: 'idempotency_key_conflict', details: { run_id, status: 'completed' } },
})
const fixture = join(import.meta.dirname, '../../fixtures/store-of-46571e76')
const answered = JSON.parse(readFileSync(`${fixture}.json`, 'utf8')) as Answered
const folder = mkdtempSync(join(tmpdir(), 'baton-old-store-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
t.setTimeout(120_000)

t.test('everything about the runs of an older release stays the same', async (t) => {
  const servers = await natsServers(folder, 1)
  const nats = await connectNats({
    access: accessTo(servers),
    name: 'test',
    log: silentLog,
    role: 'test',
    within: 20_000,
  })
  const quiet = { begin: () => {}, moved: () => {}, end: () => {} }
  await restoreBackup(nats, `${fixture}.tar`, { replicas: 1, again: false }, quiet)
  await nats.close()
  const s = await service(settingsFor(servers), { found: { servers, key: answered.key } })
  t.teardown(() => s.stop())

  const same = async (when: string): Promise<void> => {
    for (const [id, { record, events }] of Object.entries(answered.runs)) {
      const read = [await s.ok('run.get', { id }), await s.ok('run.events', { id, limit: 200 })]
      t.equal(JSON.stringify(read), JSON.stringify([record, events]), `${id} ${when}`)
    }
    for (const { key, spec, answer } of answered.starts) {
      const again = await s.call('run.start', { spec, idempotency_key: key })
      const { record } = answered.runs[answer.id] ?? {}
      const ended = record?.status === 'completed'
      if (ended) t.match(again.body, conflict(answer.id), `start ${key} ${when}`)
      else t.equal(JSON.stringify(again.body), JSON.stringify(answer), `start ${key} ${when}`)
    }
  }
  await same('after the upgrade')
  for (let n = 0; n < 20; n++) await s.ok('run.start', { spec: instant({ n }) })
  await s.restart()
  await same('after new runs and a restart')
})
