/** Writing the rows of a file: how failures are explained, and how much is kept in memory. */
import t from 'tap'
import {
  type FileRow,
  insertRows,
  type Target,
  upsertRows,
} from '../../../../client/cli/tables/write.ts'
import { BatonError } from '../../../../client/errors.ts'
import type { Transport } from '../../../../client/transport.ts'

const target = (call: () => Promise<unknown>): Target => ({
  transport: { call } as unknown as Transport,
  table_id: 'tbl_1',
  identity: 'key',
  advanced: () => {},
})
async function* rowsOf(count: number, identity = 'a'): AsyncGenerator<FileRow> {
  for (let line = 2; line < count + 2; line++) yield { line, data: { key: identity } }
}

t.test('a failure of the service is not a fault of a line', async (t) => {
  for (const error of [
    new BatonError(0, 'unreachable', 'down'),
    new BatonError(403, 'permission_denied', 'no', {}),
    new BatonError(503, 'service_unavailable', 'down', {}),
    new BatonError(429, 'rate_limit_exceeded', 'slow'),
  ])
    for (const write of [insertRows, upsertRows])
      await t.rejects(
        write(
          target(() => Promise.reject(error)),
          rowsOf(1),
        ),
        error,
      )
})

t.test('a refused row is named by its line', async (t) => {
  const refused = (field: string) =>
    target(() =>
      Promise.reject(
        new BatonError(400, 'bad_request', 'x', { fields: [{ field, message: 'is too large' }] }),
      ),
    )
  await t.rejects(insertRows(refused('rows[1]'), rowsOf(3)), { message: 'Line 3: is too large' })
  await t.rejects(upsertRows(refused('data.n'), rowsOf(1)), { message: 'Line 2: n: is too large' })
  const full = target(() => Promise.reject(new BatonError(409, 'conflict', 'no room')))
  await t.rejects(insertRows(full, rowsOf(1)), { message: 'Line 2: conflict: no room' })
})

t.test('few rows of one identity wait for each other', async (t) => {
  let [read, done, most] = [0, 0, 0]
  async function* counted() {
    for await (const row of rowsOf(1000)) {
      most = Math.max(most, ++read - done)
      yield row
    }
  }
  await upsertRows(
    target(async () => {
      await new Promise(setImmediate)
      done++
    }),
    counted(),
  )
  t.equal(done, 1000)
  t.ok(most < 40, `${most} rows were kept`)
})

t.test('rows that were sent before an invalid row are counted', async (t) => {
  let done = 0
  async function* invalid() {
    yield* rowsOf(1, 'a')
    yield* rowsOf(1, 'b')
    throw new Error('line 4')
  }
  const call = () => new Promise((answer) => setImmediate(answer))
  await t.rejects(upsertRows({ ...target(call), advanced: () => done++ }, invalid()), /line 4/)
  t.equal(done, 2)
})
