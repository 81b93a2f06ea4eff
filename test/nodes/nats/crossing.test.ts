/**
 * Copies of several journals are inconsistent if one contains an effect whose cause is missing in
 * the copy of another journal.
 */
import t from 'tap'
import { hasCrossingEffect } from '../../../nodes/backup/crossing.ts'
import { MemoryBlobs, MemoryJournal } from '../../support/memory.ts'

t.test('an effect whose cause is missing in another copy is detected', async (t) => {
  const append = async (journal: MemoryJournal, partition: number, id: string) => {
    const entry = {
      project: 'prj_1',
      kind: 'project',
      id: 'prj_1',
      command: { id, name: 'told' },
      origin: { at: 0, principal: { type: 'system', id: 'system' } },
      events: [],
      prev: 0,
    }
    const last = await journal.last(partition, 0)
    await journal.append(
      partition,
      0,
      new TextEncoder().encode(JSON.stringify({ v: 1, epoch: 1, prev: 0, entries: [entry] })),
      last?.sequence ?? 0,
      `${partition} ${id}`,
    )
  }
  const journal = new MemoryJournal()
  await append(journal, 0, 'c1')
  await append(journal, 1, 'e:0.0:1000.0')
  const look = (from: number, last: number) =>
    hasCrossingEffect(journal, new MemoryBlobs(), 1, [
      { partition: 0, from: 0, last },
      { partition: 1, from, last: 99 },
    ])
  t.notOk(await look(0, 1), 'its cause is in the copy')
  t.ok(await look(0, 0), 'its cause is not')
  t.notOk(await look(2, 0), 'entries from before the copy have their causes in every copy')
})
