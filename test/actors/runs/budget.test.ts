/** A run whose credit budget is exhausted by the cost of an agent. */
import t from 'tap'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { definition } from '../sessions/story.ts'
import { payload, record, started } from './story.ts'

const ask = (id: string): Step => ({
  id,
  kind: 'agent',
  config: { agent_id: 'helper', instructions: 'Say hi' },
})
const spent = (steps: readonly Step[], more: Record<string, unknown>) =>
  started(steps, { limits: { credit_budget: 2 } })
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
