/**
 * Usage events over HTTP: one for each paid answer of a model, including its cost. Also covers the
 * filters and totals of their list.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { type Found, listOf, pages } from '../support/given.ts'

const models = JSON.stringify({
  providers: [
    {
      provider: 'priced',
      kind: 'scripted',
      models: [
        { id: 'dear', context_window_tokens: 100_000, price: { input: 1000, output: 1000 } },
      ],
    },
  ],
  default: 'priced/dear',
})
const s = await service({ BATON_MODELS: models })
t.teardown(() => s.stop())

const script =
  'script:\n  - when: "*"\n    say: "done"\n    usage: {input_tokens: 30, output_tokens: 12}\n'
async function spend(project: string): Promise<Found> {
  const spec = {
    steps: [
      { id: 'ask', kind: 'agent', config: { agent_id: 'writer', instructions: 'Write a line' } },
    ],
  }
  const { id } = await s.ok('run.start', { project, spec })
  await s.follow('run.events', { id }, () => false)
  const run = await s.ok('run.get', { project, id })
  if (String(run['status']) !== 'completed') throw new Error(JSON.stringify(run))
  return run
}

await s.ok('project.create', { name: 'Other', handle: 'other' })
for (const project of ['default', 'other'])
  await s.ok('agent.create', { project, name: 'writer', system_prompt: script })
const first = await spend('default')
const second = await spend('other')
const [{ id: other } = {} as Found] = listOf(await s.ok('project.list', {})).filter(
  ({ handle }) => String(handle) === 'other',
)

t.test(
  'each model response in a run is one usage event with the cost that the run spent',
  async (t) => {
    const reply = await s.ok('usage.list', { run_id: first['id'] })
    t.match(reply, { has_more: false, total_raw_quantity: 42 })
    const [event] = listOf(reply)
    t.match(event, {
      counter: 'llm.tokens',
      raw_quantity: 42,
      zero_credits: false,
      source_type: 'agent_turn',
      source_id: /^turn_/,
      run_id: first['id'],
      step_id: `${first['id']}:ask`,
      step_key: 'ask',
      job_id: /^job_/,
      provider: 'priced',
      model: 'dear',
      period_start: /-01T00:00:00\.000Z$/,
    })
    t.equal(event?.['idempotency_key'], event?.['job_id'])
    // 42 tokens at 1000 USD per million cost 0.042 USD. A credit is 0.01 USD.
    t.match(event, { credit_cost: 4.2, credit_cost_milli: 4200 })
    t.match(reply, { total_credit_cost: 4.2, total_credit_cost_milli: 4200 })
    const recorded = listOf(await s.ok('run.events', { id: first['id'], limit: 200 })).find(
      ({ event_type }) => String(event_type) === 'usage.recorded',
    )
    t.match(recorded, { payload: { credit_spent: 4.2 } }, 'the run records the same cost')
  },
)

t.test('a turn without a run is a usage event, too', async (t) => {
  const [agent] = listOf(await s.ok('agent.list', {}))
  const { turn, session } = (await s.ok('agent.invoke', {
    agent_ref: { id: agent?.['id'] },
    input: { content: [{ type: 'text', text: 'hello' }] },
  })) as Record<string, Found>
  await s.follow(
    'session.stream',
    { session_id: session?.['id'] },
    ({ event }) => event === 'turn.completed',
  )
  const of = { session_id: session?.['id'] }
  const { principal } = await s.ok('me.get', {})
  t.match(
    await s.ok('session.turn', {
      ...of,
      turn_id: turn?.['id'],
      include: ['asked_by', 'credit_cost_milli'],
    }),
    { credit_cost_milli: 4200, asked_by: (principal as unknown as Found)['id'] },
    'the turn has its cost and the principal that requested it',
  )
  t.match(
    await s.ok('session.get', { ...of, include: ['credit_cost_milli'] }),
    { credit_cost_milli: 4200 },
    'the session has the cost of its turns',
  )
  t.match(listOf(await s.ok('usage.list', { source_id: turn?.['id'] })), [
    { raw_quantity: 42, run_id: '', step_id: '', agent_turn_id: turn?.['id'], model: 'dear' },
  ])
})

t.test(
  'usage events are listed newest first, or oldest first after a time, with totals',
  async (t) => {
    const all = await s.ok('usage.list', { limit: 200 })
    const ids = listOf(all).map(({ id }) => String(id))
    t.equal(ids.length, 3)
    t.strictSame(
      (await pages(s, 'usage.list', {}, 1)).map(({ id }) => String(id)),
      ids,
    )
    const page = await s.ok('usage.list', { limit: 1 })
    t.equal(page['total_raw_quantity'], all['total_raw_quantity'])
    const recorded_after = '2020-01-01T00:00:00Z'
    const onward = await pages(s, 'usage.list', { recorded_after }, 1)
    t.strictSame(
      onward.map(({ id }) => String(id)),
      [...ids].reverse(),
    )
    const { next_cursor: cursor } = await s.ok('usage.list', { recorded_after, limit: 1 })
    await s.refused('usage.list', { cursor, limit: 1 }, 400, 'bad_request')
    t.strictSame(listOf(await s.ok('usage.list', { recorded_after: '2999-01-01T00:00:00Z' })), [])
  },
)

t.test('usage filters apply, and a project key sees only its project', async (t) => {
  const runsOf = async (input: Record<string, unknown>, key?: string) =>
    listOf(await s.ok('usage.list', input, key === undefined ? {} : { key })).map(({ run_id }) =>
      String(run_id),
    )
  t.strictSame(await runsOf({ project_id: [other] }), [String(second['id'])])
  t.strictSame(await runsOf({ counter: 'sandbox.seconds' }), [])
  const principal = await s.ok('principal.create', {
    project: 'other',
    name: 'biller',
    role_ids: ['role_owner'],
  })
  const { key } = await s.ok('key.create', {
    project: 'other',
    name: 'biller',
    principal_id: principal['id'],
  })
  t.strictSame(await runsOf({}, String(key)), [String(second['id'])])
  await s.refused('usage.list', { project_id: ['prj_x'] }, 403, 'forbidden', { key: String(key) })
  await s.refused('usage.list', { recorded_after: 'yesterday' }, 400, 'bad_request')
})
