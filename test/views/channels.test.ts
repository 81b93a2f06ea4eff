/** Lists of channels and messages are ranges of indexes, however they are filtered; what is typed into a search is no query. */
import Database from 'better-sqlite3'
import t from 'tap'
import type { Refusal } from '../../protocol/errors.ts'
import { planChannels } from '../../views/channels.ts'
import { matchOf, search } from '../../views/message-search.ts'
import { planMessages } from '../../views/messages.ts'
import { migrate } from '../../views/migrate.ts'
import { fitting, page as paged } from '../../views/page.ts'
import { Store } from '../../views/store.ts'
import type { Value } from '../../views/store.ts'

function database(): Database.Database {
  const db = new Database(':memory:')
  migrate(db)
  return db
}
const planOf = (db: Database.Database, sql: string, values: readonly Value[]): string =>
  db
    .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
    .all(...values)
    .map(({ detail }) => detail)
    .join('; ')

t.test('every list is read along one index, in its order', (t) => {
  const db = database()
  for (const admin of [true, false])
    for (const kind of [undefined, 'dm'])
      for (const closed of [undefined, true])
        for (const after of [undefined, [1, 'chan_1']]) {
          for (const { sql, values } of planChannels(1, {
            viewer: { id: 'a', admin },
            ...(kind && { kind }),
            ...(closed !== undefined && { private: closed }),
            ...(after && { after }),
          })) {
            const plan = planOf(db, sql, values)
            if (/TEMP B-TREE|SCAN/.test(plan) || !/SEARCH \w+ USING (COVERING )?INDEX/.test(plan))
              t.fail(`${sql}: ${plan}`)
          }
        }
  for (const sender_id of [undefined, 'a'])
    for (const reply_to of [undefined, 'm'])
      for (const pinned of [undefined, true, false])
        for (const after of [undefined, [5]]) {
          const { sql, values } = planMessages(1, {
            ...(sender_id && { sender_id }),
            ...(reply_to && { reply_to }),
            ...(pinned !== undefined && { pinned }),
            ...(after && { after }),
          })
          const plan = planOf(db, sql, values)
          if (/TEMP B-TREE|SCAN/.test(plan) || !/^SEARCH messages USING INDEX/.test(plan))
            t.fail(`${sql}: ${plan}`)
        }
  db.close()
  t.pass('all')
  t.end()
})

t.test('a search is phrases, whatever they contain', (t) => {
  const words = (count: number) => Array.from({ length: count }, (_, n) => n).join(' ')
  t.equal(matchOf('a b', 'p1'), 'place : p1 AND content : ("a" AND "b")')
  t.equal(matchOf(' "x" OR* ', 'p1'), 'place : p1 AND content : ("""x""" AND "OR*")')
  for (const none of ['', '  ', '"', '* ( )', '-']) t.equal(matchOf(none, 'p1'), undefined, none)
  const store = new Store(database())
  for (const q of [
    'a"b',
    '"""',
    'a OR b',
    'NEAR(a)',
    'a*',
    '^a',
    'a:b',
    '{a}',
    'a + b',
    '\0a',
    'é',
    '日本',
    'x'.repeat(256),
    words(16),
  ]) {
    t.same(search(store, 1, { q, viewer: { id: 'a', admin: false } }), { items: [] }, q)
  }
  t.match(
    search(store, 1, { q: words(17), viewer: { id: 'a', admin: false } }),
    { refused: 'bad_request', details: { fields: [{ field: 'q', actual: 17 }] } },
    'no word is left out',
  )
  store.db.close()
  t.end()
})

t.test('a search that hits only what cannot be read ends, and goes on where it ended', (t) => {
  const db = database()
  const store = new Store(db)
  const viewer = { id: 'me', admin: false }
  const channel = (n: number, closed: number) =>
    db
      .prepare(
        "INSERT INTO channels (n, id, project, kind, private, created_at, members, message_seq, last, record) VALUES (?, ?, 1, 'channel', ?, 0, 0, 0, 0, '{}')",
      )
      .run(n, `chan_${n}`, closed)
  channel(1, 0)
  channel(2, 1)
  const add = (cursor: number, n: number) => {
    db.prepare(
      'INSERT INTO messages (cursor, id, channel, sender, root, pinned, replies, record) VALUES (?, ?, ?, ?, NULL, 0, 0, ?)',
    ).run(cursor, `m${cursor}`, n, 's', JSON.stringify({ id: `m${cursor}` }))
    db.prepare('INSERT INTO message_words (rowid, content, place) VALUES (?, ?, ?)').run(
      cursor,
      'word',
      `p1 c${n}`,
    )
  }
  db.transaction(() => {
    for (let cursor = 1; cursor <= 3; cursor++) add(cursor, 1)
    for (let cursor = 4; cursor <= 12_000; cursor++) add(cursor, 2)
  })()
  const found: string[] = []
  let questions = 0
  for (let after: readonly Value[] | undefined, more = true; more; questions++) {
    const page = search(store, 1, {
      q: 'word',
      viewer,
      limit: 2,
      ...(after && { after }),
    }) as Exclude<ReturnType<typeof search>, Refusal>
    found.push(...page.items.map(({ id }) => id))
    after = page.position
    more = after !== undefined
  }
  t.same(found, ['m3', 'm2', 'm1'])
  t.ok(questions >= 5 && questions <= 9, `${questions} pages`)
  db.close()
  t.end()
})

t.test('a page holds what can be sent as one message, and one item at least', (t) => {
  const rows = (...sizes: number[]) => sizes.map((size, n) => ({ n, record: 'x'.repeat(size) }))
  const page = (limit: number, ...sizes: number[]) =>
    paged(
      rows(...sizes),
      { limit },
      ({ n }) => n,
      ({ n }) => [n],
    )
  t.strictSame(page(2, 1, 1), { items: [0, 1] })
  t.strictSame(page(2, 1, 1, 1), { items: [0, 1], position: [1] })
  t.strictSame(page(5, 400_000, 400_000, 400_000), { items: [0, 1], position: [1] })
  t.strictSame(page(5, 3_000_000, 1), { items: [0], position: [0] })
  t.strictSame(page(5), { items: [] })
  t.strictSame(
    fitting([1, 2, 3], 2, () => 0),
    [1, 2],
  )
  t.end()
})
