/**
 * Semantic and hybrid searches give the same answers as a plain implementation, with and without
 * the extension, for any schema, rows and history.
 */
import fc from 'fast-check'
import t from 'tap'
import { isRefusal } from '../../../../../protocol/errors.ts'
import { visibleData } from '../../../../../protocol/tables/row-data.ts'
import type { TableRow } from '../../../../../protocol/tables/schema.ts'
import { rowTokens, tokensOf } from '../../../../../protocol/tables/search.ts'
import {
  anyHits,
  embeddedText,
  fuse,
  type SemanticQueries,
} from '../../../../../protocol/tables/semantic.ts'
import { addDistance } from '../../../../../views/tables/tables/vectors/distance.ts'
import { searchSemantically } from '../../../../../views/tables/tables/vectors/search.ts'
import { evolved, queries, schemas, steps } from '../arbitraries.ts'
import { History, notes, pages, TABLE, whole } from '../history.ts'
import { distance, Indexing, MODEL, numbersOf, vectorOf } from './embedding.ts'

type Input = SemanticQueries['table_semantic']['input']
type Asked = Pick<Input, 'query' | 'mode'> & Partial<Input>
const ask = (history: History, input: Asked) =>
  whole(
    searchSemantically(history.store, history.project, 0, { id: TABLE, model: MODEL, ...input }),
  )
const withoutExtension = (): never => {
  throw new Error('there is no extension')
}

/** Returns the ids that the rules select, best first; undefined if the search is not valid. */
function expected(history: History, { query, mode, filter }: Asked): string[] | undefined {
  const rows = history.expected(filter ? { filter } : {})
  if (!rows) return undefined
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)
  const shown = rows.map((row) => ({ ...row, data: visibleData(history.schema, row.data) }))
  const near = shown
    .map((row) => ({
      id: row.id,
      far: distance(numbersOf(embeddedText(row.data, 1000)), numbersOf(query)),
    }))
    .sort((a, b) => (Math.abs(a.far - b.far) > 1e-5 ? a.far - b.far : byId(a, b)))
    .map(({ id }) => id)
  if (mode === 'semantic') return near
  const words = tokensOf(query)
  const found = shown
    .flatMap((row) => {
      const hits = anyHits(words, rowTokens(row.data))
      return hits ? [{ ...row, ...hits }] : []
    })
    .sort(
      (a, b) =>
        b.exact - a.exact ||
        b.begun - a.begun ||
        (a.updated_at < b.updated_at ? 1 : a.updated_at > b.updated_at ? -1 : byId(a, b)),
    )
    .map(({ id }) => id)
  return fuse(near.slice(0, 100), found.slice(0, 100)).slice(0, 100)
}
const idsOf = (rows: readonly TableRow[]): string[] => rows.map(({ id }) => id)
function actual(history: History, asked: Asked, limit: number): string[] | undefined {
  const rows = pages((after) => {
    const reply = ask(history, { ...asked, ...after, limit, vector: vectorOf(asked.query) })
    if (!isRefusal(reply) && 'ready' in reply) throw new Error('rows are not embedded')
    return reply
  })
  return isRefusal(rows) ? undefined : idsOf(rows)
}

const searches = fc.record({
  query: fc.constantFrom('a', 'words nested', 'ab z', 'é 😀', 'nothing of this', '!'),
  mode: fc.constantFrom('semantic' as const, 'hybrid' as const),
  filter: queries.map(({ filter }) => filter),
  limit: fc.integer({ min: 1, max: 5 }),
})
t.test('pages contain the rows that the rules select, in their order', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      schemas.chain((schema) => fc.tuple(fc.constant(schema), fc.option(evolved(schema)))),
      steps,
      steps,
      fc.array(searches, { minLength: 2, maxLength: 4 }),
      async ([schema, later], before, after, asked) => {
        const history = new History(schema)
        for (const step of before) history.perform(step)
        ask(history, { query: 'a', mode: 'semantic' })
        const indexing = new Indexing(history.store)
        await indexing.pass(1000)
        for (const step of after) history.perform(step)
        if (later) history.evolve(later)
        await indexing.pass(1000)
        for (const { filter, limit, ...search } of asked)
          for (const extension of [true, false]) {
            addDistance(history.store.db, extension ? undefined : withoutExtension)
            const given = { ...search, ...(filter && { filter }) }
            const [got, wanted] = [actual(history, given, limit), expected(history, given)]
            if (JSON.stringify(got) !== JSON.stringify(wanted))
              throw new Error(`extension: ${extension}, got ${got}\nexpected ${wanted}`)
          }
        history.store.db.close()
      },
    ),
    { numRuns: 25 },
  )
  t.pass('all searches agree')
})

t.test('a hybrid search has at most 100 rows, and positions that fit into a cursor', async (t) => {
  const history = new History({
    identity_column: 'key',
    columns: [{ name: 'key', type: 'string', required: true }],
  })
  history.insert(0, ...Array.from({ length: 250 }, (_, i) => ({ key: `word ${i}` })))
  const asked = { query: 'word', mode: 'hybrid' } as const
  ask(history, asked)
  await new Indexing(history.store).pass(1000)
  const wanted = expected(history, asked)
  t.equal(wanted?.length, 100)
  t.strictSame(actual(history, asked, 33), wanted)
  const first = ask(history, { ...asked, limit: 99, vector: vectorOf('word') })
  // A cursor has at most 1024 characters: a seal of 16 bytes and the position, in base64.
  t.ok('position' in first && ((JSON.stringify(first.position).length + 16) * 4) / 3 <= 1024)
})
t.test('large rows that a filter leaves are all ranked', async (t) => {
  const history = new History(notes)
  const note = 'x'.repeat(30_000)
  history.insert(0, ...Array.from({ length: 60 }, (_, i) => ({ key: `k${i}`, second: 'a', note })))
  const asked = { query: 'word', mode: 'semantic', filter: { second: 'a' } } as const
  ask(history, asked)
  await new Indexing(history.store).pass(1000)
  t.equal(actual(history, asked, 60)?.length, 60)
})
