/**
 * Semantic and hybrid search of rows, over HTTP: with the built-in embedding model for tests, and
 * with an embedding server.
 */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, listOf, pages, until } from '../support/given.ts'
import { embeddingServer } from '../support/servers/embeddings.ts'
import { insertAll, numbersOf, tableOf } from '../support/tables.ts'

const BATON_MODELS = JSON.stringify({ providers: [], embedding: { model: 'service/hashed' } })
const s = await service({ BATON_MODELS })
t.teardown(() => s.stop())
const semantic = { mode: 'semantic' }
const unavailable = 'table_semantic_search_unavailable'
const search = async (id: unknown, query: string, more: object = semantic): Promise<string[]> =>
  numbersOf(await s.ok('table.search', { id, query, ...more }))

t.test('rows are ranked by meaning, whatever their words are', async (t) => {
  const { id } = await tableOf(s)
  await insertAll(s, id, [
    { number: 'a', customer: 'physician', note: 'hospital' },
    { number: 'b', customer: 'automobile', note: 'factory' },
    { number: 'c', customer: 'baker', note: 'bread' },
  ])
  t.equal((await search(id, 'car'))[0], 'b')
  t.equal((await search(id, 'doctor'))[0], 'a')
  t.strictSame(await search(id, 'car', {}), [], 'keyword search finds words only')
  const filter = { number: { $in: ['a', 'c'] } }
  t.strictSame((await search(id, 'car', { ...semantic, filter })).toSorted(), ['a', 'c'])
  t.strictSame(await search(id, 'car', { ...semantic, filter: { customer: 'none' } }), [])
  t.match(await s.ok('table.search', { id, query: 'car', ...semantic }), {
    has_more: false,
    limit: 20,
  })
})
t.test('a search sees every change that was answered before it', async (t) => {
  const { id } = await tableOf(s)
  t.strictSame(await search(id, 'car'), [])
  const [row] = await insertAll(s, id, [{ number: 'a', note: 'auto' }, { number: 'b' }])
  t.equal((await search(id, 'car'))[0], 'a')
  const at = { id, row_id: row?.['id'] }
  await s.ok('row.update', { ...at, data: { note: 'bread' } })
  await s.ok('row.insert', { id, data: { number: 'c', note: 'car' } })
  t.equal((await search(id, 'car'))[0], 'c')
  await s.call('row.delete', at)
  t.strictSame((await search(id, 'bread')).toSorted(), ['b', 'c'])
})
t.test('hybrid search combines both orders', async (t) => {
  const { id } = await tableOf(s)
  await insertAll(s, id, [
    { number: 'a', note: 'bread and butter' },
    { number: 'b', note: 'an overdue invoice of the automobile' },
    { number: 'c', note: 'late payments for cars' },
    { number: 'd', note: 'cars' },
  ])
  const found = await search(id, 'late payments for cars', { mode: 'hybrid' })
  t.equal(found[0], 'c', 'the first in both orders')
  t.ok(found.includes('b'), 'a row without a word of the query')
  t.equal(found.length, 4)
})
t.test('pages neither repeat nor skip rows when others change', async (t) => {
  const { id } = await tableOf(s)
  const rows = Array.from({ length: 30 }, (_, i) => ({ number: `n${i}`, note: `w${i % 7} car` }))
  await insertAll(s, id, rows)
  for (const mode of ['semantic', 'hybrid']) {
    const whole = await search(id, 'w1 car', { mode, limit: 100 })
    t.equal(new Set(whole).size, whole.length)
    const asked = { id, query: 'w1 car', mode, limit: 7 }
    const first = await s.ok('table.search', asked)
    t.match(first, { has_more: true, limit: 7 })
    await insertAll(s, id, [{ number: `new ${mode}`, note: 'w1 car' }])
    const seen = numbersOf(first)
    for (let cursor: unknown = first['next_cursor']; cursor !== undefined; ) {
      const page = await s.ok('table.search', { ...asked, cursor })
      seen.push(...numbersOf(page))
      cursor = page['next_cursor']
    }
    t.equal(new Set(seen).size, seen.length, 'no row is repeated')
    t.strictSame(
      whole.filter((number) => !seen.includes(number)),
      [],
      'no row is skipped',
    )
    const cursor = first['next_cursor']
    await s.refused('table.search', { id, query: 'w1 car', cursor }, 400, 'bad_request')
  }
  t.equal((await pages(s, 'table.search', { id, query: 'car', ...semantic, limit: 9 })).length, 32)
})
t.test('refused searches', async (t) => {
  const { id } = await tableOf(s)
  const faults = async (more: object) =>
    fieldsOf(await s.refused('table.search', { id, ...semantic, ...more }, 400, 'bad_request'))
  t.strictSame(await faults({ query: '  ' }), ['query'])
  t.strictSame(await faults({ query: 'a', filter: { none: 1 } }), ['filter.none'])
  await s.refused('table.search', { id: 'tbl_none', query: 'a', ...semantic }, 404, 'not_found')
})

t.test('a server of embeddings', async (t) => {
  const server = await embeddingServer()
  const it = await service({ BATON_MODELS: server.setting, BATON_VIEW_THREADS: 'on' })
  t.teardown(async () => {
    await it.stop()
    await server.close()
  })
  const { id } = await tableOf(it)
  await insertAll(it, id, [
    { number: 'a', note: 'automobile' },
    { number: 'b', note: 'bread' },
  ])
  const asked = { id, query: 'car', ...semantic }
  const found = async () => numbersOf(await it.ok('table.search', asked))

  server.status = 503
  const { details } = await it.refused('table.search', asked, 503, unavailable)
  t.match(details, { reason: 'provider_error', rows: 2, indexed_rows: 0 })
  const { headers } = await it.call('table.search', { ...asked, mode: 'hybrid' })
  t.equal(headers.get('retry-after'), '5', 'and hybrid search does not fall back to keywords')
  t.equal(listOf(await it.ok('table.search', { id, query: 'auto' })).length, 1)

  server.status = 200
  await until(
    async () => (await it.call('table.search', asked)).status,
    (status) => status === 200,
  )
  t.strictSame(await found(), ['a', 'b'])
  t.strictSame(server.texts.toSorted(), [
    'car',
    'note: automobile\nnumber: a',
    'note: bread\nnumber: b',
  ])

  await it.restart()
  t.strictSame(await found(), ['a', 'b'])
  t.equal(server.texts.length, 4, 'only the query is embedded again')
  await it.restart(() => {
    const folder = join(it.data, 'node-0', 'views')
    const files = readdirSync(folder).filter((name) => !name.includes('vectors'))
    t.ok(files.includes('0.sqlite'))
    for (const name of files) rmSync(join(folder, name))
  })
  t.strictSame(await found(), ['a', 'b'])
  t.equal(server.texts.length, 5, 'also by a view that is rebuilt')

  server.status = 500
  const failed = await it.refused('table.search', { ...asked, query: 'x' }, 503, unavailable)
  t.match(failed.details, { reason: 'provider_error' })
  t.strictSame(await found(), ['a', 'b'], 'the vector of a recent query is known')
})
