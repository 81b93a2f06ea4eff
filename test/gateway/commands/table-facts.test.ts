/** Reads of row facts: which reads are sent together, and the facts that each read receives. */
import t from 'tap'
import { type RowsAsked, readFacts, type TableAt } from '../../../gateway/commands/tables/facts.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import type { RowFact, TableFacts } from '../../../protocol/tables/events.ts'

const at = '2026-01-01T00:00:00.000Z'
const fact = (identity: string): RowFact => ({
  id: `row_${identity}`,
  identity,
  version: 1,
  created_at: at,
  updated_at: at,
})
interface Query extends RowsAsked {
  readonly id: string
  readonly fresh: number | undefined
  readonly answer: (facts: TableFacts | Refusal) => void
  readonly fail: (error: Error) => void
}
/** Creates a view whose queries stay pending until the test answers them. */
function scripted() {
  const queries: Query[] = []
  const view = (_: string, __: string, input: RowsAsked & { id: string }, fresh?: number) =>
    new Promise((answer, fail) => queries.push({ ...input, fresh, answer, fail }))
  const world = { view } as unknown as TableAt['world']
  const read = (
    identities: readonly string[],
    {
      id = 'tbl_1',
      row_ids = [],
      content = false,
      fresh = false,
    }: { id?: string; row_ids?: readonly string[]; content?: boolean; fresh?: boolean } = {},
  ) => readFacts({ world, project: 'prj_1', id }, { identities, row_ids, content }, fresh)
  return { queries, read }
}

t.test(
  'reads that wait for another one are sent together, and each gets its own facts',
  async (t) => {
    const { queries, read } = scripted()
    const first = read(['a'])
    t.match(queries, [{ identities: ['a'], fresh: 0 }], 'a single read is sent at once')
    const waiting = [read(['b']), read(['c', 'b']), read(['d'], { row_ids: ['row_c'] })]
    t.equal(queries.length, 1)
    queries[0]?.answer({ through: 3, rows: [] })
    t.strictSame(await first, { through: 3, rows: [] })
    t.match(queries.slice(1), [{ identities: ['b', 'c', 'd'], row_ids: ['row_c'], fresh: 0 }])
    queries[1]?.answer({ through: 5, rows: [fact('b'), fact('c')] })
    t.strictSame(await Promise.all(waiting), [
      { through: 5, rows: [fact('b')] },
      { through: 5, rows: [fact('c'), fact('b')] },
      { through: 5, rows: [fact('c')] },
    ])
    void read(['e'])
    t.match(queries[2], { identities: ['e'] }, 'later reads do not wait')
  },
)

t.test('other tables, contents and demands of freshness are read separately', async (t) => {
  const { queries, read } = scripted()
  void read(['a'])
  void read(['a'], { id: 'tbl_2' })
  void read(['a'], { content: true })
  void read(['a'], { fresh: true })
  t.match(queries, [
    { id: 'tbl_1', content: false, fresh: 0 },
    { id: 'tbl_2' },
    { content: true, fresh: 0 },
    { content: false, fresh: undefined },
  ])
})

t.test('a read for several commands has a bounded number of rows', async (t) => {
  const { queries, read } = scripted()
  const all = Array.from({ length: 100 }, (_, i) => read([`${i}`], { content: true }))
  for (let i = 0; i < 5; i++) {
    queries[i]?.answer({ through: i, rows: [] })
    await all[[0, 32, 64, 96, 99][i] ?? 0]
  }
  t.strictSame(
    queries.map(({ identities }) => identities.length),
    [1, 32, 32, 32, 3],
  )
})

t.test('a refusal and an error reach all commands of a read', async (t) => {
  const { queries, read } = scripted()
  const first = read(['a'])
  const second = [read(['b']), read(['c'])]
  queries[0]?.answer(refuse('service_unavailable'))
  t.match(await first, { refused: 'service_unavailable' })
  const third = t.rejects(Promise.all(second), /lost/)
  queries[1]?.fail(new Error('lost'))
  await third
})
