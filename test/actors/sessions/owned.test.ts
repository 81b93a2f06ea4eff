/**
 * Turns that runs open in a session: they can be stopped, and each is reported to its run exactly
 * once.
 */
import t from 'tap'
import { definition, message, Story, say, tool, use } from './story.ts'

type Open = Record<string, unknown>
const place = {
  root: 'ses_1',
  generation: 0,
  session_key: 'k',
  agent_id: 'agt_1',
  agent_name: 'Bot',
  scope_ref_id: 'loop_1',
  of_run: true,
}
const opening = (more: Open = {}): Open => ({
  turn_id: 'turn_r',
  place,
  seed: { title: 'Work' },
  owner: { run_id: 'run_1', step_key: 'ask' },
  attempt: 1,
  content: [say('go')],
  definition: definition(),
  asker: { id: 'system', type: 'system' },
  ...more,
})
const told = (s: Story, name = 'turn.settled'): Open[] =>
  (s.last?.effects ?? []).flatMap((effect) =>
    'tell' in effect && effect.tell.name === name
      ? [{ to: effect.tell.to.id, ...(effect.tell.input as Open) }]
      : [],
  )
const answer = (s: Story, content: readonly Open[]): void => {
  const job = s.job()
  s.jobs.delete(job.id)
  s.do('job.settled', {
    job_id: job.id,
    outcome: 'completed',
    attempt: 1,
    result: message(content),
  })
}

t.test('a turn creates its session and reports its outcome', async (t) => {
  const s = new Story()
  s.do('turn.open', opening())
  t.match(s.session.state.record, {
    origin: 'loop',
    scope: 'loop',
    scope_ref_id: 'loop_1',
    session_key: 'k',
    title: 'Work',
    visibility: 'project',
  })
  t.match(s.job(), {
    origin: 'agent_llm_call',
    run_id: 'run_1',
    step_key: 'ask',
    step_id: 'run_1:ask',
  })
  answer(s, [say('one'), say(' two')])
  t.strictSame(told(s), [
    { to: 'run_1', turn_id: 'turn_r', session_id: 'ses_1', status: 'completed', text: 'one two' },
  ])
  t.match(told(s, 'usage.record'), [
    { to: 'run_1', category: 'llm.tokens', quantity: 15, credit_cost_milli: 0, step_key: 'ask' },
  ])
  s.do('turn.open', opening())
  t.same(told(s), [], 'an old opening opens nothing')
  t.equal(s.jobs.size, 0)
  s.do('turn.stop', { turn_id: 'turn_r' })
  t.same(told(s), [])
})

t.test('a client key never matches the turn of a run', async (t) => {
  const s = new Story()
  s.do('turn.open', opening())
  for (const idempotency_key of ['turn:turn_r', ' turn:turn_r']) {
    t.equal(s.invoke('mine', { input: { idempotency_key } }), undefined)
    t.match(s.last?.reply, { deduped: idempotency_key.startsWith(' '), turn: { id: 'turn_1' } })
  }
})

t.test('an output, the price and a failure are reported to the run', async (t) => {
  const s = new Story()
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
  s.do(
    'turn.open',
    opening({
      output_schema: schema,
      definition: definition([], { price: { input: 10, output: 100 } }),
    }),
  )
  answer(s, [use('o', 'service_submit_output', { n: 7 })])
  t.match(told(s), [{ status: 'completed', output: { n: 7 } }])
  t.match(
    told(s, 'usage.record'),
    [{ credit_cost_milli: 60 }],
    '10 tokens at 10 USD and 5 at 100 USD a million are 60 thousandths of a credit',
  )
  s.do('turn.open', opening({ turn_id: 'turn_2', output_schema: schema }))
  answer(s, [say('no object')])
  t.match(told(s), [
    {
      turn_id: 'turn_2',
      status: 'failed',
      error_type: 'output_schema_unsatisfied',
      error: /schema/,
    },
  ])
})

t.test('the limits of the step apply', async (t) => {
  const s = new Story()
  s.do('turn.open', opening({ definition: definition([tool('act')], { max_generations: 2 }) }))
  for (const id of ['x', 'y']) {
    answer(s, [use(id, 'act', { id })])
    const job = s.job('action_execution')
    s.jobs.delete(job.id)
    s.do('job.settled', { job_id: job.id, outcome: 'completed', attempt: 1, result: {} })
  }
  t.match(told(s), [
    {
      status: 'failed',
      error_type: 'max_iterations',
      error: 'The model was called 2 times in this turn, which is the maximum.',
    },
  ])
  s.do(
    'turn.open',
    opening({ turn_id: 'turn_2', definition: definition([tool('crm.act')], { max_repeats: 1 }) }),
  )
  answer(s, [use('a', 'crm_act'), use('b', 'crm_act')])
  t.match(told(s), [
    {
      status: 'failed',
      error_type: 'progress_stalled',
      error: 'crm.act was called more than 1 times with the same arguments.',
      stalled: { tool: 'crm.act', duplicate_calls: 2, limit: 1 },
    },
  ])
  s.do(
    'turn.open',
    opening({ turn_id: 'turn_3', definition: definition([tool('act')], { max_repeats: 0 }) }),
  )
  answer(
    s,
    Array.from({ length: 9 }, (_, n) => use(`c${n}`, 'act')),
  )
  t.equal(s.jobs.size, 9, 'without a bound all are done')
})

t.test('the run is notified whether the run or the session stopped the turn', async (t) => {
  const s = new Story()
  s.do('turn.open', opening())
  s.do('turn.stop', { turn_id: 'turn_r' })
  t.match(told(s), [{ status: 'cancelled', turn_id: 'turn_r' }])
  t.equal(s.jobs.size, 0)
  s.do('turn.open', opening({ turn_id: 'turn_2' }))
  s.do('session.cancel', { session_id: 'ses_1', force: true })
  t.match(told(s), [{ status: 'cancelled', turn_id: 'turn_2' }])
  s.do('session.delete', { session_id: 'ses_1' })
  s.do('turn.open', opening({ turn_id: 'turn_3' }))
  t.match(told(s), [
    { to: 'run_1', turn_id: 'turn_3', status: 'failed', error_type: 'session_gone', again: true },
  ])
})

t.test('a session of another agent or a full session fails the turn', async (t) => {
  const s = new Story()
  for (let n = 0; n < 50; n++) s.do('turn.open', opening({ turn_id: `turn_${n}` }))
  s.do('turn.open', opening({ turn_id: 'turn_x' }))
  t.match(told(s), [{ turn_id: 'turn_x', status: 'failed', error_type: 'session_full' }])
  const other = new Story()
  other.invoke()
  other.do('turn.open', opening({ place: { ...place, agent_id: 'agt_2' } }))
  t.match(told(other), [{ status: 'failed', error_type: 'conflict' }])
})
