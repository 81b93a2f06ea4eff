/** Limits of a run: time, sizes of outputs, and the number of steps. */
import t from 'tap'
import { MAX_EXECUTED } from '../../../actors/runs/limits.ts'
import { run } from '../../../actors/runs/run.ts'
import type { Engine, RunState } from '../../../actors/runs/state.ts'
import type { RunEvent } from '../../../protocol/runs/events.ts'
import { given, START, typesOf } from '../../support/given.ts'
import { action, failed, payload, record, settle, sleep, started, step } from './story.ts'

const hour = { limits: { wall_clock_timeout: '1h' } }

t.test('a run that exceeds its time limit fails in the middle of its step', async (t) => {
  const waiting = started([action('a'), sleep('b')], hour)
  t.equal(waiting.deadline(), START + 3_600_000)
  const over = waiting.when('wake', {}, { at: START + 3_600_500 })
  t.strictSame(typesOf(over), [
    'limit.reached',
    'action.failed',
    'wait.closed',
    'step.failed',
    'run.failed',
  ])
  t.strictSame(payload(over, 'limit.reached'), {
    step: 'a',
    limit_kind: 'wall_clock',
    used: 3600.5,
    limit: 3600,
  })
  t.match(over.tells, [{ name: 'queue.cancel', input: { job_ids: ['job_1'] } }])
  t.match(record(over), { status: 'failed', error_type: 'wall_clock_exceeded' })
  t.match(step(over, 'a'), { status: 'failed', error_type: 'wall_clock_exceeded' })
})

t.test('a limit with a fraction of a second is reported exactly', async (t) => {
  const over = started([action('a')], { limits: { wall_clock_timeout: '500ms' } }).when(
    'wake',
    {},
    { at: START + 501 },
  )
  t.strictSame(payload(over, 'limit.reached'), {
    step: 'a',
    limit_kind: 'wall_clock',
    used: 0.501,
    limit: 0.5,
  })
  t.equal(record(over).error_message, 'The run took longer than 0.5 seconds')
  t.equal(
    record(
      started([action('a')], { limits: { wall_clock_timeout: '1s' } }).when(
        'wake',
        {},
        { at: START + 1000 },
      ),
    ).error_message,
    'The run took longer than 1 second',
  )
})

t.test('an output that is too large fails the run, and the steps keep their outputs', async (t) => {
  const steps = ['a', 'b', 'c', 'd', 'e'].map((id) => action(id))
  const made = (text: string, spec = {}) =>
    steps.reduce(
      (before, _, n) => settle(before, `job_${n + 1}`, 'completed', { result: { text } }),
      started(steps, spec),
    )
  const over = made('x'.repeat(1_000_000))
  t.match(record(over), {
    status: 'failed',
    error_type: 'output_too_large',
    error_message: /^The output has 50000\d\d bytes; at most 4194304 are allowed: select/,
    result: undefined,
  })
  t.match(step(over, 'e'), { status: 'completed', result: { text: String } })
  t.match(record(made('日'.repeat(300_000))).error_type, 'output_too_large', 'bytes count')
  t.match(record(made('日'.repeat(250_000))), {
    status: 'completed',
    result: { e: { text: String } },
  })
  t.match(record(made('x'.repeat(1_000_000), { output: { last: '${{ steps.e.output.text }}' } })), {
    status: 'completed',
  })
  t.match(record(over.when('run.retry')).error_type, 'output_too_large')
})

t.test('the total size of outputs is limited, and the step that exceeds it fails', async (t) => {
  const steps = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((id) => action(id))
  const text = 'x'.repeat(1_000_000)
  const over = steps
    .slice(0, 7)
    .reduce(
      (before, _, n) => settle(before, `job_${n + 1}`, 'completed', { result: { text } }),
      started(steps),
    )
  t.match(record(over), {
    status: 'failed',
    error_type: 'outputs_too_large',
    error_message:
      'The output of the step g has 1000011 bytes, ' +
      'and the outputs of earlier steps have 6000066; ' +
      'a run stores at most 6291456 bytes of outputs',
  })
  t.match(step(over, 'g'), { status: 'failed', result: undefined })
  t.match(step(over, 'f'), { status: 'completed' })
  const again = settle(over.when('run.retry', { from_step: 'f' }), 'job_8', 'completed', {
    result: { text: 'small' },
  })
  t.match(
    step(settle(again, 'job_9', 'completed', { result: { n: 1 } }), 'g'),
    { status: 'completed' },
    'the output of a repeated step counts once',
  )
  const items = started([
    {
      id: 'each',
      kind: 'for_each',
      config: { items: [1], steps: [...steps], output: { done: true } },
    } as never,
  ])
  const inside = steps
    .slice(0, 7)
    .reduce(
      (before, _, n) => settle(before, `job_${n + 1}`, 'completed', { result: { text } }),
      items,
    )
  t.match(record(inside), { status: 'failed', error_message: /step each\.0\.g has/ })
})

