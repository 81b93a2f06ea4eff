/** The text that describes tables to a model, and the limits on its length. */
import t from 'tap'
import { textOf } from '../../../gateway/sessions/tables.ts'
import type { Column, Table } from '../../../protocol/tables/schema.ts'

const at = '2026-01-01T00:00:00.000Z'
const tableOf = (name: string, columns: readonly Column[], more: Partial<Table> = {}): Table => ({
  id: `tbl_${name}`,
  name,
  schema: {
    identity_column: 'sku',
    columns: [{ name: 'sku', type: 'string', required: true }, ...columns],
  },
  created_at: at,
  updated_at: at,
  ...more,
})

t.test('columns have their types, and the facts that matter for rows', async (t) => {
  const table = tableOf('parts', [
    { name: 'n', type: 'number', required: true, description: 'In stock' },
    { name: 'old', type: 'any', deprecated: true },
  ])
  t.equal(
    textOf([{ ...table, schema: { ...table.schema, open: true } }], false),
    `# Tables
## parts
- sku (string, identity)
- n (number, required): In stock
- old (any, deprecated)
Rows may have other keys.`,
  )
})
t.test('further columns are counted', async (t) => {
  const columns = Array.from(
    { length: 59 },
    (_, i): Column => ({ name: `c${i}`, type: 'number', description: 'x'.repeat(1000) }),
  )
  const text = textOf([tableOf('wide', columns)], false)
  t.match(text, /\n- and 10 more columns$/)
  t.notMatch(text, 'x'.repeat(201))
})
t.test('tables beyond the bytes are only named', async (t) => {
  const instructions = 'ä'.repeat(2000)
  const tables = Array.from({ length: 8 }, (_, i) => tableOf(`t${i}`, [], { instructions }))
  const text = textOf(tables, true)
  t.match(text, /\nOther tables: t4, t5, t6, t7\nThere are more tables\./)
  t.ok(Buffer.byteLength(text) < 17_000)
})
