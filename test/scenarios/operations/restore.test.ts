/** Restores backups of unused installations into servers that have just started. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { takeBackup } from '../../../nodes/backup/backup.ts'
import { restoreBackup } from '../../../nodes/backup/restore.ts'
import { Disconnected } from '../../../nodes/nats/failures.ts'
import { connectNats, type Nats } from '../../../nodes/nats/server/connect.ts'
import type { Server } from '../../../nodes/nats/server/server.ts'
import { silentLog } from '../../support/memory.ts'
import { service } from '../../support/service.ts'
import { accessTo, natsServers, settingsFor } from '../support/clusters.ts'

const folder = mkdtempSync(join(tmpdir(), 'baton-restore-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
t.setTimeout(120_000)
const quiet = { begin: () => {}, moved: () => {}, end: () => {} }
const stopping = (servers: readonly Server[]) =>
  t.teardown(() => Promise.all(servers.map((server) => server.stop())))

async function on<T>(servers: readonly Server[], run: (nats: Nats) => Promise<T>): Promise<T> {
  const nats = await connectNats({
    access: accessTo(servers),
    name: 'test',
    log: silentLog,
    role: 'test',
    within: 20_000,
  })
  return run(nats).finally(() => nats.close())
}
const restore = (servers: readonly Server[], from: string, replicas: number) =>
  on(servers, (nats) => restoreBackup(nats, from, { replicas, again: false }, quiet))

t.test('a backup of one server is restored into a cluster without a leader', async (t) => {
  const s = await service()
  await on([s.server], (nats) => takeBackup(nats, join(folder, 'one'), quiet))
  await s.stop()
  const cluster = await natsServers(join(folder, 'elects'), 3)
  stopping(cluster)
  t.match(await restore(cluster, join(folder, 'one'), 3), { replicas: 3 })
})

t.test('a backup of a cluster with an empty stream is restored into one server', async (t) => {
  const cluster = await natsServers(join(folder, 'cluster'), 3)
  const s = await service(
    { ...settingsFor(cluster), BATON_REPLICAS: '3' },
    { found: { servers: cluster, key: '' } },
  )
  const { streams } = await on(cluster, (nats) => takeBackup(nats, join(folder, 'three'), quiet))
  await s.stop()
  t.match(
    streams.find(({ stream }) => stream.startsWith('OBJ_')),
    { state: { messages: 0, first_seq: 0 } },
  )
  const single = await natsServers(join(folder, 'single'), 1)
  stopping(single)
  t.match(await restore(single, join(folder, 'three'), 1), { replicas: 1 })
})

t.test('a restore recognizes its own mark when the answer to the write was lost', async (t) => {
  const servers = await natsServers(join(folder, 'lost'), 1)
  stopping(servers)
  const restored = await on(servers, (nats) => {
    let lost = false
    const publish: Nats['publish'] = async (...message) => {
      const sequence = await nats.publish(...message)
      if (lost) return sequence
      lost = true
      throw new Disconnected()
    }
    const options = { replicas: 1, again: false }
    return restoreBackup({ ...nats, publish }, join(folder, 'one'), options, quiet)
  })
  t.match(restored, { replicas: 1 })
})
