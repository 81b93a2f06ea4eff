/**
 * Tables compared with a model: random schemas, schema changes and row commands, with the facts of
 * a view that lags by a random number of changes. The model has all current rows and never needs
 * facts.
 *
 * Invariants: each command has the outcome that the model predicts; identities stay unique;
 * versions are incremented by one; and the events yield the rows of the model, so no update is
 * lost.
 */
import fc from 'fast-check'
import t from 'tap'
import type { TableState } from '../../../actors/tables/state.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { schemaFaults } from '../../../protocol/tables/definition.ts'
import { isStale, type StoredRow, type TableFacts } from '../../../protocol/tables/events.ts'
import type { ColumnType, TableSchema } from '../../../protocol/tables/schema.ts'
import { given, type Outcome, type Scene } from '../../support/given.ts'
import { actor, claim, rowsAfter } from './support.ts'

/** Small bounds, so that the window drops changes early and caches few rows. */
const window = { generation: 250, cachedRow: 40, cachedRows: 100 }
const tight = actor({ window, table_rows: 12 })

const samples: Readonly<Record<Exclude<ColumnType, 'any'>, unknown>> = {
  string: 'text',
  number: 1.5,
  boolean: false,
  date: '2026-01-01',
  object: { a: 1 },
  array: [1],
}
const types = Object.keys(samples) as (keyof typeof samples)[]
const names = ['a', 'b', '__proto__', 'long'] as const

const schemas: fc.Arbitrary<TableSchema> = fc
  .record({
    columns: fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('a', 'b', '__proto__'),
        type: fc.constantFrom(...types),
        required: fc.boolean(),
        filled: fc.boolean(),
      }),
      { selector: ({ name }) => name, maxLength: 3 },
    ),
    open: fc.boolean(),
  })
  .map(({ columns, open }) => ({
    columns: [
      { name: 'key', type: 'string', required: true },
      ...columns.map(({ filled, ...column }) => ({
        ...column,
        ...(filled && { default: samples[column.type] }),
      })),
    ],
    identity_column: 'key',
    open,
  }))
const values = fc.constantFrom<unknown>(null, 'text', 'x'.repeat(60), 2, true, '2026-01-02', {}, [])
const data: fc.Arbitrary<JsonObject> = fc
  .array(fc.tuple(fc.constantFrom(...names), values), { maxLength: 2 })
  .map((members) => Object.fromEntries(members))
const keys = fc.constantFrom<unknown>('k1', 'k2', 'k3', '__proto__', '', null)
const keyed = fc.tuple(keys, data).map(([key, rest]): JsonObject => ({ key, ...rest }))

const commands = fc.record({
  name: fc.constantFrom(
    ...(['row.insert', 'row.upsert', 'row.upsert', 'row.update', 'row.update'] as const),
    ...(['row.delete', 'row.bulk', 'schema'] as const),
  ),
  keyed,
  data,
  rekey: fc.option(keys, { freq: 3 }),
  rows: fc.array(keyed, { minLength: 1, maxLength: 3 }),
  version: fc.nat(3),
  /** Index of the affected row among all rows that ever existed, newest first. */
  row: fc.nat(20),
  /** The number of changes by which the view lags. */
  lag: fc.nat(10),
  schema: schemas,
})
type Command = typeof commands extends fc.Arbitrary<infer C> ? C : never
type Member = readonly [name: string, value: unknown]

type Expected = { readonly refused: string } | { readonly rows: readonly Partial<StoredRow>[] }
const refusedWith = (refused: string): Expected => ({ refused })

const fits = (type: ColumnType, value: unknown): boolean =>
  type === 'date'
    ? typeof value === 'string' && /^\d{4}-/.test(value)
    : type === 'array'
      ? Array.isArray(value)
      : type === 'object'
        ? typeof value === 'object' && value !== null && !Array.isArray(value)
        : typeof value === type

const mayBeSent = ({ columns, open }: TableSchema, sent: JsonObject): boolean =>
  Object.entries(sent).every(([name, value]) => {
    const column = columns.find((one) => one.name === name)
    if (!column) return open
    if (value === null) return column.required !== true
    return fits(column.type, value) && (name !== 'key' || value !== '')
  })
const merge = (...parts: readonly (readonly Member[])[]): JsonObject =>
  Object.fromEntries([...new Map(parts.flat())].filter(([, value]) => value !== null))

class Model {
  schema: TableSchema
  readonly rows = new Map<string, StoredRow>()
  constructor(schema: TableSchema) {
    this.schema = schema
  }
  find(identity: unknown): StoredRow | undefined {
    return [...this.rows.values()].find((row) => row.identity === identity)
  }
  insert(sent: readonly JsonObject[]): Expected {
    const { columns } = this.schema
    const defaults = columns.flatMap((column) =>
      'default' in column ? [[column.name, column.default] as const] : [],
    )
    const rows = sent.map((one) => merge(defaults, Object.entries(one)))
    const valid = rows.every(
      (row, index) =>
        mayBeSent(this.schema, sent[index] ?? {}) &&
        columns.every(({ name, required }) => !required || Object.hasOwn(row, name)),
    )
    if (!valid) return refusedWith('bad_request')
    const identities = rows.map(({ key }) => key)
    if (new Set(identities).size < rows.length || identities.some((key) => this.find(key)))
      return refusedWith('already_exists')
    if (this.rows.size + rows.length > 12) return refusedWith('conflict')
    return { rows: rows.map((row) => ({ identity: row.key as string, data: row, version: 1 })) }
  }
  merge(row: StoredRow, sent: JsonObject): Expected {
    if (!mayBeSent(this.schema, sent)) return refusedWith('bad_request')
    const next = merge(Object.entries(row.data), Object.entries(sent))
    const holder = this.find(next.key)
    if (holder && holder.id !== row.id) return refusedWith('already_exists')
    return {
      rows: [{ ...row, identity: next.key as string, data: next, version: row.version + 1 }],
    }
  }
  expect({ name, rows, version, ...command }: Command, input: Input): Expected {
    if (name === 'row.insert') return this.insert([command.keyed])
    if (name === 'row.bulk') return this.insert(rows)
    if (name === 'row.upsert') {
      const row = this.find(command.keyed.key)
      return row ? this.merge(row, command.keyed) : this.insert([command.keyed])
    }
    const row = this.rows.get(input.row_id)
    if (!row) return refusedWith('not_found')
    if (name === 'row.delete') return { rows: [row] }
    if (version !== 0 && version !== row.version) return refusedWith('conflict')
    return this.merge(row, input.data)
  }
}
interface Input {
  readonly row_id: string
  readonly data: JsonObject
}

