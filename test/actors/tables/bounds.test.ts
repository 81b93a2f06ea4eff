/** The size of a table's state, which does not grow with the number of rows. */
import t from 'tap'
import type { Cause } from '../../../actors/actor.ts'
import { evolve } from '../../../actors/actor.ts'
import type { TableState } from '../../../actors/tables/state.ts'
import type { Event } from '../../../protocol/entry.ts'
import { START } from '../../support/given.ts'
import { actor, claim, schema } from './support.ts'

const table = actor()
let minted = 0
const cause: Cause = {
  id: 'command_1',
  at: START,
  principal: { type: 'user', id: 'user_1' },
  shard: 0,
  self: { project: 'prj_1', kind: 'table', id: 'table_1' },
  mint: (prefix) => `${prefix}_${String(++minted).padStart(26, '0')}`,
  secret: () => 'secret',
}
/** Decides a command and applies its events, without the copies that `given` makes. */
function decide(state: TableState, name: string, input: object): TableState {
  const decision = table.decide[name]?.(state as never, input as never, cause)
  if (!decision || 'refused' in decision) throw new Error(JSON.stringify(decision))
  return decision.events.reduce(
    (before: unknown, event: Event) => evolve(table, before, event, START),
    state,
  ) as TableState
}
const create = (): TableState =>
  decide(table.initial() as TableState, 'table.create', { name: 'tickets', schema, claim })
const factsOf = ({ change }: TableState) => ({ through: change, rows: [] })
const sizeOf = (state: TableState): number => JSON.stringify(state).length

t.test('the state of a table with 100,000 rows is bounded', async (t) => {
  const title = 'x'.repeat(500)
  let state = create()
  let largest = 0
  for (let i = 0; i < 20_000; i++) {
    state = decide(state, 'row.insert', {
      data: { key: `ticket ${i}`, title },
      facts: factsOf(state),
    })
    if (i % 1000 === 0) largest = Math.max(largest, sizeOf(state))
  }
  for (let i = 0; i < 80; i++) {
    const rows = Array.from({ length: 1000 }, (_, j) => ({ key: `bulk ${i} ${j}`, title }))
    state = decide(state, 'row.bulk', { rows, facts: factsOf(state) })
    largest = Math.max(largest, sizeOf(state))
  }
  t.equal(state.rows, 100_000)
  t.ok(largest < 1_500_000, `${largest} characters`)
  t.ok(largest > 300_000, 'the window is in use')
})

t.test('the longest identities of a bulk insert exceed the bound by one request', async (t) => {
  let state = create()
  for (let i = 0; i < 10; i++) {
    const rows = Array.from({ length: 1000 }, (_, j) => ({
      key: `${i} ${j} `.padEnd(512, 'x'),
    }))
    state = decide(state, 'row.bulk', { rows, facts: factsOf(state) })
  }
  t.ok(sizeOf(state) < 2_000_000, `${sizeOf(state)} characters`)
})

t.test('updates of one row do not fill the window', async (t) => {
  let state = create()
  state = decide(state, 'row.insert', { data: { key: 'a' }, facts: { through: 0, rows: [] } })
  for (let i = 0; i < 5000; i++)
    state = decide(state, 'row.upsert', {
      data: { key: 'a', count: i },
      facts: { through: 0, rows: [] },
    })
  t.match(state, { change: 5001, rows: 1, window: { floor: 0 } })
  t.ok(sizeOf(state) < 2000)
})
