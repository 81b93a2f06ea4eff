/**
 * Interactions over HTTP: kinds, answers, policies, reviews, lists, and the runs and steps that
 * wait for them.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import {
  ended,
  fieldsOf,
  ids,
  idsOf,
  listOf,
  pages,
  timelineOf,
  until,
  waiting,
} from '../support/given.ts'
import { as, people, person } from '../support/people.ts'

const s = await service()
t.teardown(() => s.stop())
const [ada, bo, cleo] = (await people(s, 'ada', 'bo', 'cleo')) as [
  Awaited<ReturnType<typeof person>>,
  Awaited<ReturnType<typeof person>>,
  Awaited<ReturnType<typeof person>>,
]
const ask = (more: Record<string, unknown> = {}) =>
  s.ok('interaction.create', {
    kind: 'request_approval',
    title: 'Deploy?',
    target_user_ids: [ada.id],
    ...more,
  })
const answer = (id: unknown, value: unknown, who = ada, more: Record<string, unknown> = {}) =>
  s.ok('interaction.respond', { id, value, ...more }, as(who))

t.test('the first answer to an approval determines its outcome', async (t) => {
  const made = await ask({
    description: 'Build 88',
    spec: { mode: 'confirm', default_confirmed: true },
    target_user_ids: [ada.id, bo.id],
    tags: { team: 'web' },
    context: { build: 88 },
  })
  t.match(made, {
    id: /^iact_/,
    kind: 'request_approval',
    status: 'pending',
    title: 'Deploy?',
    target_user_ids: [ada.id, bo.id],
    resolution_policy: { type: 'any_of' },
    consumer: { kind: 'none' },
    responses: [],
    created_by: /^\w+_/,
    lifecycle: [{ status: 'pending', action: 'created' }],
  })
  const done = await answer(made['id'], true, bo, { comment: 'looks fine' })
  t.match(done, {
    status: 'completed',
    outcome: true,
    responder: { user_id: bo.id },
    resolved_by: 'any_of',
    completed_at: /Z$/,
    resolving_response_id: listOf(done, 'responses')[0]?.['id'],
    responses: [
      {
        id: /^iresp_/,
        interaction_id: made['id'],
        response_kind: 'response',
        state: 'submitted',
        responder_user_id: bo.id,
        value: true,
        comment: 'looks fine',
      },
    ],
    lifecycle: [
      { action: 'created' },
      { action: 'resolved', status: 'completed', actor_id: bo.id },
    ],
  })
  t.strictSame(await s.ok('interaction.get', { id: made['id'] }), done)
  t.match(
    (
      await s.refused(
        'interaction.respond',
        { id: made['id'], value: false },
        409,
        'conflict',
        as(ada),
      )
    ).details,
    { status: 'completed' },
  )
  t.match(await s.ok('interaction.get', { id: made['id'] }), { outcome: true, responses: [{}] })
})

t.test('an invalid question is rejected with the field', async (t) => {
  const bad = async (body: Record<string, unknown>) =>
    fieldsOf(
      await s.refused(
        'interaction.create',
        { kind: 'request_approval', title: 'x', target_user_ids: [ada.id], ...body },
        400,
        'bad_request',
      ),
    )
  t.strictSame(await bad({ title: undefined }), ['title'])
  t.strictSame(await bad({ title: '' }), ['title'])
  t.strictSame(await bad({ target_user_ids: [] }), ['target_user_ids'])
  t.strictSame(await bad({ target_user_ids: [ada.id, 'svc_nobody'] }), ['target_user_ids[1]'])
  t.strictSame(await bad({ target_user_ids: ['role:Nobody'] }), ['target_user_ids[0]'])
  t.strictSame(await bad({ target_user_ids: undefined, target: { group_id: 'g' } }), [
    'target.group_id',
    'target_user_ids',
  ])
  t.strictSame(await bad({ spec: { mode: 'multi_select', options: [] } }), ['spec.mode'])
  t.strictSame(await bad({ spec: { mode: 'select' } }), ['spec.options'])
  t.strictSame(
    await bad({
      spec: { mode: 'select', options: [{ value: 'a', label: 'A' }], default_value: 'b' },
    }),
    ['spec.default_value'],
  )
  t.strictSame(await bad({ spec: { mode: 'confirm', default_text: 'x' } }), ['spec.default_text'])
  t.strictSame(await bad({ resolution_policy: { type: 'quorum' } }), [
    'resolution_policy.threshold',
  ])
  t.strictSame(await bad({ resolution_policy: { type: 'quorum', threshold: 2 } }), [
    'resolution_policy.threshold',
  ])
  t.strictSame(
    await bad({ resolution_policy: { type: 'all_of' }, target_user_ids: ['role:Operator'] }),
    ['target_user_ids[0]'],
  )
  t.strictSame(
    await bad({
      resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['svc_nobody'] } },
    }),
    ['resolution_policy.review.reviewer_user_ids[0]'],
  )
  const reviewed = (reviewer_user_ids: unknown[], more: object = {}) => ({
    resolution_policy: { type: 'any_of', ...more, review: { reviewer_user_ids } },
  })
  t.strictSame(
    await bad(reviewed([ada.id])),
    ['resolution_policy.review.reviewer_user_ids'],
    'no other principal could review',
  )
  for (const policy of [{ type: 'all_of' }, { type: 'quorum', threshold: 2 }])
    t.strictSame(await bad({ ...reviewed([bo.id], policy), target_user_ids: [ada.id, bo.id] }), [
      'resolution_policy.review.reviewer_user_ids',
    ])
  for (const more of [
    { ...reviewed([ada.id]), target_user_ids: [ada.id, bo.id] },
    reviewed([ada.id, bo.id]),
    { ...reviewed([bo.id], { type: 'quorum', threshold: 1 }), target_user_ids: [bo.id, cleo.id] },
  ])
    await ask(more)
  t.strictSame(await bad(reviewed(['role:Nobody'])), [
    'resolution_policy.review.reviewer_user_ids[0]',
  ])
  t.strictSame(await bad({ resolution_policy: 'all_of', require_all: true }), ['require_all'])
  t.strictSame(await bad({ expires_at: '2020-01-01T00:00:00.000Z' }), ['expires_at'])
  t.strictSame(await bad({ run_id: 'run_x' }), ['signal_name'])
  t.strictSame(await bad({ consumer: 'run' }), ['run_id'])
  t.strictSame(await bad({ subject: { kind: 'external_url' } }), ['subject.url'])
  await s.refused(
    'interaction.create',
    {
      kind: 'request_approval',
      title: 'x',
      target_user_ids: [ada.id],
      run_id: 'run_00000000000000000000000000',
      signal_name: 'go',
    },
    404,
    'not_found',
  )
})

t.test(
  'null means absent for optional members, and is kept as a value in open objects',
  async (t) => {
    const plain = await ask({ context: { a: null, b: [null] } })
    t.strictSame(plain['context'], { a: null, b: [null] })
    const nothing = {
      description: null,
      context: null,
      properties: null,
      subject: null,
      delivery: null,
      expires_at: null,
      run_id: null,
      signal_name: null,
      resolution_policy: null,
      consumer: null,
    }
    t.strictSame(Object.keys(await ask(nothing)).sort(), Object.keys(await ask()).sort())
    const inner = await ask({
      resolution_policy: { type: 'any_of', review: null },
      consumer: { kind: 'none', run: null, agent_tool: null, http_subscriber: null },
    })
    t.strictSame(
      [inner['resolution_policy'], inner['consumer'], inner['review_round']],
      [{ type: 'any_of' }, { kind: 'none' }, undefined],
    )
    t.strictSame(
      fieldsOf(
        await s.refused(
          'interaction.create',
          {
            kind: 'request_approval',
            title: null,
            target_user_ids: [ada.id],
            tags: null,
            description: 1,
            consumer: { kind: 'run', run: { run_id: 1 } },
          },
          400,
          'bad_request',
        ),
      ).sort(),
      ['consumer.run.run_id', 'consumer.run.signal_name', 'description', 'tags', 'title'],
    )
  },
)

t.test(
  'principals with a reviewing role find the interaction in their inbox and review it',
  async (t) => {
    const rita = await person(s, 'rita', 'role_admin')
    const { id } = await ask({
      resolution_policy: { type: 'any_of', review: { reviewer_user_ids: ['role:Admin'] } },
    })
    t.match(await answer(id, true), { status: 'in_review' })
    t.ok(
      idsOf(
        await s.ok('interaction.list', { inbox: true, status: 'in_review' }, as(rita)),
      ).includes(String(id)),
    )
    await s.refused('interaction.review', { id, action: 'accept' }, 403, 'forbidden', as(bo))
    t.match(await s.ok('interaction.review', { id, action: 'accept' }, as(rita)), {
      status: 'completed',
      reviewer: { user_id: rita.id },
    })
  },
)

t.test('earlier forms of a request have the same effect', async (t) => {
  const made = await s.ok('interaction.create', {
    kind: 'assign_work',
    message: 'Old',
    target: { user_ids: [ada.id, bo.id] },
    require_all: true,
    consumer: 'none',
  })
  t.match(made, {
    title: 'Old',
    target_user_ids: [ada.id, bo.id],
    resolution_policy: { type: 'all_of' },
    require_all: true,
    consumer: { kind: 'none' },
  })
  t.match(await s.ok('interaction.cancellations', { id: made['id'], reason: 'enough' }), {
    status: 'cancelled',
    cancel_reason: 'enough',
  })
})

t.test('answers are validated by mode, and only targets may answer', async (t) => {
  const options = ['red', 'blue'].map((value) => ({ value, label: value.toUpperCase() }))
  const cases = [
    ['request_approval', { mode: 'confirm' }, [false], ['yes', 1, null]],
    ['request_review', { mode: 'select', options }, ['blue'], ['BLUE', true, ['blue']]],
    [
      'request_information',
      { mode: 'multi_select', options },
      [['blue', 'red']],
      [['blue', 'blue'], ['green'], 'blue'],
    ],
    ['request_information', { mode: 'input' }, ['so'], [3, {}]],
    ['request_information', undefined, [{ any: [1, null] }], []],
  ] as const
  for (const [kind, spec, good, wrong] of cases)
    for (const value of good) {
      const { id } = await ask({ kind, ...(spec && { spec }) })
      for (const odd of wrong)
        t.match(
          fieldsOf(
            await s.refused('interaction.respond', { id, value: odd }, 400, 'bad_request', as(ada)),
          )[0],
          /^value/,
        )
      await s.refused('interaction.respond', { id, value }, 403, 'forbidden', as(bo))
      t.strictSame((await answer(id, value))['outcome'], value)
    }
  const { id } = await ask()
  t.strictSame(
    fieldsOf(await s.refused('interaction.respond', { id }, 400, 'bad_request', as(ada))),
    ['value'],
  )
  const viewer = await person(s, 'watcher', 'role_viewer')
  await s.refused('interaction.respond', { id, value: true }, 403, 'forbidden', as(viewer))
})

t.test('a target may answer with any role, but not with a restricted key', async (t) => {
  const [viewer, idle, reviewer] = await Promise.all([
    person(s, 'viewer', 'role_viewer'),
    person(s, 'idle', 'role_viewer'),
    person(s, 'reviewer', 'role_viewer'),
  ])
  const capped = async (of: { id: string }, scope_role_id: string) => ({
    key: String(
      (
        await s.ok('key.create', {
          name: `${of.id} ${scope_role_id}`,
          principal_id: of.id,
          scope_role_id,
        })
      )['key'],
    ),
  })
  const made = await ask({
    kind: 'request_review',
    spec: { mode: 'input' },
    target_user_ids: [viewer.id],
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [reviewer.id] } },
  })
  const { id } = made
  await s.refused('interaction.respond', { id, value: 'x' }, 403, 'forbidden', as(idle))
  t.match(
    (
      await s.refused(
        'interaction.respond',
        { id, value: 'x' },
        403,
        'permission_denied',
        await capped(viewer, 'role_viewer'),
      )
    ).details,
    { permission: 'service.interaction.respond' },
  )
  t.match(await s.ok('interaction.get', { id }), { status: 'pending', responses: [] })
  t.match(await answer(id, 'x', viewer), {
    status: 'in_review',
    responses: [{ responder_user_id: viewer.id }],
  })
  await s.refused('interaction.review', { id, action: 'accept' }, 403, 'forbidden', as(idle))
  await s.refused(
    'interaction.review',
    { id, action: 'accept' },
    403,
    'permission_denied',
    await capped(reviewer, 'role_viewer'),
  )
  t.match(await s.ok('interaction.review', { id, action: 'accept' }, as(reviewer)), {
    status: 'completed',
    outcome: 'x',
  })
  t.match(
    await s.ok(
      'interaction.respond',
      { id: (await ask())['id'], value: true },
      await capped(ada, 'role_operator'),
    ),
    { status: 'completed' },
  )
})

t.test('all_of and quorum count distinct principals', async (t) => {
  const all = await ask({
    target_user_ids: [ada.id, bo.id],
    resolution_policy: 'all_of',
    spec: { mode: 'confirm' },
  })
  t.match(await answer(all['id'], true), { status: 'pending', responses: [{}] })
  t.match(
    await answer(all['id'], true),
    { status: 'pending', responses: [{}] },
    'a repeated answer counts once',
  )
  await s.refused('interaction.respond', { id: all['id'], value: false }, 409, 'conflict', as(ada))
  t.match(await answer(all['id'], false, bo), {
    status: 'completed',
    outcome: false,
    resolved_by: 'all_of',
  })
  const quorum = await ask({
    kind: 'request_information',
    target_user_ids: [ada.id, bo.id, cleo.id],
    resolution_policy: { type: 'quorum', threshold: 2 },
  })
  await answer(quorum['id'], 'x', cleo)
  t.match(await answer(quorum['id'], 'y', ada), {
    status: 'completed',
    resolved_by: 'quorum',
    outcome: [
      { responder_user_id: cleo.id, value: 'x' },
      { responder_user_id: ada.id, value: 'y' },
    ],
  })
  await s.refused('interaction.respond', { id: quorum['id'], value: 'z' }, 409, 'conflict', as(bo))
})

t.test('a target role means the principals that hold it at the time of the answer', async (t) => {
  const eve = await person(s, 'eve', 'role_editor')
  const { id } = await ask({
    target_user_ids: ['role:Editor'],
    resolution_policy: { type: 'quorum', threshold: 1 },
    spec: { mode: 'confirm' },
  })
  t.ok(idsOf(await s.ok('interaction.list', { inbox: true }, as(eve))).includes(String(id)))
  await s.refused('interaction.respond', { id, value: true }, 403, 'forbidden', as(ada))
  t.match(await answer(id, true, eve), { status: 'completed', outcome: true })
})

t.test('a review accepts a submission or requests another round', async (t) => {
  const { id } = await ask({
    kind: 'request_review',
    spec: { mode: 'input' },
    resolution_policy: { type: 'any_of', review: { reviewer_user_ids: [bo.id, ada.id] } },
  })
  t.match(await answer(id, 'draft'), {
    status: 'in_review',
    submitted_at: /Z$/,
    responder: { user_id: ada.id },
    review_round: 1,
  })
  await s.refused('interaction.respond', { id, value: 'late' }, 409, 'conflict', as(ada))
  await s.refused('interaction.review', { id, action: 'accept' }, 403, 'forbidden', as(cleo))
  await s.refused('interaction.review', { id, action: 'accept' }, 403, 'forbidden', as(ada))
  t.strictSame(
    fieldsOf(
      await s.refused(
        'interaction.review',
        { id, action: 'request_changes' },
        400,
        'bad_request',
        as(bo),
      ),
    ),
    ['comment'],
  )
  t.match(
    await s.ok('interaction.review', { id, action: 'request_changes', comment: 'shorter' }, as(bo)),
    {
      status: 'pending',
      review_round: 2,
      review_feedback: 'shorter',
      reviewer: { user_id: bo.id },
      responses: [{ value: 'draft' }],
    },
  )
  await s.refused('interaction.review', { id, action: 'accept' }, 409, 'conflict', as(bo))
  t.match(await answer(id, 'final'), {
    status: 'in_review',
    responses: [{ value: 'draft' }, { value: 'final', attempt: 2 }],
  })
  const done = await s.ok('interaction.review', { id, action: 'accept', comment: 'good' }, as(bo))
  t.match(done, {
    status: 'completed',
    outcome: 'final',
    resolved_by: 'review_accept',
    reviewer: { user_id: bo.id },
    responder: { user_id: ada.id },
  })
  t.strictSame(
    listOf(done, 'lifecycle').map(({ action }) => action),
    ['created', 'submitted_for_review', 'changes_requested', 'submitted_for_review', 'accepted'],
  )
})

t.test('interactions are cancelled and deleted, and closed ones reject changes', async (t) => {
  const one = await ask()
  await s.refused('interaction.delete', { id: one['id'] }, 400, 'bad_request')
  t.match(await s.ok('interaction.cancel', { id: one['id'] }), { status: 'cancelled' })
  t.match(
    await s.ok('interaction.cancel', { id: one['id'] }),
    { status: 'cancelled' },
    'a repeated cancellation succeeds',
  )
  await s.refused('interaction.respond', { id: one['id'], value: true }, 409, 'conflict', as(ada))
  const two = await ask()
  await answer(two['id'], true)
  await s.refused('interaction.cancel', { id: two['id'] }, 409, 'conflict')
  await s.ok('interaction.delete', { id: two['id'] })
  await s.refused('interaction.get', { id: two['id'] }, 404, 'not_found')
  await s.refused('interaction.delete', { id: two['id'] }, 404, 'not_found')
  t.notOk(idsOf(await s.ok('interaction.list', { limit: 200 })).includes(String(two['id'])))
  for (const name of [
    'interaction.respond',
    'interaction.review',
    'interaction.cancel',
    'interaction.link',
  ] as const) {
    await s.refused(
      name,
      {
        id: two['id'],
        ...(name === 'interaction.respond' && { value: 1 }),
        ...(name === 'interaction.review' && { action: 'accept' }),
      },
      404,
      'not_found',
    )
  }
})

t.test('an interaction expires on time', async (t) => {
  const { id } = await ask({ expires_at: new Date(Date.now() + 300).toISOString() })
  const over = await until(
    () => s.ok('interaction.get', { id }),
    ({ status }) => status !== 'pending',
  )
  t.match(over, {
    status: 'expired',
    lifecycle: [{ action: 'created' }, { action: 'expired', status: 'expired' }],
  })
  await s.refused('interaction.respond', { id, value: true }, 409, 'conflict', as(ada))
})

t.test('lists support every filter and are read to the end in pages', async (t) => {
  const [fay, gus] = await people(s, 'fay', 'gus')
  const run = await s.ok('run.start', { spec: waiting() })
  const made: string[] = []
  for (const n of [0, 1, 2, 3, 4]) {
    const consumer =
      n === 4
        ? {
            kind: 'agent_tool',
            agent_tool: { invocation_id: 'turn_1', tool_call_id: 'call_1', session_id: 'ses_1' },
          }
        : undefined
    made.unshift(
      String(
        (
          await ask({
            kind: n % 2 ? 'request_information' : 'request_approval',
            target_user_ids: n < 3 ? [fay?.id] : [fay?.id, gus?.id],
            ...(n === 2 && { run_id: run['id'], signal_name: 'answered' }),
            ...(consumer && { consumer }),
          })
        )['id'],
      ),
    )
  }
  const [four, three, two, one, zero] = made
  await s.ok('interaction.cancel', { id: zero })
  const list = (filter: Record<string, unknown>, options = {}) =>
    s.ok('interaction.list', { target_user_id: fay?.id, ...filter }, options).then(idsOf)
  t.strictSame(ids(await pages(s, 'interaction.list', { target_user_id: fay?.id })), made)
  t.strictSame(await list({ status: 'pending' }), [four, three, two, one])
  t.strictSame(await list({ status: 'pending,cancelled', kind: 'request_approval' }), [
    four,
    two,
    zero,
  ])
  t.strictSame(await list({ kind: ['request_information', 'assign_work'] }), [three, one])
  t.strictSame(idsOf(await s.ok('interaction.list', { run_id: run['id'] })), [two])
  t.strictSame(
    idsOf(await s.ok('interaction.list', { run_id: run['id'], status: 'cancelled' })),
    [],
  )
  t.strictSame(idsOf(await s.ok('interaction.list', { session_id: 'ses_1' })), [four])
  t.strictSame(idsOf(await s.ok('interaction.list', { target_user_id: gus?.id })), [four, three])
  t.strictSame(idsOf(await s.ok('interaction.list', { inbox: true }, as(gus as typeof ada))), [
    four,
    three,
  ])
  t.strictSame(await list({ inbox: true, status: 'pending' }, as(gus as typeof ada)), [four, three])
  t.strictSame(
    ids(await pages(s, 'interaction.list', { inbox: true }, 2, as(fay as typeof ada))),
    made,
  )
  t.strictSame(
    ids(
      await pages(s, 'interaction.list', {
        status: ['pending', 'cancelled', 'completed', 'expired', 'in_review'],
      }),
    ),
    ids(await pages(s, 'interaction.list')),
  )
  t.strictSame(
    fieldsOf(await s.refused('interaction.list', { status: 'odd' }, 400, 'bad_request')),
    ['status[0]'],
  )
})

t.test('a target role must exist under exactly that name or id', async (t) => {
  for (const name of ['operator', 'ADMIN', 'Nobody'])
    t.strictSame(
      fieldsOf(
        await s.refused(
          'interaction.create',
          { kind: 'assign_work', title: 'x', target_user_ids: [`role:${name}`] },
          400,
          'bad_request',
        ),
      ),
      ['target_user_ids[0]'],
      name,
    )
  for (const name of ['Operator', 'role_operator']) {
    const { id } = await s.ok('interaction.create', {
      kind: 'assign_work',
      title: 'x',
      target_user_ids: [`role:${name}`],
    })
    t.match(await s.ok('interaction.cancel', { id }), { status: 'cancelled' }, name)
  }
})

t.test('an interaction that a client creates for a run signals the run', async (t) => {
  const { id } = await s.ok('run.start', { spec: waiting('answered') })
  const made = await ask({ run_id: id, signal_name: 'answered' })
  t.match(made, {
    run_id: id,
    signal_name: 'answered',
    consumer: { kind: 'run', run: { run_id: id, signal_name: 'answered' } },
  })
  await answer(made['id'], true)
  t.match(await ended(s, id), {
    status: 'completed',
    result: {
      gate: {
        event: {
          payload: {
            interaction_id: made['id'],
            status: 'completed',
            value: true,
            responder: { user_id: ada.id },
          },
        },
      },
    },
  })
  t.ok((await timelineOf(s, id)).includes('interaction.responded'))
  t.strictSame(
    fieldsOf(
      await s.refused(
        'interaction.create',
        {
          kind: 'request_approval',
          title: 'x',
          target_user_ids: [ada.id],
          run_id: id,
          signal_name: 'answered',
        },
        400,
        'bad_request',
      ),
    ),
    ['run_id'],
  )
  const other = await s.ok('run.start', { spec: waiting('answered') })
  const open = await ask({ run_id: other['id'], signal_name: 'answered' })
  await s.ok('run.cancel', { id: other['id'], reason: 'no need' })
  t.match(await s.ok('interaction.get', { id: open['id'] }), {
    status: 'cancelled',
    cancel_reason: 'no need',
  })
})

t.test('an interaction step waits for an answer, which is its output', async (t) => {
  const spec = {
    steps: [
      {
        id: 'ok',
        kind: 'interaction',
        config: {
          protocol: 'request_approval',
          targets: ['${{ input.who }}', bo.id],
          prompt: 'Ship ${{ input.what }}?',
          resolution_policy: 'all_of',
          spec: { mode: 'confirm' },
          expires_in: '1h',
        },
      },
      { id: 'nap', kind: 'sleep', if: 'steps.ok.output.value', config: { duration: '0' } },
    ],
  }
  const { id } = await s.ok('run.start', { spec, input: { who: ada.id, what: 'it' } })
  const [step] = listOf(await s.ok('run.steps', { id, include: ['waiting_on'] }))
  t.match(step, {
    status: 'suspended',
    waiting_on: { kind: 'interaction', interaction_id: /^iact_/, until: /Z$/ },
  })
  const [made] = listOf(await s.ok('interaction.list', { run_id: id }))
  t.match(made, {
    title: 'Ship it?',
    target_user_ids: [ada.id, bo.id],
    consumer: { kind: 'run' },
    run_id: id,
    expires_at: /Z$/,
  })
  await answer(made?.['id'], true)
  await answer(made?.['id'], true, bo)
  t.match(await ended(s, id), {
    status: 'completed',
    result: {
      ok: {
        interaction_id: made?.['id'],
        status: 'completed',
        value: true,
        responder: { user_id: bo.id },
      },
      nap: {},
    },
  })
  t.strictSame(
    (await timelineOf(s, id)).filter((type) => !type.startsWith('run.')),
    [
      'step.started',
      'interaction.requested',
      'step.suspended',
      'wait.opened',
      'interaction.responded',
      'interaction.responded',
      'wait.resumed',
      'step.resumed',
      'step.completed',
      'step.started',
      'step.completed',
    ],
  )
  const log = listOf(
    await s.ok('audit.list', { resource_type: 'interaction', resource_id: made?.['id'] }),
  )
  t.match(
    log.map(({ action, actor_id, credential_type, changes }) => [
      action,
      actor_id,
      credential_type,
      changes,
    ]),
    [
      [
        'update',
        bo.id,
        'api_key',
        {
          response: { to: { value: true } },
          status: { from: 'pending', to: 'completed' },
          outcome: { to: true },
        },
      ],
      ['update', ada.id, 'api_key', { response: { to: { value: true } } }],
      ['create', /./, /./, undefined],
    ],
  )
})

t.test(
  'a cancelled run cancels its question; an expired question fails or continues the step',
  async (t) => {
    const asking = (config: Record<string, unknown>) => ({
      steps: [
        {
          id: 'q',
          kind: 'interaction',
          config: { protocol: 'request_approval', targets: [ada.id], ...config },
        },
      ],
    })
    const one = await s.ok('run.start', { spec: asking({}) })
    const [open] = listOf(await s.ok('interaction.list', { run_id: one['id'] }))
    await s.ok('run.cancel', { id: one['id'] })
    t.match(await s.ok('interaction.get', { id: open?.['id'] }), { status: 'cancelled' })
    const two = await s.ok('run.start', { spec: asking({ expires_in: '200ms' }) })
    t.match(await ended(s, two['id']), { status: 'failed', error_type: 'interaction_expired' })
    const three = await s.ok('run.start', {
      spec: asking({ expires_in: '200ms', on_expiry: 'continue' }),
    })
    t.match(await ended(s, three['id']), {
      status: 'completed',
      result: { q: { status: 'expired', interaction_id: /^iact_/ } },
    })
    const four = await s.ok('run.start', { spec: asking({}) })
    await s.ok('interaction.cancel', {
      id: listOf(await s.ok('interaction.list', { run_id: four['id'] }))[0]?.['id'],
      reason: 'moot',
    })
    t.match(await ended(s, four['id']), {
      status: 'completed',
      result: { q: { status: 'cancelled', reason: 'moot' } },
    })
    const five = await s.ok('run.start', { spec: asking({}) })
    await s.ok('run.resume', { id: five['id'] })
    t.match(await s.ok('interaction.list', { run_id: five['id'] }), {
      items: [{ status: 'cancelled' }],
    })
  },
)

t.test('an invalid interaction step is rejected with its exact path', async (t) => {
  const bad = async (config: Record<string, unknown>) =>
    fieldsOf(
      await s.refused(
        'workflow.create',
        {
          name: 'x',
          spec: {
            steps: [
              {
                id: 'q',
                kind: 'interaction',
                config: { protocol: 'request_approval', targets: ['a'], ...config },
              },
            ],
          },
        },
        400,
        'bad_request',
      ),
    )
  t.strictSame(await bad({ targets: ['${{ nope }}'] }), ['spec.steps[0].config.targets[0]'])
  t.strictSame(await bad({ spec: { mode: 'input' } }), ['spec.steps[0].config.spec.mode'])
  t.strictSame(await bad({ resolution_policy: { type: 'quorum', threshold: 2 } }), [
    'spec.steps[0].config.resolution_policy.threshold',
  ])
  t.strictSame(await bad({ resolution_policy: { type: 'any_of', review: {} } }), [
    'spec.steps[0].config.resolution_policy.review.reviewer_user_ids',
  ])
  t.strictSame(await bad({ expires_in: '1h', expires_at: '2030-01-01T00:00:00.000Z' }), [
    'spec.steps[0].config.expires_at',
  ])
  t.strictSame(await bad({ prompt: '${{ steps.later.output }}' }), ['spec.steps[0].config.prompt'])
})
