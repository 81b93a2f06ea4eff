/**
 * Background embedding of rows by the indexer: restarts, changes to rows, a change of model, and
 * failures of the provider.
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { JsonObject } from '../../../../../protocol/common.ts'
import { isRefusal } from '../../../../../protocol/errors.ts'
import type { EmbeddingAnswer, SemanticProgress } from '../../../../../protocol/tables/semantic.ts'
import type { Store } from '../../../../../views/store.ts'
import { VectorCache } from '../../../../../views/tables/tables/vectors/cache.ts'
import {
  deleteSomeVectors,
  hasDropped,
} from '../../../../../views/tables/tables/vectors/indexes.ts'
import { searchSemantically } from '../../../../../views/tables/tables/vectors/search.ts'
import { History, TABLE, whole } from '../history.ts'
import { answering, encode, Indexing, MODEL, vectorOf } from './embedding.ts'

const schema = {
  identity_column: 'key',
  columns: [
    { name: 'key', type: 'string' as const, required: true },
    { name: 'note', type: 'string' as const },
    { name: 'count', type: 'number' as const },
  ],
}
const DAY_MS = 86_400_000
const row = (key: number, note = `note ${key}`): JsonObject => ({ key: `k${key}`, note })
function withRows(count: number): History {
  const history = new History(schema)
  history.insert(0, ...Array.from({ length: count }, (_, i) => row(i)))
  return history
}
const question = { id: TABLE, model: MODEL, query: 'note 1', mode: 'semantic' as const }
/**
 * Returns the keys that a search finds, in order. If the index is not ready, returns its progress.
 */
function search(
  history: History,
  more: object = {},
  store = history.store,
  now = 0,
): Partial<SemanticProgress> & { keys?: unknown[]; refused?: object | undefined } {
  const reply = whole(
    searchSemantically(store, store.findProject('prj_1'), now, { ...question, ...more }),
  )
  if (isRefusal(reply)) return { refused: reply.details }
  return 'ready' in reply ? reply : { keys: reply.items.map(({ data }) => data['key']) }
}
const found = (history: History, more: object = {}) =>
  search(history, { vector: vectorOf('note 1'), limit: 200, ...more })
const rowOf = (history: History, key: string): string =>
  [...history.rows.values()].find(({ identity }) => identity === key)?.id ?? ''
const vectors = (store: Store): number =>
  store.one<{ n: number }>('SELECT count(*) AS n FROM row_vectors')?.n ?? 0

