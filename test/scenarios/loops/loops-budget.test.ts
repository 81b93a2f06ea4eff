/** The daily budget of a loop over HTTP, with an agent whose every answer costs more than it. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, listOf, until } from '../support/given.ts'

const models = JSON.stringify({
  default: 'priced/dear',
  providers: [
    {
      provider: 'priced',
      kind: 'scripted',
      models: [
        { id: 'dear', context_window_tokens: 100_000, price: { input: 1000, output: 1000 } },
      ],
    },
  ],
})
const s = await service({ BATON_MODELS: models })
t.teardown(() => s.stop())
type Open = Record<string, unknown>
const gate = { id: 'gate', kind: 'wait_for_event', config: { event_type: 'signal.go' } }
const paid = { id: 'paid', kind: 'agent', config: { agent_id: 'writer', instructions: 'Write' } }
const script =
  'script:\n  - when: "*"\n    say: "ok"\n' + '    usage: {input_tokens: 50, output_tokens: 50}\n'
await s.ok('agent.create', { name: 'writer', system_prompt: script })

const make = (more: Open = {}): Promise<Open> =>
  s.ok('loop.create', {
    name: 'Daily',
    limits: { daily_credit_budget: 10 },
    steps: [gate, paid, { ...paid, id: 'again' }],
    ...more,
  })
const start = (loop: Open): Promise<Open> => s.ok('loop.start', { id: loop['id'] })
const go = async (run: Open): Promise<Open> => {
  await until(
    () => s.ok('run.get', { id: run['id'] }) as Promise<Open>,
    ({ status }) => status === 'suspended',
  )
  await s.ok('run.signal', { id: run['id'], name: 'go' })
  return await ended(s, run['id'])
}
const spentBy = async (run: Open): Promise<unknown> =>
  ((await s.ok('run.get', { id: run['id'] })) as Open)['credit_spent']

t.test('a spent daily budget halts the active runs and refuses their recovery', async (t) => {
  const loop = await make()
  const [first, second, third] = [await start(loop), await start(loop), await start(loop)]
  const halted = { status: 'failed', stop_reason: 'budget_exceeded' }
  t.match(await go(first), { ...halted, credit_spent: 10 })
  t.match(await go(second), { ...halted, credit_spent: 0 })
  for (const name of ['run.retry', 'run.recover'] as const)
    await s.refused(name, { id: second['id'] }, 409, 'budget_exhausted')
  t.match(await s.ok('run.retry_many', { run_ids: [first['id']] }), {
    results: [{ ok: false, error: { code: 'budget_exhausted' } }],
  })
  t.equal(await spentBy(second), 0)
  await s.ok('loop.update', { id: loop['id'], limits: { daily_credit_budget: 100 } })
  t.match(await go(third), { status: 'completed', credit_spent: 20 }, 'a raised limit releases it')
})

t.test('waiting runs do not start while the daily budget is spent', async (t) => {
  const loop = await make({ concurrency: 'queue', steps: [gate, paid] })
  const [first, second] = [await start(loop), await start(loop)]
  t.match(await go(first), { status: 'completed', credit_spent: 10 })
  t.match(await s.ok('run.get', { id: second['id'] }), {
    status: 'queued',
    queue_reason: 'loop_policy',
  })
  await s.ok('loop.update', { id: loop['id'], limits: {} })
  t.match(await go(second), { status: 'completed' })
  t.equal(listOf(await s.ok('run.list', { loop_id: loop['id'] })).length, 2)
})