/** Returns the facts of a view that has applied the changes up to `through`. */
function factsAt(scene: Scene<TableState>, through: number, input: unknown): TableFacts {
  const asked = JSON.stringify(input)
  const before = scene.history.filter(
    (event) => ((event as { change?: number }).change ?? 0) <= through,
  )
  return {
    through,
    rows: [...rowsAfter(before).values()].filter(
      ({ id, identity }) => asked.includes(`"${id}"`) || asked.includes(`"key":"${identity}"`),
    ),
  }
}
/**
 * Sends a command as a gateway does: with the facts of a lagging view, and again with later facts
 * until they suffice.
 */
function send(
  scene: Scene<TableState>,
  name: string,
  input: object,
  lag: number,
): { readonly outcome: Outcome<TableState>; readonly attempts: number } {
  let through = Math.max(0, scene.state.change - lag)
  for (let attempts = 1; ; attempts++) {
    const outcome = scene.when(name, { ...input, facts: factsAt(scene, through, input) })
    if (!isStale(outcome.reply)) return { outcome, attempts }
    const { stale } = outcome.reply
    if (outcome.events.length > 0) throw new Error('a stale command has stored something')
    if (stale <= through) throw new Error(`facts as of ${through} suffice for ${stale}`)
    through = stale
  }
}
const sorted = (rows: Iterable<StoredRow>): string =>
  JSON.stringify(
    [...rows]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map(({ id, identity, data, version }) => [
        id,
        identity,
        Object.entries(data).sort(),
        version,
      ]),
  )

/**
 * The number of commands that needed later facts, of commands whose facts were older than the
 * window, and of stored changes.
 */
const seen = { stale: 0, forgotten: 0, stored: 0 }

function run(schema: TableSchema, list: readonly Command[]): void {
  const model = new Model(schema)
  let scene: Scene<TableState> = given<TableState>(tight).when('table.create', {
    name: 'tickets',
    schema,
    claim,
  })
  const ids: string[] = []
  for (const command of list) {
    const { name, lag } = command
    if (name === 'schema') {
      const changed = scene.when('table.update', { schema: command.schema })
      if (!changed.refused) {
        model.schema = command.schema
        scene = changed
      }
      continue
    }
    const row_id = ids[ids.length - 1 - command.row] ?? 'row_0'
    const change = {
      ...command.data,
      ...(command.rekey !== null && { key: command.rekey }),
    }
    const input = {
      row_id,
      data: name === 'row.update' ? change : command.keyed,
      rows: command.rows,
      version: command.version,
    }
    const expected = model.expect(command, input)
    const { outcome, attempts } = send(scene, name, input, lag)
    if (attempts > 1) seen.stale++
    if (scene.state.window.floor > Math.max(0, scene.state.change - lag)) seen.forgotten++
    if ('refused' in expected) {
      if (outcome.refused?.refused !== expected.refused)
        throw new Error(
          `${name}: ${JSON.stringify(outcome.refused)} instead of ${expected.refused}`,
        )
      continue
    }
    if (outcome.refused) throw new Error(`${name}: ${JSON.stringify(outcome.refused)}`)
    seen.stored++
    const [event] = outcome.events as unknown as {
      row?: StoredRow
      rows?: StoredRow[]
      change: number
    }[]
    const stored = event?.rows ?? (event?.row ? [event.row] : [])
    if (event?.change !== scene.state.change + 1)
      throw new Error('changes are not numbered 1, 2, 3')
    for (const [index, row] of stored.entries()) {
      if (name === 'row.delete') model.rows.delete(row.id)
      else model.rows.set(row.id, { ...row, ...expected.rows[index], id: row.id } as StoredRow)
      if (!ids.includes(row.id)) ids.push(row.id)
    }
    scene = outcome
    const current = [...rowsAfter(scene.history).values()]
    if (sorted(current) !== sorted(model.rows.values()))
      throw new Error(`${name}: ${sorted(current)} instead of ${sorted(model.rows.values())}`)
    if (new Set(current.map(({ identity }) => identity)).size < current.length)
      throw new Error('an identity is not unique')
    if (scene.state.rows !== current.length) throw new Error('rows are counted wrongly')
  }
}

t.test('a table decides like a model that knows all rows', async (t) => {
  fc.assert(
    fc.property(
      schemas.filter((schema) => schemaFaults(schema).length === 0),
      fc.array(commands, { minLength: 20, maxLength: 60, size: 'max' }),
      run,
    ),
    { numRuns: 400 },
  )
  for (const [what, count] of Object.entries(seen)) t.ok(count > 100, `${what}: ${count}`)
})
