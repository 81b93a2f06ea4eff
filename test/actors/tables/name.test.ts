/**
 * The actor of a table name: claims, confirmations and releases, and a model of tables and the
 * actors of their names, with messages that are delayed at random.
 */
import fc from 'fast-check'
import t from 'tap'
import { defineActor, type Tell } from '../../../actors/actor.ts'
import { CLAIM_TIMEOUT_MS, tableName } from '../../../actors/tables/name.ts'
import type { TableState } from '../../../actors/tables/state.ts'
import { given, type Outcome, type Scene, START, typesOf } from '../../support/given.ts'
import { actor, schema } from './support.ts'

interface HolderState {
  readonly table?: string
  readonly until?: number
}
const free = () => given<HolderState>(defineActor(tableName))
const claim = (table_id: string) => ({ name: 'tickets', table_id })

t.test('one table claims a name', async (t) => {
  const claimed = free().when('table_name.claim', claim('tbl_a'))
  t.strictSame(claimed.reply, { claim: 1 })
  t.match(claimed.when('table_name.claim', claim('tbl_b')).refused, {
    refused: 'already_exists',
    details: { field: 'name', name: 'tickets' },
  })
  t.strictSame(claimed.when('table_name.claim', claim('tbl_a')).reply, { claim: 2 })
  const confirmed = claimed.when('table_name.confirm', { table_id: 'tbl_a', claim: 1 })
  t.strictSame(typesOf(confirmed), ['table_name.confirmed'])
  t.equal(confirmed.deadline(), undefined)
  t.match(confirmed.when('table_name.claim', claim('tbl_b')).refused, {
    refused: 'already_exists',
  })
  const released = confirmed.when('table_name.release', { table_id: 'tbl_a', claim: 1 })
  t.strictSame(released.when('table_name.claim', claim('tbl_b')).reply, { claim: 2 })
})

t.test('messages about earlier claims and other tables change nothing', async (t) => {
  const second = free()
    .when('table_name.claim', claim('tbl_a'))
    .when('table_name.claim', claim('tbl_a'))
  for (const name of ['table_name.confirm', 'table_name.release'])
    for (const input of [
      { table_id: 'tbl_a', claim: 1 },
      { table_id: 'tbl_b', claim: 2 },
    ])
      t.strictSame(second.when(name, input).events, [])
})

t.test('the table is asked about a claim that was not confirmed', async (t) => {
  const claimed = free().when('table_name.claim', claim('tbl_a'))
  t.equal(claimed.deadline(), START + CLAIM_TIMEOUT_MS)
  t.strictSame(claimed.when('wake').events, [])
  const lapsed = claimed.when('wake', {}, { at: START + CLAIM_TIMEOUT_MS })
  t.strictSame(lapsed.effects, [
    {
      tell: {
        to: { kind: 'table', id: 'tbl_a' },
        name: 'table.claim_lapsed',
        input: { holder: 'table_name_1', claim: 1, name: 'tickets' },
      },
    },
  ])
  t.equal(lapsed.deadline(), undefined)
  t.match(
    lapsed.when('table_name.claim', claim('tbl_b')).refused,
    { refused: 'already_exists' },
    'the name stays taken until the table answers',
  )
  t.strictSame(
    lapsed
      .when('table_name.release', { table_id: 'tbl_a', claim: 1 })
      .when('table_name.claim', claim('tbl_b')).reply,
    { claim: 2 },
  )
})

interface Message {
  readonly to: string
  readonly name: string
  readonly input: object
}
const names = ['one', 'two'] as const
const tables = ['tbl_a', 'tbl_b'] as const

/**
 * Tables, the actors of their names, and messages between them. Commands with claims may be lost,
 * late or repeated.
 */
class World {
  readonly holders = new Map<string, Scene<HolderState>>(
    names.map((name) => [`tbn_${name}`, given<HolderState>(defineActor(tableName))]),
  )
  readonly tables = new Map<string, Scene<TableState>>(
    tables.map((id) => [id, given<TableState>(actor())]),
  )
  /** Messages by sender and receiver. Each list is in the order in which they were sent. */
  readonly effects = new Map<string, Message[]>()
  /** Commands with claims that gateways have sent. They arrive in any order. */
  readonly commands: Message[] = []
  at = START

