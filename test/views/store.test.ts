/** The statements that a view prepares. */
import t from 'tap'
import { openStore } from '../../views/files/file.ts'

t.test(
  'no statement is prepared with `LIMIT ?`, which SQLite would prepare again for each execution',
  (t) => {
    const store = openStore(':memory:')
    t.teardown(() => void store.db.close())
    const prepared: string[] = []
    const prepare = store.db.prepare.bind(store.db)
    Object.assign(store.db, {
      prepare: (sql: string) => {
        prepared.push(sql)
        return prepare(sql)
      },
    })
    const values = (limit: number) =>
      store
        .all<{ n: number }>(
          'SELECT n FROM (SELECT value AS n FROM json_each(?) LIMIT ?) ORDER BY n DESC LIMIT ?',
          '[1, 2, 3, 4]',
          3,
          limit,
        )
        .map(({ n }) => n)
    t.strictSame([values(2), values(1), values(0)], [[3, 2], [3], []])
    t.equal(prepared.length, 1)
    t.notMatch(prepared[0], 'LIMIT ?')
    t.end()
  },
)
