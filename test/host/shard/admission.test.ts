/**
 * Messages from the bus that a shard rejects: those for actors of other shards or partitions, and
 * those without an origin.
 */
import t from 'tap'
import { isForShard, namedBy } from '../../../nodes/host/admission.ts'
import { makeId } from '../../../protocol/ids.ts'
import { partitionOf } from '../../../protocol/subjects.ts'

const place = { partition: 0, shard: 1, partitions: 2, shards: 4 }
const named = (partition: number): string => {
  for (let i = 0; ; i++) if (partitionOf(`p${i}`, 2) === partition) return `p${i}`
}
const run = (slot: number) => makeId('run', 1, new Uint8Array(10), slot)
const origin = { at: 1, principal: { type: 'system', id: 'system' } }
const here = {
  project: named(0),
  kind: 'run',
  id: run(5),
  command_id: 'c',
  name: 'run.start',
  input: {},
  origin,
}
const command = (change: object) => ({ type: 'command', command: { ...here, ...change } })
const accepted = (message: unknown) => isForShard(message, place)

t.test("commands and reads for the shard's own actors are accepted", async (t) => {
  t.ok(accepted(command({})))
  t.ok(accepted(command({ kind: 'queue', id: '1.default' })))
  t.ok(accepted({ type: 'commands', commands: [here, here] }))
  t.ok(accepted({ type: 'ask', to: here, name: 'record', input: {} }))
})
t.test('actors of another shard or partition are rejected', async (t) => {
  t.notOk(accepted(command({ id: run(6) })), 'a slot of another shard')
  t.notOk(accepted(command({ kind: 'queue', id: '2.default' })))
  t.notOk(accepted(command({ project: named(1) })), 'a project of another partition')
  t.notOk(accepted(command({ id: 'no id' })))
  t.notOk(
    accepted({ type: 'commands', commands: [here, { ...here, id: run(6) }] }),
    'one of several commands',
  )
  t.notOk(accepted({ type: 'ask', to: { ...here, id: run(6) }, name: 'record', input: {} }))
})
t.test('a message without a sender, or of another shape, is rejected', async (t) => {
  for (const bad of [undefined, {}, { at: 1 }, { at: 1, principal: { type: 'user' } }, 'system'])
    t.notOk(accepted(command({ origin: bad })), JSON.stringify(bad))
  for (const bad of [undefined, null, 'x', 7, [], {}, { type: 'command' }, { type: 'commands' }])
    t.notOk(accepted(bad), JSON.stringify(bad))
  t.strictSame(namedBy(command({})), [{ project: here.project, kind: 'run', id: here.id }])
})
