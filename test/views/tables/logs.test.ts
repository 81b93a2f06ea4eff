/**
 * A thread checkpoints the write-ahead log of a view, even if the view's file was recreated.
 * Invariant: no data is lost.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import t from 'tap'
import { startLogs } from '../../../views/files/logs.ts'

const ROW = 'x'.repeat(1000)
const rows = (db: Database.Database): number =>
  (db.prepare('SELECT count(*) AS n FROM t').get() as { n: number }).n
/** Creates a database of `count` rows of 1 KB, without automatic checkpoints of its log. */
function filled(file: string, count: number): Database.Database {
  const db = new Database(file)
  db.pragma('journal_mode = WAL')
  db.pragma('wal_autocheckpoint = 0')
  db.exec('CREATE TABLE IF NOT EXISTS t (x)')
  fill(db, count)
  return db
}
const fill = (db: Database.Database, count: number): void =>
  db.transaction(() => {
    for (let i = 0; i < count; i++) db.prepare('INSERT INTO t VALUES (?)').run(ROW)
  })()
/** Waits up to 10 s for a condition that another thread establishes. */
async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = Date.now() + 10_000; !holds(); await new Promise((again) => setImmediate(again)))
    if (Date.now() > end) throw new Error(`${what} did not happen`)
}

t.test('a long log is checkpointed while its owner writes; a short one is left', async (t) => {
  const file = join(mkdtempSync(join(tmpdir(), 'logs-')), 'v.sqlite')
  t.teardown(() => rmSync(join(file, '..'), { recursive: true }))
  const logs = startLogs((error) => t.fail(error.message))
  const db = filled(file, 100)
  const small = statSync(file).size
  logs.saved(file)
  fill(db, 6000)
  logs.saved(file)
  db.exec('BEGIN IMMEDIATE')
  db.prepare('INSERT INTO t VALUES (?)').run(ROW)
  await until('the move', () => statSync(file).size > small + 5_000_000)
  db.exec('COMMIT')
  t.equal(rows(db), 6101)
  db.close()
  await logs.stop()
  t.equal(
    statSync(`${file}-wal`, { throwIfNoEntry: false }),
    undefined,
    'the log is gone when both have closed',
  )
  const again = new Database(file)
  t.equal(rows(again), 6101)
  again.close()
})

t.test('a recreated file keeps its log', async (t) => {
  const file = join(mkdtempSync(join(tmpdir(), 'logs-')), 'v.sqlite')
  t.teardown(() => rmSync(join(file, '..'), { recursive: true }))
  const logs = startLogs((error) => t.fail(error.message))
  const first = filled(file, 6000)
  logs.saved(file)
  await until('the move', () => statSync(file).size > 5_000_000)
  first.close()
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
  const second = filled(file, 5000)
  await until('the second move', () => {
    logs.saved(file)
    return statSync(file).size > 4_000_000
  })
  fill(second, 10)
  second.close()
  await logs.stop()
  const again = new Database(file)
  t.equal(rows(again), 5010)
  again.close()
})
