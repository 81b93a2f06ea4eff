/** Interaction steps: the question, its end, and how the run uses the outcome. */
import t from 'tap'
import { MAX_ASKED } from '../../../actors/runs/inbound/interactions.ts'
import type { Step } from '../../../protocol/workflows/spec.ts'
import { START, typesOf } from '../../support/given.ts'
import { action, payload, record, sleep, started, step, wait } from './story.ts'

const ask = (config: Record<string, unknown> = {}, more: Partial<Step> = {}): Step =>
  ({
    id: 'q',
    kind: 'interaction',
    config: { protocol: 'request_approval', targets: ['ada'], ...config },
    ...more,
  }) as Step
const settled = (more: Record<string, unknown> = {}) => ({
  interaction_id: 'iact_1',
  signal_name: 'interaction.q',
  status: 'completed',
  value: true,
  responder: { user_id: 'ada' },
  ...more,
})

t.test('a step opens its question in the commit that suspends the run', async (t) => {
  const scene = started(
    [
      ask({
        prompt: 'Ship ${{ input.what }}?',
        spec: { mode: 'confirm' },
        expires_in: '1h',
        resolution_policy: { type: 'quorum', threshold: 2 },
        targets: ['${{ input.people }}', 'role:Editor'],
        context: { n: '${{ input.n }}' },
      }),
    ],
    {},
    { input: { what: 'it', people: ['ada', 'bo', 'ada'], n: 3 } },
  )
  t.strictSame(typesOf(scene), [
    'run.created',
    'run.started',
    'step.started',
    'interaction.requested',
    'step.suspended',
    'wait.opened',
    'run.suspended',
  ])
  const expires_at = new Date(START + 3_600_000).toISOString()
  t.strictSame(scene.tells, [
    {
      to: { kind: 'interaction', id: 'iact_1' },
      name: 'interaction.open',
      input: {
        kind: 'request_approval',
        title: 'Ship it?',
        target_user_ids: ['ada', 'bo', 'role:Editor'],
        resolution_policy: { type: 'quorum', threshold: 2 },
        spec: { mode: 'confirm' },
        context: { n: 3 },
        expires_at,
        run_id: 'run_1',
        signal_name: 'interaction.q',
        step: 'q',
        depth: 1,
      },
    },
  ])
  t.match(payload(scene, 'interaction.requested'), {
    step: 'q',
    interaction_id: 'iact_1',
    protocol: 'request_approval',
    targets: ['ada', 'bo', 'role:Editor'],
  })
  t.match(payload(scene, 'run.suspended'), { wait_kind: 'interaction', interaction_id: 'iact_1' })
  t.match(step(scene, 'q'), {
    status: 'suspended',
    waiting_on: { kind: 'interaction', interaction_id: 'iact_1', until: expires_at },
  })
})

t.test('answers appear on the timeline, and the outcome is the output', async (t) => {
  const one = started([ask(), sleep('n', '0s')]).when('interaction.responded', {
    interaction_id: 'iact_1',
    response_id: 'iresp_1',
    response: true,
    responder: { user_id: 'ada' },
  })
  t.strictSame(typesOf(one), ['interaction.responded'])
  t.match(payload(one, 'interaction.responded'), {
    step: 'q',
    interaction_id: 'iact_1',
    response: true,
    responder: { user_id: 'ada' },
  })
  const done = one.when('interaction.settled', settled({ comment: 'fine' }))
  t.strictSame(typesOf(done), [
    'wait.resumed',
    'step.resumed',
    'step.completed',
    'run.resumed',
    'step.started',
    'step.completed',
    'run.completed',
  ])
  t.strictSame(record(done).result, {
    q: {
      interaction_id: 'iact_1',
      status: 'completed',
      value: true,
      responder: { user_id: 'ada' },
      comment: 'fine',
    },
    n: {},
  })
  t.strictSame(done.when('interaction.settled', settled()).events, [], 'a repeat')
  t.strictSame(
    one.when('interaction.settled', settled({ interaction_id: 'iact_9' })).events,
    [],
    'another interaction',
  )
})

t.test('an expired question fails the step by default; a cancelled one does not', async (t) => {
  const end = (config: Record<string, unknown>, status: string, more: Partial<Step> = {}) =>
    started([ask(config, more)]).when('interaction.settled', {
      interaction_id: 'iact_1',
      signal_name: 'x',
      status,
      reason: 'moot',
    })
  t.strictSame(typesOf(end({}, 'expired')), [
    'wait.timed_out',
    'step.resumed',
    'step.failed',
    'run.failed',
  ])
  t.match(record(end({}, 'expired')), { status: 'failed', error_type: 'interaction_expired' })
  t.match(record(end({ on_expiry: 'continue' }, 'expired')).result, {
    q: { interaction_id: 'iact_1', status: 'expired' },
  })
  t.strictSame(record(end({}, 'cancelled')).result, { q: { status: 'cancelled', reason: 'moot' } })
  t.match(record(end({ on_cancel: 'fail' }, 'cancelled')), {
    status: 'failed',
    error_type: 'interaction_cancelled',
    error_message: /moot/,
  })
  const again = end({}, 'expired', { retry: { max_attempts: 2 } })
  t.match(
    again.tells,
    [{ to: { id: 'iact_2' }, name: 'interaction.open' }],
    'a retry opens a new interaction',
  )
})

