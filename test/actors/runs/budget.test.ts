/** A run whose credit budget is exhausted by the cost of an agent. */
import t from 'tap'
import { run } from '../../../actors/runs/run.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { given, typesOf } from '../../support/given.ts'
import { definition } from '../sessions/story.ts'
import { type After, payload, record, started } from './story.ts'

const ask = (id: string): Step => ({
  id,
  kind: 'agent',
  config: { agent_id: 'helper', instructions: 'Say hi' },
})
const spent = (steps: readonly Step[], more: Record<string, unknown>) =>
  paying(started(steps, { limits: { credit_budget: 2 } }), more)
const paying = (scene: After, more: Record<string, unknown>) =>
  scene
    .when('turn.defined', {
      turn_id: 'turn_1',
      session_id: 'ses_1',
      definition: definition(),
      place: {
        root: 'ses_1',
        generation: 0,
        session_key: 'k',
        agent_id: 'agt_1',
        agent_name: 'Bot',
      },
      seed: {},
    })
    .when('usage.record', {
      usage_id: 'job_9',
      category: 'llm.tokens',
      quantity: 10,
      credit_cost_milli: 2000,
      step_key: 'a',
      ...more,
    })

t.test(
  'an answer that ends the turn completes its step, but the next step does not start',
  async (t) => {
    for (const steps of [[ask('a')], [ask('a'), ask('b')]]) {
      const paid = spent(steps, { ends: true })
      t.match(record(paid), { status: 'suspended' }, 'the end of the turn is reported next')
      const after = paid.when('turn.settled', {
        turn_id: 'turn_1',
        session_id: 'ses_1',
        status: 'completed',
        text: 'done',
      })
      t.match(payload(after, 'step.completed'), { step: 'a', output: { text: 'done' } })
      t.match(
        record(after),
        steps.length === 1
          ? { status: 'completed' }
          : { status: 'failed', stop_reason: 'budget_exceeded' },
      )
    }
  },
)

t.test('an answer that continues the turn ends the run', async (t) => {
  t.match(record(spent([ask('a')], {})), { status: 'failed', stop_reason: 'budget_exceeded' })
})

t.test('a spent daily budget ends the turn of an agent that continues, and no other', async (t) => {
  const opened = given<RunState>(run).when('run.open', {
    loop: { id: 'loop_1', version_id: 'lver_1', version: 3, name: 'Nightly' },
    spec: { steps: [ask('a')] },
    definitions: {},
    event: {},
    config: {},
    meta: {},
    source: { type: 'api' },
    depth: 0,
  })
  const told = ({ tells }: After) => tells.find(({ name }) => name === 'run.spent')?.input
  const goesOn = paying(opened, {})
  t.strictSame(told(goesOn), { run_id: 'run_1', milli: 2000, continues: true })
  const ends = paying(opened, { ends: true })
  t.strictSame(told(ends), { run_id: 'run_1', milli: 2000 })
  const halt = { used: 2, limit: 2, until: Number.MAX_SAFE_INTEGER }
  t.ok(typesOf(goesOn.when('run.halt', { ...halt, continues: true })).includes('limit.reached'))
  t.notOk(typesOf(goesOn.when('run.halt', halt)).includes('limit.reached'))
  const next = goesOn.when('run.halt', halt).when('usage.record', {
    usage_id: 'job_10',
    category: 'llm.tokens',
    quantity: 10,
    credit_cost_milli: 1,
  })
  t.ok(typesOf(next).includes('limit.reached'), 'a halted agent ends when it continues')
})