t.test('only a table that has been searched by meaning is embedded', async (t) => {
  const history = withRows(3)
  const indexing = new Indexing(history.store)
  await indexing.pass(1000)
  t.equal(indexing.requests.length, 0)
  t.strictSame(search(history, { count: true }), {
    ready: false,
    through: 1,
    rows: 3,
    indexed_rows: 0,
  })
  await indexing.pass(1000)
  t.equal(indexing.texts().length, 3)
  t.strictSame(indexing.texts().toSorted()[0], 'key: k0\nnote: note 0', 'the texts of a row')
  t.match(search(history), { ready: true, through: 1 })
  t.equal(found(history).keys?.length, 3)
})
t.test('texts are requested in bounded batches', async (t) => {
  const history = withRows(100)
  const indexing = new Indexing(history.store, undefined, 100)
  search(history)
  await indexing.pass(1000)
  t.strictSame(
    indexing.requests.map(({ length }) => length),
    [32, 32, 32, 4],
  )
  history.insert(1, ...Array.from({ length: 40 }, (_, i) => row(100 + i, 'x'.repeat(9000))))
  await indexing.pass(1000)
  t.ok(
    indexing.requests.flat().every(({ length }) => length <= 100),
    'and long texts are cut',
  )
  const long = new Indexing(history.store, undefined, 30_000)
  history.insert(2, ...Array.from({ length: 10 }, (_, i) => row(200 + i, 'y'.repeat(30_000))))
  await long.pass(1000)
  t.strictSame(
    long.requests.map(({ length }) => length),
    [6, 4],
    'a batch has at most 200,000 characters',
  )
})
t.test('changes and deletions', async (t) => {
  const history = withRows(3)
  const indexing = new Indexing(history.store)
  search(history)
  await indexing.pass(1000)
  history.update(rowOf(history, 'k0'), 1, { ...row(0), count: 7 })
  t.match(search(history), { ready: false }, 'until it is known whether the text has changed')
  await indexing.pass(1000)
  t.equal(indexing.texts().length, 3, 'a changed number costs no embedding')
  t.match(search(history), { ready: true })
  history.update(rowOf(history, 'k0'), 2, row(0, 'other'))
  history.delete(rowOf(history, 'k2'))
  t.equal(vectors(history.store), 2, 'the vector of a deleted row is deleted with it')
  await indexing.pass(1000)
  t.strictSame(indexing.texts().slice(3), ['key: k0\nnote: other'])
  history.update(rowOf(history, 'k0'), 3, row(0))
  await indexing.pass(1000)
  t.equal(indexing.texts().length, 4, 'a text that was embedded before is not requested again')
  t.strictSame(found(history).keys?.toSorted(), ['k0', 'k1'])
})
t.test('an indexer that is stopped continues where it was', async (t) => {
  const history = withRows(70)
  const first = new Indexing(history.store)
  search(history)
  let requests = 0
  first.answer = (texts) => (++requests <= 1 ? answering(texts) : new Promise(() => {}))
  await first.pass(1000)
  first.indexer.stop()
  t.equal(vectors(history.store), 32)
  const second = new Indexing(history.store)
  await second.pass(1000)
  t.equal(second.texts().length, 38)
  t.equal(found(history).keys?.length, 70)
})
t.test('the answer to a request that ends after the indexer is ignored', async (t) => {
  const history = withRows(1)
  const indexing = new Indexing(history.store)
  search(history)
  let end = (_: EmbeddingAnswer) => {}
  indexing.answer = () => new Promise((resolve) => (end = resolve))
  await indexing.pass(1000)
  indexing.indexer.stop()
  end({ vectors: [vectorOf('a')] })
  await indexing.pass(1000)
  t.equal(vectors(history.store), 0)
  t.strictSame(indexing.alarms, [])
})
t.test('a rebuilt view takes the vectors from the cache', async (t) => {
  const history = withRows(50)
  const cache = VectorCache.open(':memory:')
  const indexing = new Indexing(history.store, cache)
  search(history)
  await indexing.pass(1000)
  const rebuilt = history.rebuilt()
  const again = new Indexing(rebuilt, cache)
  t.match(search(history, {}, rebuilt), { ready: false })
  await again.pass(1000)
  t.equal(again.requests.length, 0)
  t.strictSame(search(history, { vector: vectorOf('note 1'), limit: 200 }, rebuilt), found(history))
})
t.test('a provider that fails is asked again after growing pauses', async (t) => {
  const history = withRows(2)
  const indexing = new Indexing(history.store)
  search(history)
  indexing.answer = () => ({ failed: 'provider_unreachable', message: 'no connection' })
  await indexing.pass(10_000)
  t.equal(indexing.requests.length, 4, 'at once, after 1 s, 2 s and 4 s')
  t.match(search(history, { count: true }), {
    ready: false,
    rows: 2,
    indexed_rows: 0,
    fault: 'provider_unreachable',
  })
  indexing.answer = () => ({ failed: 'rate_limited', message: 'slower', retry_after: 30_000 })
  await indexing.pass(10_000)
  t.equal(indexing.requests.length, 5)
  indexing.answer = answering
  await indexing.pass(25_000)
  t.equal(indexing.requests.length, 5, 'the pause that the provider requests')
  await indexing.pass(10_000)
  t.strictSame(search(history), { ready: true, through: 1 }, 'and the fault is forgotten')
})
t.test('a row that the provider refuses does not delay other rows', async (t) => {
  const history = withRows(20)
  history.insert(1, row(20, `bad ${'x'.repeat(800)}`))
  const indexing = new Indexing(history.store)
  search(history)
  indexing.answer = (texts) =>
    texts.some((text) => text.includes('bad'))
      ? { failed: 'provider_refused', message: 'no', refused: true }
      : answering(texts)
  await indexing.pass(10_000)
  t.equal(vectors(history.store), 20)
  t.match(search(history, { count: true }), {
    ready: false,
    rows: 21,
    indexed_rows: 20,
    fault: 'provider_refused',
  })
  const shortest = Math.min(
    ...indexing.requests
      .filter(({ length }) => length === 1)
      .flat()
      .filter((text) => text.includes('bad'))
      .map(({ length }) => length),
  )
  t.ok(shortest <= 250, 'the text is also tried in shorter forms')
  const { length } = indexing.requests
  await indexing.pass(100_000)
  t.equal(indexing.requests.length, length, 'the row rests')
  indexing.answer = (texts) =>
    texts.some((text) => text.length > 500)
      ? { failed: 'provider_refused', message: 'too long', refused: true }
      : answering(texts)
  await indexing.pass(300_000)
  t.equal(found(history).keys?.length, 21)
})
t.test('rows that change while the provider is slow', async (t) => {
  const history = withRows(2)
  const indexing = new Indexing(history.store)
  search(history)
  const answers: (() => void)[] = []
  indexing.answer = (texts) =>
    new Promise((resolve) => answers.push(() => resolve(answering(texts))))
  const next = async () => {
    answers.shift()?.()
    await indexing.pass(1000)
  }
  await indexing.pass(1000)
  await next()
  history.update(rowOf(history, 'k0'), 1, row(0, 'second'))
  history.insert(1, row(2))
  const { through } = search(history)
  t.equal(through, 3)
  await indexing.pass(1000)
  // A row that changes repeatedly does not keep a search waiting.
  history.update(rowOf(history, 'k0'), 2, row(0, 'third'))
  history.delete(rowOf(history, 'k1'))
  t.match(search(history, { through }), { ready: false })
  await next()
  t.match(search(history, { through }), { ready: false })
  history.update(rowOf(history, 'k0'), 3, row(0, 'fourth'))
  await next()
  t.match(search(history, { through }), { ready: true }, 'it is ranked by a text that it had')
  t.match(search(history), { ready: false }, 'a later search needs the later text')
  t.strictSame(found(history, { through }).keys?.toSorted(), ['k0', 'k2'])
  await next()
  t.match(search(history), { ready: true })
  history.update(rowOf(history, 'k2'), 4, row(2, 'fifth'))
  await indexing.pass(1000)
  history.delete(rowOf(history, 'k2'))
  await next()
  t.equal(vectors(history.store), 1, 'a row that was deleted meanwhile gets no vector')
})
t.test('a model that changes its dimensions', async (t) => {
  const history = withRows(1)
  const indexing = new Indexing(history.store)
  search(history)
  await indexing.pass(1000)
  history.insert(1, row(1))
  indexing.answer = () => ({ vectors: [encode([1, 0])] })
  await indexing.pass(5000)
  t.match(search(history), { ready: false, fault: 'invalid_response' })
  t.ok(indexing.requests.length < 6)
  t.match(found(history, { through: 1, vector: encode([1, 0]) }), {
    refused: { reason: 'invalid_response' },
  })
})
t.test('one answer with another number of dimensions', async (t) => {
  const history = withRows(1)
  const other = new History(schema, 'tbl_2', history.store)
  other.insert(0, row(0, 'healthy'))
  const indexing = new Indexing(history.store)
  search(history)
  search(other, { id: 'tbl_2' })
  await indexing.pass(1000)
  history.insert(1, row(1), row(2))
  const wrong: (texts: readonly string[]) => EmbeddingAnswer = (texts) => ({
    vectors: texts.map((text) => (text.includes('k1') ? encode([1, 0]) : vectorOf(text))),
  })
  indexing.answer = wrong
  await indexing.pass(500)
  t.match(search(history), { ready: false, fault: 'invalid_response' })
  t.equal(vectors(history.store), 3, 'the other vectors of the answer are stored')
  other.insert(1, row(1, 'healthier'))
  const { through } = search(other, { id: 'tbl_2' })
  indexing.answer = answering
  await indexing.pass(100)
  t.strictSame(
    search(other, { id: 'tbl_2', through }),
    { ready: true, through },
    'another table neither waits nor has the fault',
  )
  t.match(search(history), { ready: false, fault: 'invalid_response' }, 'the table rests')
  await indexing.pass(1000)
  t.strictSame(search(history), { ready: true, through: 2 }, 'the row is requested again')
  t.equal(found(history).keys?.length, 3)
  t.equal(indexing.texts().filter((text) => text.includes('k2')).length, 1)
})
t.test('a cached vector with another number of dimensions is requested again', async (t) => {
  const history = withRows(2)
  const indexing = new Indexing(history.store)
  search(history)
  await indexing.pass(1000)
  const text = 'key: k2\nnote: note 2'
  const hash = createHash('sha256').update(`${MODEL}\0${text}`).digest()
  const wrong = Buffer.from(encode([1, 0]), 'base64')
  indexing.cache.put([{ hash, vector: wrong }])
  history.insert(1, row(2))
  await indexing.pass(1000)
  t.strictSame(search(history), { ready: true, through: 2 })
  t.equal(indexing.texts().length, 3)
  t.equal(indexing.cache.get(hash)?.length, 12, 'and replaced')
})
t.test('another model embeds all rows again', async (t) => {
  const history = withRows(2)
  const indexing = new Indexing(history.store)
  search(history)
  await indexing.pass(1000)
  t.match(search(history, { model: 'other' }), { ready: false })
  await indexing.pass(1000)
  t.equal(indexing.texts().length, 2, 'this indexer has the first model')
  t.match(search(history), { ready: false })
  await indexing.pass(1000)
  t.match(search(history), { ready: true })
  t.equal(indexing.texts().length, 2, 'whose vectors are known')
})
t.test('a changed schema hides values from searches', async (t) => {
  const history = withRows(2)
  const indexing = new Indexing(history.store)
  search(history)
  await indexing.pass(1000)
  history.evolve({ ...schema, columns: schema.columns.filter(({ name }) => name !== 'note') })
  t.match(search(history), { ready: false })
  await indexing.pass(1000)
  t.strictSame(indexing.texts().slice(2).toSorted(), ['key: k0', 'key: k1'])
})
t.test('vectors of unused and deleted tables are deleted', async (t) => {
  for (const reason of ['unused', 'deleted']) {
    const history = withRows(3)
    const indexing = new Indexing(history.store)
    search(history)
    await indexing.pass(1000)
    indexing.now = 29 * DAY_MS
    history.insert(1, row(3))
    await indexing.pass(1000)
    t.equal(vectors(history.store), 4)
    search(history, {}, history.store, 29 * DAY_MS)
    indexing.now = 31 * DAY_MS
    history.insert(2, row(4))
    await indexing.pass(1000)
    t.equal(vectors(history.store), 5, 'a search renews the time')
    if (reason === 'deleted')
      history.apply({ type: 'table.deleted', id: TABLE, table_name: 'alerts' } as never)
    else {
      indexing.now = 60 * DAY_MS
      history.insert(3, row(5))
      await indexing.pass(1000)
    }
    t.ok(hasDropped(history.store))
    while (hasDropped(history.store)) deleteSomeVectors(history.store)
    t.equal(vectors(history.store), 0, reason)
    t.equal(indexing.texts().length, 5, 'rows that are not searched cost nothing')
  }
})

t.test('the cache is bounded and survives damage', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-vectors-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'cache.sqlite')
  const cache = VectorCache.open(file, 1_000_000)
  const entry = (n: number) => ({ hash: Buffer.from(`hash ${n}`), vector: Buffer.alloc(1000, n) })
  for (let n = 0; n < 4000; n += 100) cache.put(Array.from({ length: 100 }, (_, i) => entry(n + i)))
  t.equal(cache.get(entry(0).hash), undefined, 'the oldest are deleted')
  t.strictSame(cache.get(entry(3999).hash), entry(3999).vector)
  cache.close()
  const again = VectorCache.open(file)
  t.strictSame(again.get(entry(3999).hash), entry(3999).vector)
  again.close()
  writeFileSync(
    file,
    'this is not a database, although it has more than a hundred bytes '.repeat(9),
  )
  const empty = VectorCache.open(file)
  t.equal(empty.get(entry(3999).hash), undefined)
  empty.close()
})
