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
import {
  ask,
  at,
  claimed,
  type Draft,
  each,
  ended,
  event,
  Journal,
  jobBorn,
  moved,
  queue,
  queued,
  run,
  started,
  stepBorn,
  type Written,
} from './support/journal.ts'

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
  // Entries of workers are written immediately. The write of this entry fails.
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

/**
 * Returns a journal of runs, each with a completed step and a second step that waits for its job.
 * A run ends after `apart` more runs have been started, except every tenth run. Every seventh run
 * resumes after 3 × `apart` more runs have been started, and then ends.
 */
function busy(runs: number, apart: number): Written[] {
  const journal = new Journal()
  const starting = (i: number): Draft[] => [
    started(`run_${i}`, i),
    run(`run_${i}`, [
      event('step.completed', {
        step: 'first',
        row: stepBorn(`run_${i}`, 'first', 0, { status: 'completed' }),
      }),
      event('step.started', { step: 's', row: stepBorn(`run_${i}`, 's', 1), payload: { i } }),
      event('run.suspended', { run: { status: 'suspended' }, payload: { step: 's' } }),
    ]),
    queue([queued(jobBorn(`job_${i}`, `run_${i}`, i))]),
    queue([claimed(`job_${i}`, `wst_${i % 3}`, 'w1', i + 60)]),
  ]
  const ending = (i: number, result: Record<string, number>): Draft[] => [
    queue([ended(`job_${i}`, 'completed')]),
    run(`run_${i}`, [
      event('action.completed', {
        step: 's',
        payload: { action: 'a', job_id: `job_${i}`, result: { i } },
        row: { status: 'completed', waiting_on: null, result },
      }),
      event('step.retried', { step: 'first', row: { attempt: 2 } }),
      event('run.failed', { run: { status: 'failed', result }, payload: { status: 'failed' } }),
    ]),
  ]
  for (let i = 0; i < runs; i++) {
    journal.commit(i % 3, ...starting(i))
    const last = i - apart
    if (last >= 0 && last % 10 > 0) journal.commit(0, ...ending(last, { i }))
    const late = i - 3 * apart
    if (late < 0 || late % 7 > 0) continue
    journal.commit(1, moved(`run_${late}`, 'running'))
    journal.commit(2, ...ending(late, { again: i }))
  }
  return journal.messages
}
const fail = (): never => {
  throw new Error('no')
}
/** Returns the answers to queries about all runs, as one text. */
function answers(view: View, runs: number): string {
  const found: unknown[] = [feed(view)]
  for (let i = 0; i < runs; i++)
    for (const name of ['run.get', 'run.steps', 'run.jobs', 'run.events'])
      found.push(ask(view, name, { id: `run_${i}` }))
  for (let i = 0; i < 3; i++) found.push(ask(view, 'leases', { session: `wst_${i}` }))
  found.push(ask(view, 'run.list', { status: ['suspended', 'running'], limit: 200 }))
  return JSON.stringify(found)
}

t.test('records that wait longer than others are neither lost nor stored twice', (t) => {
  const [runs, apart] = [600, 90]
  const messages = busy(runs, apart)
  const dir = mkdtempSync(join(tmpdir(), 'view-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const path = join(dir, 'view.sqlite')
  const patient = View.open(path)
  for (const message of messages) patient.apply([message])
  const asked = View.open(':memory:')
  for (const [i, message] of messages.entries()) {
    asked.apply([message])
    if (i % 50 === 0) ask(asked, 'run.list')
  }
  const wanted = answers(asked, runs)
  patient.close()
  const reopened = View.open(path)
  t.equal(answers(reopened, runs), wanted, 'saved without any query before')
  reopened.close()
  const interrupted = View.open(path)
  interrupted.reset()
  for (const [i, message] of messages.entries()) {
    interrupted.apply([message])
    if (i % 37 > 0) continue
    const who = Math.floor(i / 4)
    const bad = new Journal(message.sequence + 1).commit(
      0,
      run(`run_${who}`, [
        event('run.started', { run: { status: 'running' } }),
        event('action.completed', { payload: { job_id: `job_${who}`, result: {} } }),
        event('step.started', { step: 's', row: { status: 'failed', attempt: 9 } }),
        event('step.failed', { payload: { toJSON: fail } }),
      ]),
    )
    const entries = bad.data.entries.map((entry) => ({ ...entry, prev: cursorOf(1, 0) }))
    t.throws(() => interrupted.apply([{ ...bad, data: { ...bad.data, entries } }]), /no/)
  }
  t.equal(answers(interrupted, runs), wanted, 'batches that failed have changed nothing')
  interrupted.close()
  asked.close()
  t.end()
})
