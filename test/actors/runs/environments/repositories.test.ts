/** The system steps that prepare the repositories of a loop. */
import t from 'tap'
import { run } from '../../../../actors/runs/run.ts'
import type { RunState } from '../../../../actors/runs/state.ts'
import type { Repository } from '../../../../protocol/loops/repositories.ts'
import type { Spec, Step } from '../../../../protocol/workflows/spec.ts'
import { given, type Outcome } from '../../../support/given.ts'
import { action, record, settle, step } from '../story.ts'

const SHA = 'a'.repeat(40)
const opened = (
  repositories: readonly Repository[],
  event: Record<string, unknown> = {},
  steps: readonly Step[] = [action('build')],
  spec: Partial<Spec> = {},
): Outcome<RunState> =>
  given<RunState>(run).when('run.open', {
    loop: { id: 'loop_1', version_id: 'lver_1', version: 1, name: 'Review' },
    spec: { steps, ...spec },
    repositories,
    definitions: {},
    event,
    config: { secret: 'hidden' },
    meta: {},
    source: { type: 'trigger', trigger_id: 'trig_1' },
    depth: 0,
  })
const match: Repository = { source: 'match' }

t.test('a repository is cloned by a system step before the first step', async (t) => {
  const after = opened([{ full_name: 'shop/orders', ref: 'v1.2', push: true }])
  t.match(after.tells[0]?.input, {
    job: {
      action_name: 'environment.git.clone',
      step_key: 'prepare_repository',
      environment_id: 'env_1',
      environment: {
        holder: { kind: 'run', id: 'run_1' },
        binding: { mode: 'run', repositories: [{ full_name: 'shop/orders', push: true }] },
      },
    },
  })
  t.strictSame(after.ask('job_spec', { job_id: 'job_1' }), {
    action_name: 'environment.git.clone',
    parameters: { repo_full_name: 'shop/orders', dest: 'orders', branch: 'v1.2' },
  })
  const next = settle(after, 'job_1', 'completed', { result: { dir: 'orders' } })
  t.match(next.tells[0]?.input, { job: { step_key: 'build' } })
})

t.test('several repositories have numbered steps and separate folders', async (t) => {
  const first = opened([
    { full_name: 'shop/orders' },
    { full_name: 'lab/Orders', provider: 'gitlab' },
    { full_name: 'lab/orders' },
  ])
  const second = settle(first, 'job_1', 'completed')
  const third = settle(second, 'job_2', 'completed')
  t.same(
    ['prepare_repository_1', 'prepare_repository_2', 'prepare_repository_3'].map((key) =>
      [key, step(third, key)?.inputs?.['dest']].join(),
    ),
    [
      'prepare_repository_1,orders',
      'prepare_repository_2,lab-Orders',
      'prepare_repository_3,lab-orders-2',
    ],
  )
})

t.test('the ids and indexes of authored steps do not change', async (t) => {
  const unnamed = (parameters: object): Step =>
    ({ kind: 'action', config: { action_name: 'x', parameters } }) as Step
  const first = opened([{ full_name: 'a/b' }], {}, [
    unnamed({ dir: '${{ steps.prepare_repository.output.dir }}' }),
    action('named', { parameters: { from: '${{ steps["0"].output.n }}' } }),
    action('last', { parameters: { from: '${{ steps[1].output.n }}' } }),
  ])
  const second = settle(first, 'job_1', 'completed', { result: { dir: 'b' } })
  t.same(step(second, '0')?.inputs, { dir: 'b' })
  const third = settle(second, 'job_2', 'completed', { result: { n: 1 } })
  t.same(step(third, 'named')?.inputs, { from: '1' })
  t.same(step(settle(third, 'job_3', 'completed', { result: { n: 2 } }), 'last')?.inputs, {
    from: '2',
  })
})

t.test('a repository that cannot be cloned fails the run', async (t) => {
  const after = settle(opened([{ full_name: 'shop/orders' }]), 'job_1', 'failed', {
    error_type: 'git_failed',
  }).when('run.end', {})
  t.match(record(after), {
    status: 'failed',
    stop_reason: 'step_failed',
    error_type: 'git_failed',
  })
})

t.test('an event without a repository fails the run before a job exists', async (t) => {
  const after = opened([match], { text: 'hello' }).when('run.end', {})
  t.match(record(after), {
    status: 'failed',
    stop_reason: 'step_failed',
    error_type: 'repository_unknown',
    error_message: 'the event that started the run names no repository',
  })
  t.equal(step(after, 'prepare_repository')?.status, 'failed')
})

t.test('a matched repository may be used by the environment of the run', async (t) => {
  const event = { repository: { full_name: 'shop/orders' }, ref: 'refs/heads/main', after: SHA }
  t.match(opened([{ ...match, push: true }], event).tells[0]?.input, {
    job: {
      environment: {
        binding: { repositories: [{ full_name: 'shop/orders', push: true }] },
      },
    },
  })
})

t.test('text of an event is never rendered as a template', async (t) => {
  const event = {
    repository: { full_name: 'shop/orders' },
    number: 7,
    pull_request: {
      number: 7,
      base: { repo: { full_name: 'shop/orders' } },
      head: { sha: SHA, ref: '${{config.secret}}' },
    },
  }
  const after = opened([match], event)
  t.notMatch(JSON.stringify(step(after, 'prepare_repository')?.inputs), /hidden/)
})

t.test('a run without its own first steps completes after its repositories', async (t) => {
  const after = opened([{ full_name: 'a/b' }], {}, [action('x', { if: 'false' } as Partial<Step>)])
  const done = settle(after, 'job_1', 'completed', { result: { dir: 'b' } })
  t.match(record(done), { status: 'completed', result: { prepare_repository: { dir: 'b' } } })
})

t.test('a turn of a run with repositories works in the environment of the run', async (t) => {
  const ask = {
    id: 'ask',
    kind: 'agent',
    config: { instructions: 'do', agent_id: 'coder' },
  } as Step
  const turn = settle(opened([{ full_name: 'a/b' }], {}, [ask]), 'job_1', 'completed')
  t.match(turn.ask('job_spec', { job_id: 'job_2' }), {
    environment: {
      id: 'env_1',
      use: { binding: { mode: 'run', repositories: [{ full_name: 'a/b', push: false }] } },
    },
  })
})