t.test('the earliest deadline applies', async (t) => {
  t.equal(started([sleep('a', '10m')], hour).deadline(), START + 600_000)
  t.equal(started([sleep('a', '10h')], hour).deadline(), START + 3_600_000)
  t.equal(started([action('a')]).deadline(), undefined)
})

t.test('no step starts after the time limit of the run', async (t) => {
  const late = started([action('a'), sleep('b')], hour).when(
    'job.settled',
    { job_id: 'job_1', outcome: 'completed', attempt: 1 },
    { at: START + 3_600_000 },
  )
  t.strictSame(typesOf(late).slice(-3), ['run.resumed', 'limit.reached', 'run.failed'])
  t.match([record(late).error_type, step(late, 'b')], ['wall_clock_exceeded', undefined])
  const more = late.when('run.retry', { wall_clock_extend_seconds: 60 })
  t.strictSame(typesOf(more), [
    'run.resumed',
    'step.started',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
  t.strictSame(
    (more.events as unknown as { run?: { status?: string } }[]).flatMap(
      (event) => event.run?.status ?? [],
    ),
    ['queued', 'running', 'suspended'],
  )
})

t.test('a run beyond its time limit is recovered only with an extension from now', async (t) => {
  const over = started([sleep('a', '5h')], hour).when('wake', {}, { at: START + 3_600_000 })
  t.match(over.when('run.retry').refused, {
    refused: 'limit_not_raised',
    details: { limit_kind: 'wall_clock' },
  })
  t.match(over.when('run.recover', { max_agent_turns: 5 }).refused, { refused: 'limit_not_raised' })
  const again = over.when(
    'run.recover',
    { wall_clock_extend_seconds: 60 },
    { at: START + 7_200_000 },
  )
  t.equal(again.deadline(), START + 7_260_000)
  t.equal(
    record(again.when('wake', {}, { at: START + 7_260_000 })).error_message,
    'The run did not end by 2026-01-01T02:01:00.000Z, the deadline set by its recovery',
  )
  t.strictSame(typesOf(again), [
    'run.resumed',
    'step.retried',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
})

t.test('a run that failed otherwise also needs an extension after its time limit', async (t) => {
  const broken = failed([action('a')], hour)
  t.match(broken.when('run.retry').reply, { status: 'suspended' })
  t.match(broken.when('run.retry', {}, { at: START + 3_600_000 }).refused, {
    refused: 'limit_not_raised',
  })
})

t.test('the number of steps that a run starts is limited', async (t) => {
  const [born, ...rest] = failed().history as [RunEvent, ...RunEvent[]]
  const { engine } = born.private as { engine: Engine }
  const almost = {
    ...born,
    type: 'run.created',
    private: { engine: { ...engine, executed: MAX_EXECUTED - 2 } },
  } as RunEvent
  const second = given<RunState>(
    run,
    almost,
    ...rest.map((event) =>
      event.type === 'step.started'
        ? { ...event, private: { engine: { executed: MAX_EXECUTED - 1, tries: 1 } } }
        : event,
    ),
  )
  const scene = settle(second.when('run.retry'), 'job_1', 'failed')
  t.equal(scene.state.engine.executed, MAX_EXECUTED)
  const over = scene.when('run.retry')
  t.strictSame(typesOf(over), [
    'run.resumed',
    'step.retried',
    'limit.reached',
    'step.failed',
    'run.failed',
  ])
  t.match(payload(over, 'limit.reached'), { limit_kind: 'steps', limit: MAX_EXECUTED })
  t.match(record(over), { status: 'failed', error_type: 'step_limit_reached' })
  t.match(over.when('run.retry', { wall_clock_extend_seconds: 1 }).refused, {
    refused: 'limit_not_raised',
  })
})

t.test('steps of items count only towards a limit that the author set', async (t) => {
  const [born, ...rest] = failed().history as [RunEvent, ...RunEvent[]]
  const { engine } = born.private as { engine: Engine }
  const long = {
    ...born,
    type: 'run.created',
    private: { engine: { ...engine, executed: 20_000, aside: 19_990 } },
  } as RunEvent
  const after = rest.map((event) =>
    event.type === 'step.started'
      ? { ...event, private: { engine: { executed: 20_001, tries: 1 } } }
      : event,
  )
  t.match(record(given<RunState>(run, long, ...after).when('run.retry')), { status: 'suspended' })
  const limited = {
    ...long,
    spec: { ...born.spec, steps: born.spec?.steps ?? [], limits: { max_steps: 15_000 } },
  } as RunEvent
  t.match(record(given<RunState>(run, limited, ...after).when('run.retry')), {
    status: 'failed',
    error_type: 'step_limit_reached',
  })
})

t.test('a retry from an earlier step does not exceed the step limit', async (t) => {
  const steps = ['a', 'b', 'c'].map((id) => action(id))
  const begun = started(steps, { limits: { max_steps: 3 } })
  const broken = settle(settle(begun, 'job_1', 'completed'), 'job_2', 'failed')
  const over = settle(broken.when('run.retry', { from_step: 'a' }), 'job_3', 'completed')
  t.strictSame(typesOf(over).slice(-3), ['run.resumed', 'limit.reached', 'run.failed'])
  t.match(payload(over, 'limit.reached'), { step: 'b', used: 3, limit: 3 })
  t.equal(over.state.engine.executed, 3)
  t.match(step(over, 'b'), { status: 'failed', error_type: 'failed' }, 'of the first attempt')
})

t.test('a limit does not change a step that ended in an earlier attempt', async (t) => {
  const steps = ['a', 'b', 'c'].map((id) => action(id))
  const twice = ['job_1', 'job_2'].reduce(
    (scene, job) => settle(scene, job, 'completed', { result: { v: job } }),
    started(steps, hour),
  )
  const late = settle(twice, 'job_3', 'failed')
    .when('run.retry', { from_step: 'a' })
    .when(
      'job.settled',
      { job_id: 'job_4', outcome: 'completed', attempt: 1 },
      { at: START + 3_600_000 },
    )
  t.strictSame(typesOf(late).slice(-3), ['run.resumed', 'limit.reached', 'run.failed'])
  t.match(step(late, 'b'), { status: 'completed', result: { v: 'job_2' } })
  const again = late.when('run.retry', { wall_clock_extend_seconds: 60 })
  t.strictSame(typesOf(again).slice(0, 2), ['run.resumed', 'step.retried'])
  t.match(payload(again, 'step.retried'), { step: 'b', attempt: 2, retry_scope: 'run_recovery' })
  t.match(step(again, 'b'), { status: 'suspended', result: undefined })
  t.match(record(again), { status: 'suspended' })
})

t.test('a question that people could not answer fails its step', async (t) => {
  const asking = (config: object, input: object) =>
    started(
      [
        {
          id: 'q',
          kind: 'interaction',
          config: { protocol: 'request_approval', targets: ['${{ input.people }}'], ...config },
        },
      ],
      {},
      { input: { people: ['ada'], ...input } },
    )
  const people = Array.from({ length: 101 }, (_, n) => `user_${n}`)
  t.match(record(asking({}, { people })), {
    status: 'failed',
    error_type: 'interaction_invalid',
    error_message: 'targets: there are 101, but at most 100 are allowed',
  })
  t.match(record(asking({}, { people: people.slice(1) })), { status: 'suspended' })
  const texts = { description: '${{ input.text }}', context: { text: '${{ input.text }}' } }
  const long = asking(texts, { text: 'x'.repeat(400_000) })
  t.match(record(long), {
    status: 'failed',
    error_type: 'interaction_invalid',
    error_message: /the question has 800\d\d\d characters, but at most 786432 are allowed/,
  })
  t.strictSame(long.tells, [])
  t.match(record(asking(texts, { text: 'x'.repeat(390_000) })), { status: 'suspended' })
})
