/** Gates of checks that agents judge. */
import t from 'tap'
import type { RunState } from '../../../../actors/runs/state.ts'
import type { Step } from '../../../../protocol/workflows/spec.ts'
import type { Scene } from '../../../support/given.ts'
import { definition } from '../../sessions/story.ts'
import { type After, record, started, step } from '../story.ts'

/** Sends the turn's definition to the run, as an executor does after the lookup. */
const define = (scene: Scene<RunState>): After =>
  scene.when('turn.defined', {
    turn_id: 'turn_1',
    session_id: 'ses_1',
    definition: definition(),
    place: { root: 'ses_1', generation: 0, session_key: 'k', agent_id: 'agt_1', agent_name: 'Bot' },
    seed: {},
  })
const settle = (scene: Scene<RunState>, more: Record<string, unknown>): After =>
  scene.when('turn.settled', {
    turn_id: 'turn_1',
    session_id: 'ses_1',
    status: 'completed',
    ...more,
  })

t.test('a gate that cannot be rendered after a judgment fails the check', async (t) => {
  const check = (gate: Record<string, unknown>, more: Partial<Step> = {}): Step =>
    ({
      id: 'c',
      kind: 'check',
      config: {
        on_fail: 'gate',
        checks: [{ name: 'kind', kind: 'agent', agent: 'judge', prompt: 'Is it kind?' }],
        gate: { targets: ['ada'], ...gate },
      },
      ...more,
    }) as Step
  const broken = check({ prompt: 'ratio ${{ 10 / 0 }}' })
  const rejected = { output: { pass: false, reason: 'rude' } }
  const failure = { status: 'failed', error_type: 'expression_error', stop_reason: 'step_failed' }
  const judged = settle(define(started([broken])), rejected)
  t.match(record(judged), failure)
  t.match(step(judged, 'c'), { status: 'failed', verdict: 'fail' })
  t.match(
    record(settle(define(started([check({ targets: ['${{ 10 / 0 }}'] })])), rejected)),
    failure,
  )
  t.match(record(settle(define(started([broken])), { status: 'failed' })), failure, 'a failed turn')
  const unknown = started([broken]).when('job.settled', { job_id: 'job_1', outcome: 'failed' })
  t.match(record(unknown), failure, 'a failed lookup')
  const repeated = settle(
    define(started([check({ prompt: '${{ 10 / 0 }}' }, { retry: { max_attempts: 2 } })])),
    rejected,
  )
  t.match(step(repeated, 'c'), { status: 'suspended', attempt: 2 }, 'the retry policy applies')
  const inside = {
    id: 'p',
    kind: 'parallel',
    config: { branches: [{ id: 'x', steps: [broken] }] },
  } as Step
  t.match(record(settle(define(started([inside])), rejected)), {
    status: 'failed',
    error_type: 'branch_failed',
  })
})

t.test('the title of a gate is its prompt, cut between characters', async (t) => {
  const titled = (prompt: string) =>
    started(
      [
        {
          id: 'c',
          kind: 'check',
          config: {
            on_fail: 'gate',
            checks: [{ name: 'kind', kind: 'expr', expr: 'false' }],
            gate: { targets: ['ada'], prompt: '${{ input.prompt }}' },
          },
        },
      ],
      {},
      { input: { prompt } },
    ).tells[0]?.input
  t.match(titled(' \n'), { title: 'Continue although kind failed?', description: undefined })
  t.match(titled('Ship?'), { title: 'Ship?', description: undefined })
  const long = `${'x'.repeat(511)}🚢🚢`
  t.match(titled(long), { title: `${'x'.repeat(511)}🚢`, description: long })
})
