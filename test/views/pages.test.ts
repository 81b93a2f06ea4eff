/**
 * However long the rows are, each page has a limited number of characters, and no row is skipped
 * between two pages.
 */
import Database from 'better-sqlite3'
import t from 'tap'
import { cursorOf } from '../../protocol/entry.ts'
import type { Refusal } from '../../protocol/errors.ts'
import { migrate } from '../../views/files/migrate.ts'
import { MAX_PAGE_CHARACTERS } from '../../views/page.ts'
import { Store } from '../../views/store.ts'
import { messagesOfSession } from '../../views/tables/sessions/lists.ts'
import { View } from '../../views/view.ts'
import { ask, event, Journal, moved, run, started } from './support/journal.ts'

interface Timeline {
  readonly items: readonly { readonly sequence: number }[]
  readonly last: number
  readonly more: boolean
}
interface EventPage {
  readonly items: readonly { readonly sequence: number }[]
  readonly next_sequence: number
  readonly has_more: boolean
}
interface Actions {
  readonly items: readonly unknown[]
  readonly position?: readonly unknown[]
}

const LONG = 300_000
const long = 'x'.repeat(LONG)
const done = <T>(found: T | Refusal): T => {
  if (typeof found === 'object' && found !== null && 'refused' in found)
    throw new Error(found.refused)
  return found as T
}

/**
 * Returns a store with a session whose messages have 300,000 characters each, and a counter of the
 * rows that were read from the store.
 */
function session(count: number) {
  const db = new Database(':memory:')
  migrate(db)
  db.prepare(
    `INSERT INTO sessions (
       n, id, project, agent, session_key, scope, status,
       private, active_at, revision, gone, record, compaction
     ) VALUES (1, 'ses_1', 1, 'agt', 'k', 's', 'active', 0, 0, 0, 0, '{}', '{}')`,
  ).run()
  const insert = db.prepare(
    'INSERT INTO session_messages (session, id, sequence, hidden, revision, record) VALUES (1, ?, ?, 0, ?, ?)',
  )
  for (let n = 1; n <= count; n++) {
    const record = {
      id: `msg_${n}`,
      sequence: n,
      role: 'user',
      content: [{ type: 'text', text: long }],
    }
    insert.run(`msg_${n}`, n, n, JSON.stringify(record))
  }
  const store = new Store(db)
  const read = { rows: 0 }
  const each = store.each.bind(store)
  store.each = function* <R>(sql: string, ...values: Parameters<typeof each>[1][]) {
    for (const row of each<R>(sql, ...values)) {
      read.rows++
      yield row
    }
  } as typeof store.each
  return { store, read }
}

t.test('messages of a session, forwards and backwards', (t) => {
  const { store, read } = session(20)
  const page = (more: object) =>
    done(messagesOfSession(store, 1, { session_id: 'ses_1', limit: 200, ...more }))
  const forwards: number[] = []
  for (let after = 0, more = true; more; ) {
    read.rows = 0
    const found = page({ after_sequence: after })
    t.ok(JSON.stringify(found).length <= MAX_PAGE_CHARACTERS + LONG)
    t.ok(read.rows <= 5, `${read.rows} rows were read`)
    forwards.push(...found.items.map(({ sequence }) => sequence))
    after = found.next_sequence ?? 0
    more = found.has_more
  }
  t.strictSame(
    forwards,
    Array.from({ length: 20 }, (_, n) => n + 1),
  )
  const backwards: number[] = []
  for (let before: number | undefined, more = true; more; ) {
    const found = page({ order: 'desc', ...(before !== undefined && { before_sequence: before }) })
    backwards.unshift(...found.items.map(({ sequence }) => sequence))
    before = found.prev_sequence
    more = found.has_more
  }
  t.strictSame(backwards, forwards)
  t.end()
})

t.test('the timeline and the actions of a run', (t) => {
  const journal = new Journal()
  const view = View.open(':memory:')
  view.apply([journal.commit(0, started('run_1', 1), moved('run_1', 'running'))])
  for (let n = 0; n < 12; n++)
    view.apply([
      journal.commit(
        0,
        run('run_1', [
          event('action.called', {
            step: `s${n}`,
            payload: {
              action: 'a',
              step: `s${n}`,
              parameters: { long },
              job_id: `job_${n}`,
              attempt: 1,
            },
          }),
        ]),
      ),
    ])
  const { last } = ask<Timeline>(
    view,
    'timeline',
    { run_id: 'run_1', after: 0, limit: 1000 },
    'prj_a',
  )
  t.ok(last < cursorOf(13, 0), 'a page that is cut reaches its last event only')
  const sequences: number[] = []
  for (let after = 0, more = true; more; ) {
    const found = ask<Timeline>(view, 'timeline', { run_id: 'run_1', after, limit: 1000 }, 'prj_a')
    t.ok(JSON.stringify(found).length <= MAX_PAGE_CHARACTERS + 2 * LONG)
    sequences.push(...found.items.map(({ sequence }) => sequence))
    after = found.last
    more = found.more
  }
  const paged: number[] = []
  for (let after_sequence = 0, more = true; more; ) {
    const found = ask<EventPage>(
      view,
      'run.events',
      { id: 'run_1', after_sequence, limit: 200 },
      'prj_a',
    )
    paged.push(...found.items.map(({ sequence }) => sequence))
    after_sequence = found.next_sequence
    more = found.has_more
  }
  t.strictSame(paged, sequences)
  const calls: unknown[] = []
  for (let after: readonly unknown[] | undefined, more = true; more; ) {
    const found = ask<Actions>(
      view,
      'run.action_log',
      { id: 'run_1', limit: 200, ...(after && { after }) },
      'prj_a',
    )
    t.ok(JSON.stringify(found).length <= MAX_PAGE_CHARACTERS + 2 * LONG)
    calls.push(...found.items)
    after = found.position
    more = after !== undefined
  }
  t.equal(calls.length, 12)
  t.equal(sequences.length, 13)
  t.end()
})
