/**
 * Changes that are buffered in memory. Invariants: every answer reflects them; they survive a
 * failed later batch; saving writes them to the file.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { cursorOf } from '../../protocol/entry.ts'
import { Store } from '../../views/store.ts'
import { View } from '../../views/view.ts'
import { ask, at, each, event, Journal, moved, run, started } from './support/journal.ts'

const feed = (view: View, after = 0, limit = 10_000) =>
  ask<{ items: readonly { seq: number }[]; last: number }>(view, 'feed', { after, limit })

t.test(
  'after a crash before a save, the file contains the journal up to an earlier position',
  (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'view-'))
    t.teardown(() => rmSync(dir, { recursive: true }))
    const path = join(dir, 'view.sqlite')
    const journal = new Journal()
    const view = View.open(path)
    view.apply([journal.commit(0, started('run_1', 1))])
    view.save()
    view.apply([journal.commit(0, started('run_2', 2), moved('run_1', 'running'))])
    t.equal(view.position(), 2)
    t.equal(view.unsaved(), true)
    const heir = View.open(path)
    t.equal(heir.position(), 1)
    t.strictSame(each(ask(heir, 'run.list'), 'id'), ['run_1'])
    heir.close()
    t.strictSame(
      each(ask(view, 'run.list'), 'id'),
      ['run_2', 'run_1'],
      'a query sees buffered changes',
    )
    t.equal(view.unsaved(), true, 'and it goes on waiting, now in a transaction')
    const second = View.open(path)
    t.equal(second.position(), 1)
    second.close()
    view.save()
    t.equal(view.unsaved(), false)
    const third = View.open(path)
    t.equal(third.position(), 2)
    third.close()
    view.close()
    t.end()
  },
)

t.test('changes that a failed write discarded are applied again later', (t) => {
  const journal = new Journal()
  const view = View.open(':memory:')
  view.apply([journal.commit(0, started('run_1', 1))])
  view.save()
  view.apply([journal.commit(0, started('run_2', 2))])
  t.strictSame(each(ask(view, 'run.list'), 'id'), ['run_2', 'run_1'])
  // Entries of workers are written immediately; the write of this entry fails.
  const bad = journal.commit(0, {
    kind: 'worker',
    project: 'prj_a',
    id: 'wrk_1',
    events: [
      {
        type: 'worker.registered',
        registration: {
          session: 's',
          connected_at: 1,
          toJSON: () => {
            throw new Error('no')
          },
        },
      } as never,
    ],
  })
  t.throws(() => view.apply([bad]))
  t.equal(view.position(), 1)
  t.strictSame(each(ask(view, 'run.list'), 'id'), ['run_1'])
  view.apply(journal.messages.slice(0, 2))
  t.strictSame(each(ask(view, 'run.list'), 'id'), ['run_2', 'run_1'])
  view.close()
  t.end()
})

t.test('a failed batch does not discard earlier buffered changes', (t) => {
  const journal = new Journal()
  const view = View.open(':memory:')
  view.apply([journal.commit(0, started('run_1', 1))])
  const before = feed(view)
  const bad = journal.commit(
    0,
    moved('run_1', 'running'),
    started('run_2', 2, {}, { project: 'prj_b' }),
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
  t.strictSame(feed(view), before)
  t.strictSame(each(ask(view, 'run.list'), 'status'), ['queued'])
  t.strictSame(ask(view, 'run.list', {}, 'prj_b').items, [])
  view.close()
  t.end()
})

t.test('the feed is the same from memory and from the tables', (t) => {
  const journal = new Journal()
  const view = View.open(':memory:')
  for (let i = 0; i < 1500; i++) {
    const called = event('action.called', {
      step: 'mail',
      payload: { action: 'send_mail', attempt: i },
      run: { status: 'suspended' },
    })
    view.apply([
      journal.commit(
        0,
        started(`run_${i}`, i),
        run(`run_${i}`, [event('signal.stored'), called, event('step.started', { step: 'b' })]),
        moved(`run_${i}`, 'completed'),
      ),
    ])
  }
  const all = feed(view)
  t.equal(all.items.length, 6000, 'more than memory holds')
  for (const after of [
    0,
    1,
    cursorOf(700, 1),
    cursorOf(900, 2),
    cursorOf(1000, 0),
    cursorOf(1200, 2),
    cursorOf(1499, 3),
    cursorOf(1600, 0),
  ]) {
    t.strictSame(
      feed(view, after).items,
      all.items.filter(({ seq }) => seq > after),
      `after ${after}`,
    )
    const page = feed(view, after, 5)
    t.strictSame(
      page.items,
      all.items.filter(({ seq }) => seq > after && seq <= page.last),
    )
  }
  view.close()
  t.end()
})

t.test('entries of many rows are written in chunks, so that nothing waits for all of them', (t) => {
  const most: number[] = []
  const { flush } = Store.prototype
  Store.prototype.flush = function (this: Store) {
    most.push(this.rows)
    flush.call(this)
  }
  t.teardown(() => {
    Store.prototype.flush = flush
  })
  const journal = new Journal()
  const view = View.open(':memory:')
  for (let n = 0; n < 100; n++) {
    const events = Array.from(
      { length: 100 },
      (_, i) =>
        ({
          type: 'source.published',
          id: `sevt_${n}_${i}`,
          event_type: 'a.b',
          source_kind: 'custom',
          source_id: 's',
          event: {},
          meta: {},
          depth: 0,
          occurred_at: at(n),
        }) as never,
    )
    view.apply([journal.commit(0, { kind: 'events', project: 'prj_a', id: 'prj_a', events })])
  }
  t.ok(Math.max(...most) >= 2000 && Math.max(...most) < 2500, `${Math.max(...most)} rows at once`)
  t.equal(ask<{ items: unknown[] }>(view, 'event.list', { limit: 100 }).items.length, 100)
  view.close()
  t.end()
})