t.test('templates can name reviewers', async (t) => {
  const review = (reviewers: string[]) => ({
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: reviewers } },
  })
  t.match(
    started(
      [ask(review(['${{ input.boss }}', 'rita', '${{ input.boss }}']))],
      {},
      { input: { boss: 'bea' } },
    ).tells,
    [
      {
        input: {
          resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['bea', 'rita'] } },
        },
      },
    ],
  )
  t.match(record(started([ask(review(['${{ input.boss }}']))])), {
    error_type: 'interaction_invalid',
    error_message: /reviewer_user_ids/,
  })
})

t.test('an invalid question fails the step', async (t) => {
  t.match(record(started([ask({ targets: ['${{ input.nobody }}'] })])), {
    status: 'failed',
    error_type: 'interaction_invalid',
  })
  t.match(
    record(
      started(
        [
          ask({
            resolution_policy: { type: 'quorum', threshold: 2 },
            targets: ['${{ input.p }}', 'x'],
          }),
        ],
        {},
        { input: { p: 'x' } },
      ),
    ),
    { error_type: 'interaction_invalid', error_message: /only 1 target/ },
  )
  t.match(
    record(started([ask({ expires_at: '2020-01-01T00:00:00.000Z', on_expiry: 'continue' })])),
    { status: 'completed', result: { q: { status: 'expired' } } },
  )
  t.match(record(started([ask({ prompt: '${{ input.a - 1 }}' })], {}, { input: { a: [] } })), {
    error_type: 'expression_error',
  })
})

t.test('a wait that ends in another way withdraws the question', async (t) => {
  const withdrawn = [{ to: { kind: 'interaction', id: 'iact_1' }, name: 'interaction.withdraw' }]
  const waiting = started([ask()])
  t.match(waiting.when('run.cancel', { reason: 'no' }).tells, [
    { ...withdrawn[0], input: { reason: 'no' } },
  ])
  t.match(waiting.when('run.resume').tells, withdrawn)
  t.match(waiting.when('run.signal', { step_key: 'q', result: { by: 'hand' } }).tells, withdrawn)
  const timed = started([ask({}, { timeout: { duration: '1m' } })])
  t.equal(timed.deadline(), START + 60_000)
  const over = timed.when('wake', {}, { at: START + 60_000 })
  t.match([over.tells, record(over).error_type], [withdrawn, 'timeout'])
  const walled = started([ask()], { limits: { wall_clock_timeout: '1m' } }).when(
    'wake',
    {},
    { at: START + 60_000 },
  )
  t.match([walled.tells, record(walled).error_type], [withdrawn, 'wall_clock_exceeded'])
})

t.test('a question of a resumed run is cancelled', async (t) => {
  const resumed = started([ask()]).when('run.resume', { reason: 'no time' })
  t.strictSame(record(resumed).result, { q: { status: 'cancelled', reason: 'no time' } })
  const silent = started([ask({ on_cancel: 'fail' })]).when('run.resume', {})
  t.strictSame(record(silent).result, {
    q: { status: 'cancelled', reason: 'the run was resumed without an answer' },
  })
})

t.test('only a principal that could answer the gate of a check passes it by hand', async (t) => {
  const check: Step = {
    id: 'c',
    kind: 'check',
    config: {
      checks: [{ name: 'never', kind: 'expr', expr: 'false' }],
      on_fail: 'gate',
      gate: { targets: ['ada', 'role:Lead'] },
    },
  }
  const by = (id: string) => ({ principal: { type: 'user' as const, id } })
  const signal = { step_key: 'c', result: { by: 'hand' } }
  const gate = started([check])
  for (const [name, input] of [
    ['run.resume', {}],
    ['run.recover', {}],
    ['run.signal', signal],
  ] as const) {
    t.match(
      gate.when(name, { ...input, responds: { roles: ['Operator'] } }, by('bo')).refused,
      { refused: 'forbidden', message: 'Only targets of the interaction can answer it.' },
      name,
    )
    const capped = { refused: 'permission_denied', details: { permission: 'x' } }
    t.match(gate.when(name, { ...input, responds: capped }, by('ada')).refused, capped, name)
    const passed = gate.when(name, { ...input, responds: { roles: ['Lead'] } }, by('bo'))
    t.match(passed.tells, [{ to: { id: 'iact_1' }, name: 'interaction.withdraw' }])
    t.match(payload(passed, 'wait.resumed'), { overridden_by: 'bo' }, name)
    t.match(step(passed, 'c'), {
      status: 'completed',
      verdict: 'fail',
      verdict_detail: {
        failed: ['never'],
        overridden_by: 'bo',
        gate: { interaction_id: 'iact_1', status: 'cancelled' },
      },
    })
  }
  const resumed = gate.when('run.resume', { reason: 'urgent' }, by('ada'))
  t.match(record(resumed).result, {
    c: { verdict: 'fail', overridden_by: 'ada', gate: { reason: 'urgent' } },
  })
  t.strictSame(record(gate.when('run.signal', signal, by('ada'))).result, { c: { by: 'hand' } })
  t.match(record(gate.when('run.signal', { step_key: 'c' }, by('ada'))).result, {
    c: { overridden_by: 'ada' },
  })
  const inBranch = started([
    { id: 'p', kind: 'parallel', config: { branches: [{ id: 'b', steps: [check as never] }] } },
  ])
  const inside = { ...signal, step_key: 'p.b.c' }
  t.equal(inBranch.when('run.signal', inside, by('bo')).refused?.refused, 'forbidden')
  t.match(record(inBranch.when('run.signal', inside, by('ada'))), { status: 'completed' })
})

