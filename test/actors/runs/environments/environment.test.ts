/** Runs in environments: the environment that an action or a turn uses, and the end of the run. */
import t from 'tap'
import { run } from '../../../../actors/runs/run.ts'
import type { RunState } from '../../../../actors/runs/state.ts'
import type { JobHeader } from '../../../../protocol/jobs/rows.ts'
import { timelineTypes } from '../../../../protocol/runs/events.ts'
import type { Spec, Step } from '../../../../protocol/workflows/spec.ts'
import { given, type Outcome, type Scene, typesOf } from '../../../support/given.ts'
import { action, failed, type Run, record, settle, sleep, started, step } from '../story.ts'

type Policy = NonNullable<NonNullable<Spec['defaults']>['environment']>
const bash = (id: string, config: object = {}, more: Partial<Step> = {}): Step =>
  ({
    id,
    kind: 'action',
    config: { action_name: 'environment.bash', parameters: { command: 'ls' }, ...config },
    ...more,
  }) as Step
const agentStep = (id: string, agent_id?: string): Step =>
  ({ id, kind: 'agent', config: { instructions: 'do', ...(agent_id && { agent_id }) } }) as Step
const policy = (environment: Policy): Partial<Spec> => ({ defaults: { environment } })
const AGENT = 'agt_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const STEP_OWN = 'env_01ARZ3NDEKTSV4RRFFQ69G5FB1'
const POLICY_OWN = 'env_01ARZ3NDEKTSV4RRFFQ69G5FB2'
const LEASED = 'env_01ARZ3NDEKTSV4RRFFQ69G5FB3'
const opened = (steps: readonly Step[], spec: Partial<Spec> = {}, more: object = {}) =>
  given<RunState>(run).when('run.open', {
    loop: { id: 'loop_7', version_id: 'lver_1', version: 1, name: 'Nightly' },
    spec: { steps, ...spec },
    definitions: {},
    event: {},
    config: {},
    meta: {},
    source: { type: 'api' },
    depth: 0,
    actor: { principal_id: 'user_1', principal_type: 'human' },
    ...more,
  })
const jobIn = ({ tells }: Pick<Outcome<RunState>, 'tells'>): JobHeader | undefined =>
  (tells.find(({ name }) => name === 'queue.enqueue')?.input as { job: JobHeader } | undefined)?.job
/**
 * Returns the reports of the run's end to environments. Each consists of the environment's id and
 * the run's status.
 */
const ends = ({ effects }: Pick<Outcome<RunState>, 'effects'>): unknown[] =>
  effects.flatMap((effect) =>
    'tell' in effect && effect.tell.name === 'environment.run_ended'
      ? [[effect.tell.to.id, (effect.tell.input as { status: string }).status]]
      : [],
  )

t.test('an environment action without a policy uses the environment of the run', async (t) => {
  const job = jobIn(started([bash('a')]))
  t.equal(job?.environment_id, 'env_1', 'derived from the id of the run')
  t.strictSame(job?.environment, {
    holder: { kind: 'run', id: 'run_1' },
    binding: { mode: 'run', owner_id: 'run_1', owned_by: 'user_1' },
  })
  const other = action('a')
  Object.assign(other.config, { execution_location: 'environment' })
  t.equal(jobIn(started([other]))?.environment_id, 'env_1', 'so does any action located in one')
  t.equal(jobIn(started([action('a')]))?.environment_id, undefined)
})

t.test('a text that is not the id of an environment is a label of a worker', async (t) => {
  for (const label of ['gpu-box', 'env_7', 'env_1ydv', `${STEP_OWN}0`]) {
    const job = jobIn(started([bash('a', { environment_id: label })]))
    t.equal(job?.environment_id, label)
    t.notOk(job?.environment, 'the job does not wait for an environment')
  }
})

t.test('an action uses the first environment that is given', async (t) => {
  const used = (config: object, spec: Partial<Spec>, more: object = {}) => {
    const { environment_id, environment } = jobIn(opened([bash('a', config)], spec, more)) ?? {}
    return [environment_id, environment?.binding?.mode]
  }
  t.same(used({ environment_id: STEP_OWN }, policy({ environment_id: POLICY_OWN })), [
    STEP_OWN,
    undefined,
  ])
  t.same(used({}, policy({ environment_id: POLICY_OWN, mode: 'loop' })), [POLICY_OWN, undefined])
  t.same(used({}, policy({ mode: 'loop' })), ['env_7', 'loop'])
  t.same(used({}, policy({ mode: 'agent' }), { agent_id: AGENT }), [
    `env_${AGENT.slice(4)}`,
    'agent',
  ])
  t.same(used({}, policy({ mode: 'run' })), ['env_1', 'run'])
  t.same(used({}, policy({ provider: 'docker' })), ['env_1', 'run'])
  t.same(used({ environment_id: 'gpu' }, {}), ['gpu', undefined])
})

