/** How the streams are stored: compressed, and without the limit that nats-server takes from the disk. */
import { StorageType, StoreCompression } from '@nats-io/jetstream'
import t from 'tap'
import { provision } from '../../nodes/nats/provision.ts'
import { createRegistry } from '../../nodes/nats/registry.ts'
import { names, subjects } from '../../protocol/subjects.ts'
import { startStore } from './store.ts'

t.test('streams on disk are compressed, also those that an earlier release made', async (t) => {
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

t.test('a journal that is gone is not created again', async (t) => {
  const { one } = await startStore('2m')
  const layout = { partitions: 1, shards: 1, replicas: 1 }
  await provision(one, layout)
  await one.manager.streams.delete(names.journal(0))
  await provision(one, layout, 1000)
  t.pass('a first start that was broken off goes on')
  await createRegistry(one, names.config).put('installation', '{}', 0)
  await one.manager.streams.delete(names.journal(0))
  await t.rejects(provision(one, layout, 1000), { message: /do not have JOURNAL_0/ })
})
