/** A view and its file: position, gaps, repeats, unreadable data and damaged files. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import t from 'tap'
import { cursorOf } from '../../protocol/entry.ts'
import type { TableEvent } from '../../protocol/tables/events.ts'
import { SCHEMA_VERSION } from '../../views/files/migrate.ts'
import { View } from '../../views/view.ts'
import { ask, at, each, event, Journal, moved, run, started } from './support/journal.ts'

const file = (t: { teardown(run: () => void): void }): string => {
  const dir = mkdtempSync(join(tmpdir(), 'view-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  return join(dir, 'view.sqlite')
}
const runs = (view: View) => each(ask(view, 'run.list'), 'id')

t.test('a view keeps its position across restarts', (t) => {
  const path = file(t)
  const journal = new Journal()
  journal.commit(0, started('run_1', 1))
  const view = View.open(path)
  t.equal(view.position(), 0)
  t.equal(view.apply(journal.messages), 1)
  t.equal(view.position(), 1)
  view.close()
  const again = View.open(path)
  t.equal(again.position(), 1)
  t.strictSame(runs(again), ['run_1'])
  journal.commit(0, started('run_2', 2))
  again.apply(journal.messages)
  t.strictSame(runs(again), ['run_2', 'run_1'])
  again.close()
  t.end()
})

t.test('a query in parts is refused when the view is reset between two of them', (t) => {
  const journal = new Journal()
  const columns = [{ name: 'key', type: 'string' as const, required: true }]
  const table = {
    id: 'tbl_1',
    name: 'alerts',
    schema: { columns, identity_column: 'key' },
    created_at: at(0),
    updated_at: at(0),
  }
  const rows = Array.from({ length: 2000 }, (_, i) => ({
    id: `row_${i}`,
    identity: `k${i}`,
    data: { key: `k${i}` },
    version: 1,
    created_at: at(0),
    updated_at: at(0),
  }))
  const draft = (event: TableEvent) =>
    ({ kind: 'table', project: 'prj_a', id: 'tbl_1', events: [event] }) as const
  journal.commit(
    0,
    draft({ type: 'table.created', id: 'tbl_1', table, claim: { holder: 'tbn_1', claim: 1 } }),
    draft({ type: 'table.rows_inserted', rows, change: 1, table_name: 'alerts' }),
  )
  const view = View.open(':memory:')
  view.apply(journal.messages)
  const question = { id: 'tbl_1', sort: [{ field: 'key', order: 'desc' }] }
  t.match(ask(view, 'table.query', question, 'prj_a'), { items: [{ data: { key: 'k999' } }] })
  const parts = view.askInParts('table.query', 'prj_a', question)
  t.notOk(parts.next().done)
  view.reset()
  t.match(parts.next(), { done: true, value: { refused: 'service_unavailable' } })
  t.end()
})

t.test('bytes and decoded envelopes give the same result', (t) => {
  const journal = new Journal()
  const { sequence, data } = journal.commit(0, started('run_1', 1))
  const view = View.open(':memory:')
  view.apply([{ sequence, data: new TextEncoder().encode(JSON.stringify(data)) }])
  t.strictSame(runs(view), ['run_1'])
  t.end()
})

t.test('applying a batch again changes nothing', (t) => {
  const journal = new Journal()
  journal.commit(0, started('run_1', 1))
  journal.commit(1, started('run_2', 2))
  const view = View.open(':memory:')
  view.apply(journal.messages)
  t.equal(view.apply(journal.messages), 0)
  t.equal(view.apply(journal.messages.slice(1)), 0)
  t.strictSame(runs(view), ['run_2', 'run_1'])
  t.end()
})

t.test('a missing envelope of a shard raises an alarm, and the batch is rolled back', (t) => {
  const journal = new Journal()
  journal.commit(0, started('run_1', 1))
  journal.commit(1, started('run_2', 2))
  journal.commit(0, started('run_3', 3))
  journal.commit(0, started('run_4', 4))
  const [one, two, , four] = journal.messages as [never, never, never, never]
  const view = View.open(':memory:')
  t.throws(() => view.apply([one, two, four]), { name: 'JournalHole' })
  t.equal(view.position(), 0)
  t.strictSame(runs(view), [])
  view.apply([one, two])
  t.throws(() => view.apply([four]), { name: 'JournalHole' })
  t.equal(view.position(), 2)
  view.apply(journal.messages)
  t.strictSame(runs(view), ['run_4', 'run_3', 'run_2', 'run_1'])
  t.throws(
    () => View.open(':memory:').apply([two, one]),
    { name: 'JournalHole' },
    'messages out of order',
  )
  t.end()
})

t.test(
  'after the journal was trimmed, the rest is accepted and older data is reported as deleted',
  (t) => {
    const journal = new Journal()
    journal.commit(0, started('run_1', 1))
    journal.commit(1, started('run_2', 2))
    journal.commit(0, moved('run_1', 'running'), started('run_3', 3))
    journal.commit(1, moved('run_2', 'running'))
    const left = journal.messages.slice(2)
    const view = View.open(':memory:')
    t.throws(
      () => view.apply(left),
      { name: 'JournalHole' },
      'not without the explicit first sequence',
    )
    view.apply(left, 3)
    t.strictSame(runs(view), ['run_3'])
    t.match(ask(view, 'timeline', { run_id: 'run_3', after: 0, limit: 10 }), {
      oldest: cursorOf(3, 0),
      exists: true,
    })
    t.match(ask(view, 'feed', { after: 0, limit: 10 }), { oldest: cursorOf(3, 0) })
    const kept = View.open(':memory:')
    kept.apply(journal.messages.slice(0, 2))
    kept.apply(left, 3)
    t.match(
      ask(kept, 'feed', { after: 0, limit: 10 }),
      { oldest: 0 },
      'a view that had applied the entries lost nothing',
    )
    t.end()
  },
)

t.test('kinds, event types and fields of newer releases are ignored', (t) => {
  const journal = new Journal()
  journal.commit(
    0,
    { ...started('run_1', 1), kind: 'session' as never },
    started('run_2', 2),
    run('run_2', [{ type: 'run.admired' as never, run: { status: 'running' } }]),
  )
  journal.commit(
    0,
    { kind: 'queue', project: 'prj_a', id: '0.q', events: [{ type: 'queue.paused' }] },
    { kind: 'project', project: 'prj_a', id: 'prj_a', events: [{ type: 'toString' }] },
    { kind: 'worker', project: 'prj_a', id: 'wrk_1', events: [{ type: 'worker.sang' }] },
  )
  journal.commit(0)
  const view = View.open(':memory:')
  view.apply(journal.messages)
  t.equal(view.position(), 3)
  t.strictSame(
    each(ask(view, 'run.list'), 'status'),
    ['running'],
    'the patch of an unknown event still counts',
  )
  t.match(ask(view, 'poem.list'), { refused: 'service_unavailable' })
  t.match(ask(view, 'toString'), { refused: 'service_unavailable' })
  t.end()
})

t.test('unreadable data is never skipped', (t) => {
  const view = View.open(':memory:')
  const journal = new Journal()
  const { data } = journal.commit(0, started('run_1', 1))
  t.throws(
    () => view.apply([{ sequence: 1, data: new TextEncoder().encode('{"v":1,') }]),
    /message 1 is not JSON/,
  )
  t.throws(
    () => view.apply([{ sequence: 1, data: { ...data, v: 2 as never } }]),
    /not an envelope of version 1/,
  )
  t.throws(
    () =>
      view.apply([
        {
          sequence: 1,
          data: {
            ...data,
            entries: [{ ...data.entries[0], events: { blob: 'b', count: 1 } }] as never,
          },
        },
      ]),
    /decode it/,
  )
  t.equal(view.position(), 0)
  t.end()
})

t.test('a replaced journal is detected', (t) => {
  const journal = new Journal()
  const written = journal.commit(0, started('run_1', 1))
  const view = View.open(':memory:')
  view.apply(journal.messages)
  t.throws(() => view.apply([{ ...written, message_id: 'other' }]), { name: 'JournalReplaced' })
  view.reset()
  t.equal(view.position(), 0)
  t.strictSame(runs(view), [])
  t.end()
})

t.test('a file with another schema and a damaged file are recreated', (t) => {
  const journal = new Journal()
  journal.commit(0, started('run_1', 1))
  const path = file(t)
  const view = View.open(path)
  view.apply(journal.messages)
  view.close()
  const db = new Database(path)
  db.pragma(`user_version = ${SCHEMA_VERSION + 1}`)
  db.close()
  const other = View.open(path)
  t.equal(other.position(), 0)
  other.apply(journal.messages)
  t.strictSame(runs(other), ['run_1'])
  other.close()
  writeFileSync(
    path,
    'this is no database, but it is long enough to be read as the header of one: '.repeat(200),
  )
  const damaged = View.open(path)
  t.equal(damaged.position(), 0)
  damaged.apply(journal.messages)
  t.strictSame(runs(damaged), ['run_1'])
  damaged.close()
  t.end()
})

t.test(
  'an entry and its rows are one transaction: an event that cannot be stored leaves no trace',
  (t) => {
    const journal = new Journal()
    journal.commit(0, started('run_1', 1))
    const view = View.open(':memory:')
    view.apply(journal.messages)
    const bad = journal.commit(
      0,
      moved('run_1', 'running'),
      run('run_1', [
        event('step.started', {
          step: 's',
          payload: {
            toJSON: () => {
              throw new Error('no')
            },
          },
        }),
      ]),
    )
    t.throws(() => view.apply([bad]), /no/)
    t.strictSame(each(ask(view, 'run.list'), 'status'), ['queued'])
    t.match(ask(view, 'timeline', { run_id: 'run_1', after: 0, limit: 10 }), {
      items: [],
      last: cursorOf(1, 0),
    })
    t.end()
  },
)
