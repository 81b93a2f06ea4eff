/**
 * Conditional updates: which rows have entity tags, when a tag changes, the form of `If-Match`, and
 * the decision on a condition.
 */
import t from 'tap'
import { unmetCondition } from '../../actors/conditional.ts'
import { actorKinds } from '../../actors/kinds.ts'
import { api, type RowName } from '../../protocol/api.ts'
import { conditionalCommands, entityTagOf, tagsIn } from '../../protocol/conditional.ts'
import type { Row } from '../../protocol/contract.ts'
import { defaultTiming } from '../../protocol/workers/timing.ts'

const actors = actorKinds({ brand: 'Service', timing: defaultTiming })
const actorOf = (name: string) => {
  const { to } = (api[name as RowName] as Row).shape
  if (!to) throw new Error(`${name} has no actor`)
  return actors[to.kind]
}

t.test('the actor of every conditional command has its record', async (t) => {
  t.equal(conditionalCommands.length, 19)
  t.ok(conditionalCommands.includes('agent.update'))
  t.notOk(conditionalCommands.includes('session.update'))
  for (const name of conditionalCommands) t.type(actorOf(name).records?.[name], 'function', name)
  for (const { kind, records = {} } of Object.values(actors))
    for (const name of Object.keys(records))
      t.ok(conditionalCommands.includes(name), `${kind} has a record that ${name} does not need`)
})

t.test('a tag changes with the time or with a field that the command sets', async (t) => {
  const record = { name: 'a', tags: { x: '1', y: '2' }, updated_at: '2026-01-01T00:00:00.001Z' }
  const tag = entityTagOf('agent.update', record)
  t.match(tag, /^"20260101000000001-[0-9a-z]{8,}"$/)
  t.equal(entityTagOf('agent.get', { ...record, tags: { y: '2', x: '1' } }), tag)
  t.equal(entityTagOf('agent.get', { ...record, created_by: 'x', description: undefined }), tag)
  for (const more of [{ name: 'b' }, { tags: { x: '1' } }, { updated_at: '2026-01-01T00:00:00Z' }])
    t.not(entityTagOf('agent.update', { ...record, ...more }), tag)
  t.equal(entityTagOf('run.get', record), undefined)
  t.equal(entityTagOf('toString', record), undefined)
})

t.test('If-Match is a list of tags or an asterisk', async (t) => {
  t.strictSame(tagsIn(' "a" ,"b,c", W/"d",W/"a"'), ['"a"', '"b,c"'])
  t.strictSame(tagsIn('W/"a"'), [], 'weak tags match nothing')
  t.equal(tagsIn(' * '), '*')
  for (const value of ['', 'a', '"a', '"a" "b"', '"a",', 'w/"a"', '"a"b', '*,"a"'])
    t.equal(tagsIn(value), undefined, value)
})

t.test('a condition is decided with the state before the command', async (t) => {
  const name = 'agent.update'
  const actor = actorOf(name)
  const agent = { id: 'agent_1', name: 'A', updated_at: '2026-01-01T00:00:00.000Z' }
  const state = Object.assign(actor.initial() as object, { agents: { agent_1: agent } })
  const decided = (if_match?: readonly string[], id = 'agent_1') =>
    unmetCondition(actor, state, { name, input: { id }, ...(if_match && { if_match }) })
  const tag = String(entityTagOf(name, agent))
  t.equal(decided(), undefined)
  t.equal(decided(['"x"', tag]), undefined)
  t.match(decided(['"x"']), { refused: 'precondition_failed' })
  t.match(decided([]), { refused: 'precondition_failed' })
  t.match(decided([tag], 'agent_2'), { refused: 'precondition_failed' })
  t.throws(() => unmetCondition(actor, state, { name: 'agent.delete', input: {}, if_match: [tag] }))
})
