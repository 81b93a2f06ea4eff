/** The owner key of a new installation, and its file, which no later start overwrites. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readConfig } from '../../../nodes/config.ts'
import { startNode } from '../../../nodes/node.ts'
import { StartFault } from '../../../nodes/process/fault.ts'
import { type Installation, install } from '../../../nodes/storage/installation.ts'
import { hashOwnerKey, ignoredOwnerKey } from '../../../nodes/storage/owner-key.ts'
import { MemoryRegistry, silentLog } from '../../support/memory.ts'
import { startStore } from '../support/store.ts'

const optionsOf = (data: string, rootKey?: string) => ({ rootKey, keyPrefix: 'bat', data })
const fileIn = (data: string) => join(data, 'root.key')
const keyIn = (data: string) => readFileSync(fileIn(data), 'utf8').trim()
const hashIn = async (registry: MemoryRegistry) =>
  (JSON.parse((await registry.get('installation'))?.value ?? '{}') as Partial<Installation>)
    .root_hash

t.test('the first start stores the key, and later starts read the installation', async (t) => {
  const [registry, data] = [new MemoryRegistry(), t.testdir()]
  const { generated, ...installed } = await install(registry, optionsOf(data))
  t.strictSame(generated, { key: keyIn(data), file: fileIn(data) })
  t.equal(installed.root_hash, hashOwnerKey(keyIn(data)))
  t.strictSame(await install(registry, optionsOf(data)), installed)
  t.notOk(existsSync(`${fileIn(data)}.new`))
})

t.test('an owner key of another installation is not overwritten', async (t) => {
  const [registry, data] = [new MemoryRegistry(), t.testdir({ 'root.key': 'bat_first\n' })]
  await t.rejects(install(registry, optionsOf(data)), {
    constructor: StartFault,
    message: /no installation.*root\.key.*correct BATON_NATS_PREFIX, BATON_NATS.*move the file/,
  })
  t.equal(registry.values.size, 0)
  t.equal(keyIn(data), 'bat_first')
})

t.test('a configured key creates an installation and leaves the file unchanged', async (t) => {
  const [registry, data] = [new MemoryRegistry(), t.testdir({ 'root.key': 'bat_first\n' })]
  t.equal((await install(registry, optionsOf(data, 'bat_b'))).root_hash, hashOwnerKey('bat_b'))
  t.equal(keyIn(data), 'bat_first')
})

t.test('a process that loses the race stores no key', async (t) => {
  const [registry, data] = [new MemoryRegistry(), t.testdir()]
  const { put } = registry
  registry.put = async (...write) => {
    await put.call(registry, 'installation', JSON.stringify({ root_hash: 'winner' }), 0)
    return put.call(registry, ...write)
  }
  const { root_hash, generated } = await install(registry, optionsOf(data))
  t.equal(root_hash, 'winner')
  t.equal(generated, undefined)
  t.notOk(existsSync(fileIn(data)) || existsSync(`${fileIn(data)}.new`))
})

t.test('a start whose write had no answer continues with the same key', async (t) => {
  for (const stored of [false, true]) {
    const [registry, data] = [new MemoryRegistry(), t.testdir()]
    const { put } = registry
    registry.put = async (...write) => {
      if (stored) await put.call(registry, ...write)
      throw new Error('timeout')
    }
    await t.rejects(install(registry, optionsOf(data)), { message: 'timeout' })
    t.notOk(existsSync(fileIn(data)))
    const prepared = readFileSync(`${fileIn(data)}.new`, 'utf8').trim()
    registry.put = put
    await install(registry, optionsOf(data))
    t.equal(keyIn(data), prepared)
    t.equal(await hashIn(registry), hashOwnerKey(prepared))
    t.notOk(existsSync(`${fileIn(data)}.new`))
  }
})

t.test('a file that a killed start left empty is written', async (t) => {
  const [registry, data] = [new MemoryRegistry(), t.testdir({ 'root.key': '' })]
  const { generated } = await install(registry, optionsOf(data))
  t.equal(keyIn(data), generated?.key)
})

t.test('a prepared key does not replace the key of another installation', async (t) => {
  const registry = new MemoryRegistry()
  const data = t.testdir({ 'root.key': 'bat_other\n', 'root.key.new': 'bat_new\n' })
  const value = JSON.stringify({ root_hash: hashOwnerKey('bat_new') })
  await registry.put('installation', value, 0)
  await install(registry, optionsOf(data))
  t.equal(keyIn(data), 'bat_other')
  t.equal(readFileSync(`${fileIn(data)}.new`, 'utf8').trim(), 'bat_new')
})

t.test('a changed BATON_ROOT_KEY is reported as ignored', (t) => {
  const installed = { root_hash: hashOwnerKey('bat_first') }
  t.equal(ignoredOwnerKey(undefined, installed), undefined)
  t.equal(ignoredOwnerKey('bat_first', installed), undefined)
  t.match(
    ignoredOwnerKey('bat_second', installed),
    /only to the first start.*key revoke-organization/,
  )
  t.notMatch(ignoredOwnerKey('bat_second', installed), /bat_second/)
  t.end()
})

t.test('a node with another prefix does not start and creates no journal', async (t) => {
  const { access, one } = await startStore('2m')
  const data = t.testdir()
  const start = async (prefix?: string) => {
    const read = readConfig(
      {
        BATON_ROLES: 'shards',
        BATON_SHARDS: '1',
        BATON_DATA: data,
        ...(prefix !== undefined && { BATON_NATS_PREFIX: prefix }),
      },
      [],
    )
    if ('faults' in read) throw new Error(read.faults.join('\n'))
    const { config } = read
    return startNode(config, { ...access, ...config.nats_access }, silentLog)
  }
  const first = await start()
  await first.stop()
  const key = keyIn(data)
  t.equal(first.installed.generated?.key, key)
  await t.rejects(start('acme'), { constructor: StartFault, message: /BATON_NATS_PREFIX/ })
  t.equal(keyIn(data), key)
  const created: string[] = []
  for await (const { config } of one.manager.streams.list())
    if (config.name.includes('acme')) created.push(config.name)
  t.strictSame(created, ['KV_acme_CONFIG'])
  const again = await start()
  t.equal(again.installed.root_hash, hashOwnerKey(key))
  await again.stop()
  writeFileSync(fileIn(data), '')
  const acme = await start('acme')
  t.equal(acme.installed.generated?.key, keyIn(data))
  await acme.stop()
})