t.test('a label that a worker chose is no managed environment', async (t) => {
  t.equal(jobIn(started([bash('a', { environment_id: 'gpu' })]))?.environment, undefined)
})

t.test('the policy describes the environment that is created', async (t) => {
  const { environment } =
    jobIn(
      started(
        [bash('a')],
        policy({
          provider: 'docker',
          template_id: 'coding-default',
          runtime_version: '2',
          retention_policy: 'retain_on_failure',
          auto_start_worker: false,
        }),
      ),
    ) ?? {}
  t.match(environment, {
    passive: true,
    binding: {
      provider: 'docker',
      template_id: 'coding-default',
      runtime_version: '2',
      retention_policy: 'retain_on_failure',
    },
  })
})

t.test('a step fails when the definition of an earlier release names no environment', async (t) => {
  for (const [environment, loop] of [
    [{ disabled: true, environment_id: POLICY_OWN }, false],
    [{ mode: 'manual' }, false],
    [{ mode: 'loop' }, false],
    [{ mode: 'agent' }, true],
  ] as const) {
    const after = (loop ? opened : started)([bash('a')], policy(environment))
    t.equal(step(after, 'a')?.error_type, 'environment_invalid', JSON.stringify(environment))
    t.equal(jobIn(after), undefined)
  }
  t.equal(
    jobIn(started([bash('a', { environment_id: STEP_OWN })], policy({ disabled: true })))
      ?.environment_id,
    STEP_OWN,
    'the environment of a step is used even so',
  )
})

t.test('a direct call works for its caller, in the given environment', async (t) => {
  const after = given<RunState>(run).when('action.invoke', {
    action_name: 'environment.bash',
    input: { command: '${{ not rendered }}' },
    environment_id: LEASED,
  })
  t.match(jobIn(after), {
    environment_id: LEASED,
    origin: 'direct_action_invoke',
    environment: { holder: { kind: 'principal', id: 'user_1' }, binding: undefined },
  })
  t.same(ends(settle(after, 'job_1', 'completed')), [], 'the environment is not that of the run')
})

t.test(
  'the end of a run is reported to the environment that it used, whatever the outcome',
  async (t) => {
    const used = (more: Partial<Spec> = {}, steps: Step[] = [bash('a')]) => started(steps, more)
    const told = (after: Outcome<RunState>, status: string, name: string) => {
      t.same(ends(after), [['env_1', status]], name)
      t.equal(record(after).status, status, name)
    }
    told(settle(used(), 'job_1', 'completed'), 'completed', 'completed')
    told(settle(used(), 'job_1', 'failed'), 'failed', 'failed')
    const asked = used().when('run.cancel', {})
    t.same(ends(asked), [], 'the job has not ended')
    told(settle(asked, 'job_1', 'cancelled'), 'cancelled', 'cancelled')
    const late = used({ limits: { wall_clock_timeout: '10s' } })
    told(late.when('wake', {}, { at: late.at + 10_000 }), 'failed', 'time limit')
    const slow = used({}, [bash('a', {}, { timeout: { duration: '5s' } })])
    told(slow.when('wake', {}, { at: slow.at + 5000 }), 'failed', 'timeout of the step')
    told(
      settle(used({ limits: { max_steps: 1 } }, [bash('a'), action('b')]), 'job_1', 'completed'),
      'failed',
      'limit on steps',
    )
    told(
      settle(used({ output: { x: '${{ 1 / 0 }}' } }), 'job_1', 'completed'),
      'failed',
      'no result',
    )
  },
)

t.test('a run that did not use its own environment reports its end to none', async (t) => {
  t.same(ends(settle(started([action('a')]), 'job_1', 'completed')), [])
  t.same(ends(settle(started([bash('a', { environment_id: STEP_OWN })]), 'job_1', 'completed')), [])
  t.same(ends(settle(opened([bash('a')], policy({ mode: 'loop' })), 'job_1', 'completed')), [])
  t.same(ends(failed()), [])
})

t.test('the end is reported after the cleanup, which still uses the environment', async (t) => {
  const cleanup = [bash('tidy')] as NonNullable<Spec['cleanup']>
  const cleaning = settle(started([bash('a')], { cleanup }), 'job_1', 'failed')
  t.equal(jobIn(cleaning)?.environment_id, 'env_1')
  t.same(ends(cleaning), [])
  t.same(ends(settle(cleaning, 'job_2', 'completed')), [['env_1', 'failed']])
  const only = settle(started([action('a')], { cleanup }), 'job_1', 'completed')
  t.same(ends(settle(only, 'job_2', 'completed')), [['env_1', 'completed']], 'only the cleanup')
})

t.test('a failed run of a loop reports its end when the loop has replied', async (t) => {
  const left = settle(opened([bash('a')]), 'job_1', 'failed')
  t.same(ends(left), [])
  t.same(ends(left.when('run.end', {})), [['env_1', 'failed']])
})