t.test('interactions that clients open for a run end as signals to it', async (t) => {
  const opened = (id: string) => ({
    interaction_id: id,
    protocol: 'request_approval',
    targets: ['ada'],
    title: 'Go?',
  })
  const scene = started([wait('w', 'done')]).when('interaction.opened', opened('iact_7'))
  t.match(payload(scene, 'interaction.requested'), {
    interaction_id: 'iact_7',
    protocol: 'request_approval',
    targets: ['ada'],
  })
  t.strictSame(
    typesOf(
      scene.when('interaction.responded', {
        interaction_id: 'iact_7',
        response: 1,
        responder: { user_id: 'ada' },
      }),
    ),
    ['interaction.responded'],
  )
  const done = scene.when(
    'interaction.settled',
    settled({ interaction_id: 'iact_7', signal_name: 'done' }),
  )
  t.strictSame(typesOf(done), [
    'interaction.settled',
    'wait.resumed',
    'step.resumed',
    'step.completed',
    'run.resumed',
    'run.completed',
  ])
  t.match(record(done).result, {
    w: {
      event: { payload: { interaction_id: 'iact_7', status: 'completed', value: true } },
      meta: { signal_name: 'done' },
    },
  })
  const early = started([action('a'), wait('w', 'done')])
    .when('interaction.opened', opened('iact_7'))
    .when('interaction.settled', settled({ interaction_id: 'iact_7', signal_name: 'done' }))
  t.match(early.state.signals, [{ name: 'done' }], 'a step may wait for it later')
  t.strictSame(
    early.when('interaction.settled', settled({ interaction_id: 'iact_7', signal_name: 'done' }))
      .events,
    [],
  )
  t.match(scene.when('run.cancel').tells, [{ to: { id: 'iact_7' }, name: 'interaction.withdraw' }])
  t.match(
    done.when('interaction.opened', opened('iact_8')),
    { events: [], tells: [{ to: { id: 'iact_8' }, name: 'interaction.withdraw' }] },
    'too late',
  )
  const failed = started([action('a'), wait('w', 'done')])
    .when('interaction.opened', opened('iact_7'))
    .when('job.settled', {
      job_id: 'job_1',
      outcome: 'failed',
      attempt: 1,
      error_type: 'x',
      error_message: 'x',
    })
  t.match(record(failed), { status: 'failed' })
  const answered = failed.when(
    'interaction.settled',
    settled({ interaction_id: 'iact_7', signal_name: 'done' }),
  )
  t.strictSame(typesOf(answered), ['interaction.settled'], 'a run that has failed may be retried')
  const retried = answered.when('run.retry')
  const [job_id] = retried.tells.flatMap(({ name, input }) =>
    name === 'queue.enqueue' ? [(input as { job: { id: string } }).job.id] : [],
  )
  t.match(
    record(retried.when('job.settled', { job_id, outcome: 'completed', attempt: 1, result: {} })),
    { status: 'completed' },
    'and then uses the answer that arrived meanwhile',
  )
  const left = started([action('a')])
    .when('interaction.opened', opened('iact_7'))
    .when('job.settled', { job_id: 'job_1', outcome: 'completed', attempt: 1, result: {} })
  t.match(
    [record(left).status, left.tells],
    ['completed', [{ to: { id: 'iact_7' }, name: 'interaction.withdraw' }]],
    'an ended run withdraws its questions',
  )
  let full = started([wait('w')])
  for (let n = 0; n < MAX_ASKED; n++) full = full.when('interaction.opened', opened(`iact_${n}`))
  t.match(full.when('interaction.opened', opened('iact_x')), {
    events: [],
    tells: [{ name: 'interaction.withdraw' }],
  })
})
