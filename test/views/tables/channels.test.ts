/**
 * Queries for channels and messages use an index for every filter. Search text is never parsed as a
 * query.
 */
import Database from 'better-sqlite3'
import t from 'tap'
import type { Refusal } from '../../../protocol/errors.ts'
import { migrate } from '../../../views/files/migrate.ts'
import { itemsThatFit, page as paged, planPage } from '../../../views/page.ts'
import type { Value } from '../../../views/store.ts'
import { Store } from '../../../views/store.ts'
import { planChannels } from '../../../views/tables/channels/channels.ts'
import { matchOf, searchMessages } from '../../../views/tables/channels/message-search.ts'
import { messageListing, placesOf } from '../../../views/tables/channels/messages.ts'

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

t.test('every list is read along one index, in order', (t) => {
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
          const input = {
            ...(sender_id && { sender_id }),
            ...(reply_to && { reply_to }),
            ...(pinned !== undefined && { pinned }),
            ...(after && { after }),
          }
          const { sql, values } = planPage(messageListing(1, input), input)
          const plan = planOf(db, sql, values)
          if (/TEMP B-TREE|SCAN/.test(plan) || !/^SEARCH messages USING INDEX/.test(plan))
            t.fail(`${sql}: ${plan}`)
        }
  db.close()
  t.pass('all')
  t.end()
})

t.test('a search text is treated as phrases, whatever it contains', (t) => {
  const o1 = { within: ['o1'], without: [] }
  const words = (count: number) => Array.from({ length: count }, (_, n) => n).join(' ')
  t.equal(matchOf('a b', o1), 'place : (o1) AND content : ("a" AND "b")')
  t.equal(matchOf(' "x" OR* ', o1), 'place : (o1) AND content : ("""x""" AND "OR*")')
  for (const none of ['', '  ', '"', '* ( )', '-']) t.equal(matchOf(none, o1), undefined, none)
  t.equal(
    matchOf('a', { within: ['o1', 'c2'], without: ['c3', 'c4'] }),
    'place : (o1 OR c2) AND content : ("a") NOT place : (c3 OR c4)',
  )
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
    t.same(searchMessages(store, 1, { q, viewer: { id: 'a', admin: false } }), { items: [] }, q)
  }
  t.match(
    searchMessages(store, 1, { q: words(17), viewer: { id: 'a', admin: false } }),
    { refused: 'bad_request', details: { fields: [{ field: 'q', actual: 17 }] } },
    'no word is left out',
  )
  store.db.close()
  t.end()
})

t.test('a page of a search reveals nothing about hits that the caller cannot read', (t) => {
  const db = database()
  const store = new Store(db)
  const viewer = { id: 'me', admin: false }
  const closed = new Map<number, 0 | 1>()
  /** Creates a channel, or changes whether it is private. */
  const channel = (n: number, isPrivate: 0 | 1) => {
    if (closed.has(n))
      db.prepare('UPDATE channels SET private = ?, mixed = 1 WHERE n = ?').run(isPrivate, n)
    else
      db.prepare(
        `INSERT INTO channels (
           n, id, project, kind, private, created_at, members, message_seq, last, record
         ) VALUES (?, ?, 1, 'channel', ?, 0, 0, 0, 0, '{}')`,
      ).run(n, `chan_${n}`, isPrivate)
    closed.set(n, isPrivate)
  }
  let cursor = 0
  const add = (n: number, count = 1) => {
    for (let i = 0; i < count; i++) {
      cursor++
      db.prepare(
        `INSERT INTO messages (cursor, id, channel, sender, root, pinned, replies, record)
         VALUES (?, ?, ?, ?, NULL, 0, 0, ?)`,
      ).run(cursor, `m${cursor}`, n, 's', JSON.stringify({ id: `m${cursor}` }))
      db.prepare('INSERT INTO message_words (rowid, content, place) VALUES (?, ?, ?)').run(
        cursor,
        'word',
        placesOf({ n, project: 1, private: closed.get(n) ?? 0 }),
      )
    }
  }
  const pages = () => {
    const found: string[][] = []
    for (let after: readonly Value[] | undefined, more = true; more; ) {
      const page = searchMessages(store, 1, {
        q: 'word',
        viewer,
        limit: 2,
        ...(after && { after }),
      }) as Exclude<ReturnType<typeof searchMessages>, Refusal>
      found.push(page.items.map(({ id }) => id))
      after = page.position
      more = after !== undefined
    }
    return found
  }
  db.transaction(() => {
    for (const n of [1, 3, 5]) channel(n, 0)
    for (const n of [2, 4]) channel(n, 1)
    add(1, 3)
    add(2, 5000)
    add(3, 5)
    add(4, 1)
    channel(3, 1)
    channel(4, 0)
  })()
  t.strictSame(pages(), [
    ['m5009', 'm3'],
    ['m2', 'm1'],
  ])
  add(5)
  channel(5, 1)
  db.prepare(
    `INSERT INTO channel_members (
       channel, member, project, channel_id, born, joined_at, last_read, record
     ) VALUES (5, 'me', 1, 'chan_5', 0, 0, 0, '{}')`,
  ).run()
  t.strictSame(pages()[0], ['m5010', 'm5009'], 'a new member can read earlier messages')
  db.close()
  t.end()
})

t.test('a page fits into one message, and contains at least one item', (t) => {
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
    itemsThatFit([1, 2, 3], 2, () => 0),
    [1, 2],
  )
  t.end()
})