t.test('a run of a deleted loop reports its end to its environment', async (t) => {
  const gone = opened([bash('a')]).when('run.displace', { deleted: true })
  const stopping = gone.when('wake', {}, { at: gone.at + 1 })
  t.same(ends(settle(stopping, 'job_1', 'cancelled')), [['env_1', 'cancelled']])
})

t.test('a retried run uses its environment again, and reports its next end', async (t) => {
  const again = settle(started([bash('a')]), 'job_1', 'failed').when('run.retry', {})
  t.match(jobIn(again), { environment_id: 'env_1', environment: { binding: { mode: 'run' } } })
  t.same(ends(again), [])
  t.same(ends(settle(again, 'job_2', 'completed')), [['env_1', 'completed']])
})

t.test('steps in branches use the environment of the run', async (t) => {
  const steps = [bash('a'), action('b')] as never
  const after = started([{ id: 'each', kind: 'for_each', config: { items: [1], steps } } as Step])
  t.equal(jobIn(after)?.environment_id, 'env_1')
  const next = settle(after, 'job_1', 'completed')
  t.same(ends(settle(next, 'job_2', 'completed')), [['env_1', 'completed']])
})

t.test('a turn gets the environment of its run only if a policy selects it', async (t) => {
  const wanted = (after: Run) => {
    const { environment, agent_environment, no_environment } = after.ask('job_spec', {
      job_id: 'job_1',
    }) as Record<string, unknown>
    return { environment, agent_environment, no_environment }
  }
  const none = { environment: undefined, agent_environment: undefined, no_environment: undefined }
  const of = (environment?: Policy, more: object = {}) =>
    wanted(opened([agentStep('a', 'coder')], environment ? policy(environment) : {}, more))
  t.strictSame(of(), none, 'by default that of the agent')
  t.match(of({ environment_id: POLICY_OWN, mode: 'loop' }), {
    environment: { id: POLICY_OWN, use: { holder: { kind: 'run', id: 'run_1' } } },
  })
  t.match(of({ mode: 'loop' }), {
    environment: { id: 'env_7', use: { binding: { mode: 'loop' } } },
  })
  t.match(of({ mode: 'run' }), { environment: { id: 'env_1', use: { binding: { mode: 'run' } } } })
  t.strictSame(of({ mode: 'agent', provider: 'docker', auto_start_worker: false }), {
    ...none,
    agent_environment: {
      holder: { kind: 'run', id: 'run_1' },
      provider: 'docker',
      passive: true,
    },
  })
  t.strictSame(of({ disabled: true, mode: 'run' }), { ...none, no_environment: true })
})

t.test('a run whose turn used its environment reports its end to it', async (t) => {
  const asked = opened([agentStep('a', 'coder'), sleep('b')], policy({ mode: 'run' }))
  const gone = asked.when('run.cancel', {})
  t.same(ends(gone), [['env_1', 'cancelled']])
  t.same(ends(opened([agentStep('a', 'coder')]).when('run.cancel', {})), [])
})

t.test('the end of a run is reported to environments that its jobs did not use', async (t) => {
  const bound = (scene: Scene<RunState>, environment_id: string) =>
    scene.when('run.environment', { environment_id })
  const own = bound(started([action('a')]), 'env_1')
  t.same(typesOf(own), ['environment.bound'])
  t.notOk(timelineTypes.has('environment.bound'))
  t.same(ends(own), [], 'not before the end')
  t.same(typesOf(bound(own, 'env_1')), [], 'a repeat changes nothing')
  t.same(ends(settle(own, 'job_1', 'completed')), [['env_1', 'completed']])
  const both = bound(bound(own, LEASED), STEP_OWN)
  t.same(typesOf(bound(both, LEASED)), [])
  t.same(ends(settle(both, 'job_1', 'failed')), [
    ['env_1', 'failed'],
    [LEASED, 'failed'],
    [STEP_OWN, 'failed'],
  ])
  const used = bound(started([bash('a')]), 'env_1')
  t.same(typesOf(used), [], 'a job has used it before')
  t.same(ends(settle(used, 'job_1', 'completed')), [['env_1', 'completed']])
  t.same(given<RunState>(run).when('run.environment', { environment_id: 'env_1' }).events, [])
})

t.test('a run that has ended reports its end to a new environment at once', async (t) => {
  const done = settle(started([action('a')]), 'job_1', 'completed')
  const late = done.when('run.environment', { environment_id: LEASED })
  t.same(ends(late), [[LEASED, 'completed']])
  t.equal(late.state.record.updated_at, done.state.record.updated_at)
  t.same(ends(late.when('run.environment', { environment_id: LEASED })), [[LEASED, 'completed']])
  const broken = failed().when('run.environment', { environment_id: LEASED })
  t.same(ends(broken), [[LEASED, 'failed']])
  const retried = broken.when('run.retry', {})
  const id = jobIn(retried)?.id ?? ''
  t.same(ends(settle(retried, id, 'completed')), [[LEASED, 'completed']], 'and the next end, too')
})
