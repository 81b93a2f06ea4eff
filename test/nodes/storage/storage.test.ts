/**
 * How streams are stored: compressed unless they are replicated. Also covers deleted streams,
 * appends without storage space, and missing sequences.
 */

import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StorageType, StoreCompression } from '@nats-io/jetstream'
import t, { type Test } from 'tap'
import { takeBackup } from '../../../nodes/backup/backup.ts'
import { createJournal } from '../../../nodes/nats/journal/journal.ts'
import { createRegistry } from '../../../nodes/nats/journal/registry.ts'
import { connectNats, type Nats } from '../../../nodes/nats/server/connect.ts'
import { provision } from '../../../nodes/nats/server/provision.ts'
import { names, subjects } from '../../../protocol/subjects.ts'
import { accessTo, natsServers } from '../../scenarios/support/clusters.ts'
import { silentLog } from '../../support/memory.ts'
import { startStore } from '../support/store.ts'

t.test('streams on disk are compressed, also those of an earlier release', async (t) => {
  const { one } = await startStore('2m')
  const journal = names.journal(0)
  await one.manager.streams.add({ name: journal, subjects: [subjects.journals(0)] })
  const early = await one.manager.streams.info(journal)
  t.equal(early.config.compression ?? StoreCompression.None, StoreCompression.None)
  await provision(one, { partitions: 1, shards: 1, replicas: 1 })
  for await (const { config } of one.manager.streams.list())
    t.equal(
      config.compression ?? StoreCompression.None,
      config.storage === StorageType.File ? StoreCompression.S2 : StoreCompression.None,
      `${config.name} in ${config.storage}`,
    )
})

/** Starts a cluster of three servers, and returns a connection to it. */
async function startCluster(t: Test): Promise<Nats> {
  const data = mkdtempSync(join(tmpdir(), 'baton-replicated-'))
  const servers = await natsServers(data, 3)
  t.teardown(async () => {
    await Promise.all(servers.map((server) => server.stop()))
    rmSync(data, { recursive: true, force: true })
  })
  const nats = await connectNats({
    access: accessTo(servers),
    name: 'test',
    log: silentLog,
    role: 'test',
  })
  t.teardown(() => nats.close())
  return nats
}

t.test('replicated streams on disk are not compressed, even if they were before', async (t) => {
  const nats = await startCluster(t)
  const layout = { partitions: 1, shards: 1 }
  await provision(nats, { ...layout, replicas: 3 })
  const { config } = await nats.manager.streams.info(names.journal(0))
  await nats.manager.streams.update(config.name, { ...config, compression: StoreCompression.S2 })
  await provision(nats, { ...layout, replicas: 3 })
  for await (const { config } of nats.manager.streams.list())
    t.match(
      { replicas: config.num_replicas, compression: config.compression ?? StoreCompression.None },
      { replicas: 3, compression: StoreCompression.None },
      config.name,
    )
})

t.test('the snapshots of a trimmed journal are not discarded', async (t) => {
  const nats = await startCluster(t)
  const layout = { partitions: 1, shards: 1 }
  await provision(nats, { ...layout, replicas: 1 })
  const journal = createJournal(nats)
  for (let i = 0; i < 3; i++) await journal.append(0, 0, new Uint8Array(10), i, `m${i}`)
  await nats.manager.streams.purge(names.journal(0), { seq: 3 })
  await createRegistry(nats, names.config).put('installation', '{}', 0)
  await t.rejects(provision(nats, { ...layout, replicas: 3 }), {
    message: /replicas cannot be raised, because the beginning of JOURNAL_0 was removed/,
  })
  await provision(nats, { ...layout, replicas: 1 })
})

t.test('a deleted journal is not created again', async (t) => {
  const { one } = await startStore('2m')
  const layout = { partitions: 1, shards: 1, replicas: 1 }
  await provision(one, layout)
  await one.manager.streams.delete(names.journal(0))
  await provision(one, layout, 1000)
  t.pass('a first start that was broken off goes on')
  await createRegistry(one, names.config).put('installation', '{}', 0)
  await one.manager.streams.delete(names.journal(0))
  await t.rejects(provision(one, layout, 1000), { message: /lack JOURNAL_0/ })
})

t.test('a deleted object store is not created again', async (t) => {
  const { one } = await startStore('2m')
  const layout = { partitions: 1, shards: 1, replicas: 1 }
  await provision(one, layout)
  await createRegistry(one, names.config).put('installation', '{}', 0)
  await one.manager.streams.delete(`OBJ_${names.blobs}`)
  await t.rejects(provision(one, layout, 1000), { message: /lack OBJ_BLOBS.*Restore the last/ })
  await t.rejects(one.manager.streams.info(`OBJ_${names.blobs}`), 'it was not created')
})

t.test('no installation is created on the journal of another one', async (t) => {
  const { one } = await startStore('2m')
  const layout = { partitions: 2, shards: 1, replicas: 1 }
  await provision(one, layout)
  await provision(one, layout)
  await createJournal(one).append(1, 0, new Uint8Array(100), 0, 'first')
  await one.manager.streams.delete(`KV_${names.config}`)
  await t.rejects(provision(one, layout, 1000), {
    message: /contain JOURNAL_1, the journal of an installation, but not its identity/,
  })
})

t.test('an append without storage space is refused and stores nothing', async (t) => {
  const { one } = await startStore('2m')
  await provision(one, { partitions: 1, shards: 1, replicas: 1 })
  const { config } = await one.manager.streams.info(names.journal(0))
  await one.manager.streams.update(names.journal(0), { ...config, max_bytes: 4096 })
  const reasons: string[] = []
  const journal = createJournal(one, { refused: (reason) => void reasons.push(reason) })
  t.same(await journal.append(0, 0, new Uint8Array(100), 0, 'small'), { sequence: 1 })
  t.equal(await journal.append(0, 0, new Uint8Array(8000), 1, 'large'), 'refused')
  t.match(reasons, [/maximum bytes exceeded/])
  t.match(await journal.last(0, 0), { sequence: 1, message_id: 'small' })
})

t.test(
  'sequences missing between the first and the last are counted, trimmed ones are not',
  async (t) => {
    const { one } = await startStore('2m')
    await provision(one, { partitions: 1, shards: 1, replicas: 1 })
    const journal = createJournal(one)
    for (let i = 0; i < 6; i++) await journal.append(0, 0, new Uint8Array(10), i, `m${i}`)
    await one.manager.streams.purge(names.journal(0), { seq: 3 })
    t.same(await journal.position(0), { first: 3, last: 6, missing: 0 })
    await one.manager.streams.deleteMessage(names.journal(0), 4)
    t.same(await journal.position(0), { first: 3, last: 6, missing: 1 })
  },
)

t.test('a trimmed journal is not backed up', async (t) => {
  const { one } = await startStore('2m')
  const layout = { partitions: 1, shards: 1, replicas: 1 }
  await provision(one, layout)
  await createRegistry(one, names.config).put('installation', '{}', 0)
  const journal = createJournal(one)
  for (let i = 0; i < 3; i++) await journal.append(0, 0, new Uint8Array(10), i, `m${i}`)
  const place = join(t.testdir(), 'backup')
  const quiet = { begin() {}, moved() {}, end() {} }
  t.equal((await takeBackup(one, place, quiet)).streams[0]?.state.messages, 3)
  await one.manager.streams.purge(names.journal(0), { seq: 3 })
  await t.rejects(takeBackup(one, `${place}2`, quiet), {
    message: /JOURNAL_0 begins at 3, because its beginning was removed.*could not be restored/,
  })
  t.notOk(existsSync(`${place}2`))
})