  send(from: string, { effects }: Pick<Outcome<unknown>, 'effects'>): void {
    for (const effect of effects) {
      const { to, name, input } = (effect as { tell: Tell }).tell
      const lane = `${from} ${to.id}`
      const message = { to: to.id, name, input: input as object }
      this.effects.set(lane, [...(this.effects.get(lane) ?? []), message])
    }
  }
  receive({ to, name, input }: Message): void {
    const self = (kind: 'table' | 'table_name') => ({
      at: this.at,
      self: { project: 'prj_1', kind, id: to },
    })
    const [holder, table] = [this.holders.get(to), this.tables.get(to)]
    if (holder) {
      const next = holder.when(name, input, self('table_name'))
      this.holders.set(to, next)
      this.send(to, next)
    }
    if (table) {
      const next = table.when(name, input, self('table'))
      this.tables.set(to, next)
      this.send(to, next)
    }
  }
  /** Claims a name for a table, and sends the command that uses the claim. */
  claim(table_id: string, name: string): void {
    const id = `tbn_${name}`
    const before = this.holders.get(id)
    if (!before) return
    const next = before.when('table_name.claim', { name, table_id }, { at: this.at })
    this.holders.set(id, next)
    if (next.refused) return
    const { claim: number } = next.reply as { claim: number }
    const input = { name, schema, claim: { holder: id, claim: number } }
    const exists = this.tables.get(table_id)?.state.table !== undefined
    this.commands.push({ to: table_id, name: exists ? 'table.update' : 'table.create', input })
  }
  /** Delivers the next message of one list in `effects`. Returns false if all lists are empty. */
  deliver(choice: number): boolean {
    const lanes = [...this.effects].filter(([, messages]) => messages.length > 0)
    const [lane, [message, ...rest]] = lanes[choice % lanes.length] ?? ['', []]
    if (!message) return false
    this.effects.set(lane, rest)
    this.receive(message)
    return true
  }
  /** Delivers a command from a gateway. With `again`, it may be delivered again later. */
  arrive(choice: number, again: boolean): void {
    const [message] = again
      ? [this.commands[choice % this.commands.length]]
      : this.commands.splice(choice % this.commands.length, 1)
    if (message) this.receive(message)
  }
  wake(): void {
    this.at += CLAIM_TIMEOUT_MS
    for (const id of this.holders.keys()) this.receive({ to: id, name: 'wake', input: {} })
  }
  nameOf(table_id: string): string | undefined {
    return this.tables.get(table_id)?.state.table?.name
  }
  holderOf(name: string): string | undefined {
    return this.holders.get(`tbn_${name}`)?.state.table
  }
}
const step = fc.record({
  do: fc.constantFrom(
    ...(['claim', 'claim', 'arrive', 'arrive', 'again', 'deliver', 'deliver', 'deliver'] as const),
    ...(['drop', 'wake', 'delete'] as const),
  ),
  table: fc.constantFrom(...tables),
  name: fc.constantFrom(...names),
  choice: fc.nat(20),
})

t.test('under any timing, a name belongs to one table and is freed in the end', async () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }), (steps) => {
      const world = new World()
      const check = () => {
        for (const id of tables) {
          const name = world.nameOf(id)
          if (name !== undefined && world.holderOf(name) !== id)
            throw new Error(`${id} has the name ${name}, which is reserved for another table`)
        }
      }
      for (const one of steps) {
        if (one.do === 'claim') world.claim(one.table, one.name)
        else if (one.do === 'delete')
          world.receive({ to: one.table, name: 'table.delete', input: {} })
        else if (one.do === 'wake') world.wake()
        else if (one.do === 'deliver') world.deliver(one.choice)
        else if (one.do === 'drop') world.commands.splice(one.choice % 5, 1)
        else world.arrive(one.choice, one.do === 'again')
        check()
      }
      world.wake()
      for (let i = 0; world.deliver(i); i++) check()
      for (const name of names) {
        const holder = world.holderOf(name)
        if (holder !== undefined && world.nameOf(holder) !== name)
          throw new Error(`${name} stays reserved for ${holder}, which does not have it`)
      }
    }),
    { numRuns: 1000 },
  )
})
