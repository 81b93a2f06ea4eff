/** Semantic and hybrid search of rows, over HTTP, with the built-in embedding model for tests. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { dataOf, insertAll, numbersOf, tableOf } from '../support/tables.ts'

const BATON_MODELS = JSON.stringify({ providers: [], embedding: { model: 'service/hashed' } })
const s = await service({ BATON_MODELS })
t.teardown(() => s.stop())

const search = async (id: unknown, query: string, more: object = {}): Promise<string[]> =>
  numbersOf(await s.ok('table.search', { id, query, mode: 'semantic', ...more }))

t.test('rows are ranked by meaning, whatever their words are', async (t) => {
  const { id } = await tableOf(s)
  await insertAll(s, id, [
    { number: 'a', customer: 'physician', note: 'hospital' },
    { number: 'b', customer: 'automobile', note: 'factory' },
    { number: 'c', customer: 'baker', note: 'bread' },
  ])
  t.equal((await search(id, 'car'))[0], 'b')
  t.equal((await search(id, 'doctor'))[0], 'a')
  t.strictSame(numbersOf(await s.ok('table.search', { id, query: 'car' })), [], 'keyword search')
  t.strictSame(
    await search(id, 'car', { filter: { number: { $in: ['a', 'c'] } } }).then((found) =>
      found.toSorted(),
    ),
    ['a', 'c'],
  )
})
