/** When the storage watch stops writes, warns, and allows writes again. */
import t from 'tap'
import { diskUse } from '../../../nodes/storage/disk.ts'
import { type AccountUse, watchStorage } from '../../../nodes/storage/watch.ts'
import { ManualClock, silentLog } from '../../support/memory.ts'

const MIB = 2 ** 20
const GIB = 2 ** 30

t.test('the limit of a disk', async (t) => {
  const disk = (store: number, free: number, capacity: number, limit?: number) =>
    diskUse({ store, free, capacity }, store + free, limit)
  t.same(
    disk(10 * GIB, 90 * GIB, 200 * GIB),
    { used: 10 * GIB, limit: 90 * GIB, free: 90 * GIB },
    'nine tenths of the store and the free space',
  )
  const small = disk(MIB, 4 * MIB, 64 * MIB)
  t.ok(small.used >= small.limit, 'a disk that others have filled is full')
  t.equal(disk(GIB, 90 * GIB, 200 * GIB, 2 * GIB).limit, 2 * GIB, 'the configured limit')
  const beside = disk(GIB, 5 * MIB, 200 * GIB, 2 * GIB)
  t.ok(beside.used >= beside.limit, 'other files can leave less than the configured limit')
})

t.test('writes stop at the limit and resume below it', async (t) => {
  const clock = new ManualClock()
  const disk = { used: 50, limit: 100, free: 1000 }
  let frozen = false
  let restarts = 0
  const journal = { first: 1, last: 10, missing: 0 }
  let account: AccountUse | undefined
  const watch = await watchStorage({
    partitions: 1,
    journal: { position: async () => ({ ...journal }) },
    clock,
    log: silentLog,
    metrics: { storage() {}, writesStopped() {} },
    account: async () => account,
    embedded: {
      use: async () => ({ ...disk }),
      frozen: () => frozen,
      restart: async () => {
        frozen = false
        restarts++
      },
    },
  })
  const later = () => clock.advance(1100)
  t.same([watch.stopped(0), watch.warnings(), watch.stops()], [undefined, [], []])
  disk.used = 81
  await later()
  t.equal(watch.warnings().length, 1, 'it warns from four fifths on')
  t.equal(watch.stopped(0), undefined)
  disk.used = 100
  await later()
  t.match(watch.stopped(0), { code: 'storage_full' })
  t.match(watch.stops(), [/^storage: /])
  disk.used = 99
  await later()
  t.ok(watch.stopped(0), 'a little less is not enough')
  frozen = true
  disk.used = 60
  await later()
  t.equal(restarts, 1, 'a server that met the end of the disk is started again')
  t.equal(watch.stopped(0), undefined)

  watch.stored(12)
  await later()
  t.match(watch.stopped(0), { code: 'storage_full' }, 'data that will follow an entry counts')
  await clock.advance(6000)
  t.equal(watch.stopped(0), undefined, 'until it must have come')

  watch.refused('no space')
  t.match(watch.stops(), [/no space/])
  watch.stored(1)
  t.same(watch.stops(), [])
  account = { used: 90, limit: 100 }
  await clock.advance(6000)
  t.match(watch.warnings(), [/of the account/])

  journal.last = 7
  await clock.advance(6000)
  t.match(watch.stopped(0), {
    code: 'journal_damaged',
    reason: /ends at 7, but ended at 10 before/,
  })
  journal.missing = 2
  await clock.advance(6000)
  t.match(watch.stops(), [/^journal: 2 entries/])
  watch.stop()
})
