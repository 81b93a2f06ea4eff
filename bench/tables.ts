/**
 * Measures one table: the rate at which rows are inserted, upserted and inserted in bulk, and the
 * time of queries and searches of a table with many rows. `--size` sets the number of rows.
 */
import { Http, type Reply } from './load/http.ts'
import { startBaton } from './support/baton.ts'
import {
  atRate,
  type Figures,
  inFlight,
  inTurn,
  percentile,
  spread,
  type Terms,
} from './support/measure.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  'Rows per second into one table, single and in bulk; queries and searches of 1,000,000 rows'

const TABLES = '/v1/projects/default/tables'
/** Number of requests in flight. */
const CONCURRENCY = 64
/** Rows of a bulk, and number of bulks in flight. */
const BULK = { rows: 1000, inFlight: 2 } as const
const QUERIES_PER_SECOND = 50
const WORDS = ['invoice', 'refund', 'order', 'payment', 'shipment', 'return', 'quote', 'reminder']
const STATES = ['open', 'paid', 'late', 'void']

/** A row of about 200 bytes. */
const rowOf = (i: number) => ({
  number: `n-${i}`,
  customer: `customer-${i % 10_000}`,
  amount: (i * 7919) % 100_000,
  state: STATES[i % STATES.length],
  text: `${WORDS[i % WORDS.length]} ${WORDS[(i >> 3) % WORDS.length]} of ${i % 1000} items`,
})
const schema = {
  identity_column: 'number',
  secondary_key_column: 'customer',
  columns: [
    { name: 'number', type: 'string', required: true },
    { name: 'customer', type: 'string' },
    { name: 'amount', type: 'number' },
    { name: 'state', type: 'string' },
    { name: 'text', type: 'string' },
  ],
}

function expected({ status, body }: Reply, ...statuses: readonly number[]): string {
  if (!statuses.includes(status)) throw new Error(`answered ${status}: ${body.slice(0, 300)}`)
  return body
}

/** Does `count` pieces of work, and returns their rate and times. */
async function rated(
  name: string,
  count: number,
  concurrency: number,
  piece: (i: number) => Promise<unknown>,
  perPiece = 1,
): Promise<Figures> {
  const started = performance.now()
  const times = await inFlight(concurrency, count, piece)
  return {
    [`${name} rate`]: (count * perPiece) / ((performance.now() - started) / 1000),
    [`${name} p50`]: percentile(times, 0.5),
    [`${name} p99`]: percentile(times, 0.99),
  }
}

const writes = ['insert', 'upsert of new and known rows', 'bulk of 1,000'] as const
/** The questions that are measured, by name, for a table with `size` rows. */
const questions = (
  size: number,
): Readonly<Record<string, readonly ['query' | 'search', (i: number) => object]>> => ({
  'one row by its identity': ['query', (i) => ({ filter: { number: `n-${(i * 7919) % size}` } })],
  'rows of a secondary key': [
    'query',
    (i) => ({ filter: { customer: `customer-${(i * 31) % Math.min(size, 10_000)}` }, limit: 50 }),
  ],
  'page of 50, filtered and sorted': [
    'query',
    () => ({ filter: { state: 'late' }, sort: [{ field: 'amount', order: 'desc' }], limit: 50 }),
  ],
  'page of 50, newest first': [
    'query',
    () => ({ sort: [{ field: 'created_at', order: 'desc' }], limit: 50 }),
  ],
  'search for two words': ['search', () => ({ query: 'refund ship', limit: 50 })],
})

async function measure(
  sync: string,
  size: number,
  writesEach: number,
  reads: number,
  profile: string | undefined,
): Promise<Figures> {
  const server = await startBaton({ sync, profile })
  const http = new Http(server.port, server.key, CONCURRENCY)
  try {
    const made = expected(
      await http.post(TABLES, JSON.stringify({ name: 'measured', schema })),
      201,
    )
    const T = `${TABLES}/${/"id":"(\w+)"/.exec(made)?.[1]}`
    const post = async (path: string, body: object, ...statuses: readonly number[]) =>
      expected(await http.post(`${T}/${path}`, JSON.stringify(body)), ...statuses)

    const bulks = Math.ceil(size / BULK.rows)
    const bulk = await rated(
      writes[2],
      bulks,
      BULK.inFlight,
      (i) =>
        post(
          'bulk',
          { rows: Array.from({ length: BULK.rows }, (_, n) => rowOf(i * BULK.rows + n)) },
          201,
        ),
      BULK.rows,
    )
    const from = bulks * BULK.rows
    const insert = await rated(writes[0], writesEach, CONCURRENCY, (i) =>
      post('rows', { data: rowOf(from + i) }, 201),
    )
    const upsert = await rated(writes[1], writesEach, CONCURRENCY, (i) =>
      post('upsert', { data: rowOf(from + (writesEach >> 1) + i) }, 200, 201),
    )
    const figures: Record<string, number> = { ...bulk, ...insert, ...upsert }
    for (const [name, [path, question]] of Object.entries(questions(size))) {
      const ask = (i: number) => post(path, question(i), 200)
      await inFlight(4, 20, ask)
      Object.assign(figures, spread(name, await atRate(QUERIES_PER_SECOND, reads, ask)))
    }
    return figures
  } finally {
    http.close()
    await server.stop()
  }
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const size = terms.size ?? (terms.quick ? 10_000 : 1_000_000)
  const writesEach = terms.quick ? 2000 : 20_000
  const reads = terms.quick ? 50 : 500
  const [[, figures] = ['', {} as Figures]] = await inTurn(
    [['Baton, fsync always', () => measure('always', size, writesEach, reads, terms.profile)]],
    terms,
    (all) =>
      `${whole(all['insert rate'] ?? 0)} inserts/s, ${whole(all[`${writes[2]} rate`] ?? 0)} rows/s in bulk`,
  )
  const of = (name: string) => figures[name] ?? Number.NaN
  const times = (name: string) => cell(ms(of(`${name} p50`)), ms(of(`${name} p99`)))
  return (
    table(
      [`one table, ${whole(size)} rows, fsync always`, 'rate', 'p50 / p99 ms'],
      [
        ...writes.map((name) => [name, `${whole(of(`${name} rate`))} rows/s`, times(name)]),
        ...Object.keys(questions(size)).map((name) => [
          name,
          `${QUERIES_PER_SECOND}/s`,
          times(name),
        ]),
        ['*target*', '≥ 3,000 inserts/s, ≥ 15,000 rows/s in bulk', 'queries p99 ≤ 20'],
      ],
    ) +
    note(
      `Single writes: ${CONCURRENCY} in flight; bulks: ${BULK.inFlight}. Rows have about 200 bytes.`,
      'Each query waits until the view has applied everything that was committed before it.',
    )
  )
}
