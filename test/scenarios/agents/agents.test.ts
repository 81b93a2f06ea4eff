/**
 * Agents over HTTP: records, identity, the rights of an agent's own key, and what sessions copy
 * from their agent.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { acting, ended, fieldsOf, ids, idsOf, listOf, pages } from '../support/given.ts'
import { agentOf, placeOf, text } from '../support/talk.ts'

const s = await service()
t.teardown(() => s.stop())

t.test('an agent is created, updated, found and deleted', async (t) => {
  const { status, body: agent } = await s.call('agent.create', {
    name: 'Support',
    description: 'first line',
    color: 'teal',
    model: 'baton/scripted',
    model_route: { mode: 'managed' },
    system_prompt: 'Be kind.',
    timeout_seconds: 120,
    compaction_policy: { strategy: 'auto', threshold_tokens: 50_000 },
    memory_context: { mode: 'index', max_bytes: 2048 },
    thinking_effort: 'low',
    tags: { team: 'crm' },
  })
  t.equal(status, 201)
  t.match(agent, { id: /^agt_/, status: 'active', tool_presentation: 'meta', created_by: /^svc_/ })
  t.equal(agent['principal_id'], agent['id'])
  t.strictSame(await s.ok('agent.get', { id: agent['id'] }), agent)
  t.match(await s.ok('principal.get', { id: agent['id'] }), {
    kind: 'agent',
    handle: 'agent:support',
    state: 'active',
  })
  const changed = await s.ok('agent.update', {
    id: agent['id'],
    name: 'Helpdesk',
    memory_context: {},
    status: 'inactive',
  })
  t.match(changed, { name: 'Helpdesk', status: 'inactive', updated_by: /^svc_/ })
  t.notOk('memory_context' in changed)
  t.strictSame(listOf(await s.ok('agent.list', { name: 'Helpdesk', limit: 1 })), [changed])
  t.strictSame(listOf(await s.ok('agent.list', { name: 'Support' })), [])
  t.strictSame(listOf(await s.ok('agent.list', { principal_id: agent['id'] })), [changed])
  t.strictSame(listOf(await s.ok('agent.list', { status: 'active' })), [])
  t.equal((await s.call('agent.delete', { id: agent['id'] })).status, 204)
  for (const row of ['agent.get', 'agent.update', 'agent.delete', 'principal.get'] as const)
    await s.refused(row, { id: agent['id'] }, 404, 'not_found')
  t.strictSame(listOf(await s.ok('agent.list')), [])
  const log = listOf(await s.ok('audit.list', { resource_type: 'agent', resource_id: agent['id'] }))
  t.strictSame(
    log.map(({ action, resource_name }) => [action, resource_name]),
    [
      ['delete', 'Helpdesk'],
      ['update', 'Helpdesk'],
      ['create', 'Support'],
    ],
  )
  t.notMatch(JSON.stringify(log), 'Be kind', 'prompts are not in the audit log')
})

t.test('agents are listed newest first, in pages', async (t) => {
  const made = []
  for (const name of ['one', 'two', 'three']) made.push(await s.ok('agent.create', { name }))
  t.strictSame(ids(await pages(s, 'agent.list')), ids([...made].reverse()))
  for (const { id } of made) await s.ok('agent.delete', { id })
})

t.test('creation with an external reference can be repeated', async (t) => {
  const wish = { name: 'Nightly', external_ref: 'jobs/nightly', if_exists: 'adopt' }
  const first = await s.call('agent.create', wish)
  const again = await s.call('agent.create', { ...wish, description: 'ignored' })
  t.strictSame([first.status, again.status], [201, 200])
  t.strictSame(again.body, first.body)
  await s.refused('agent.create', { ...wish, name: 'Other' }, 409, 'external_identity_conflict')
  await s.refused('agent.create', { name: 'Nightly' }, 409, 'already_exists')
  await s.refused(
    'agent.update',
    { id: first.body['id'], external_ref: 'jobs/daily' },
    409,
    'conflict',
  )
  await s.ok('agent.delete', { id: first.body['id'] })
  await s.refused('agent.create', wish, 409, 'external_identity_conflict')
})

t.test('invalid fields of an agent are named', async (t) => {
  const faults = async (body: object) =>
    fieldsOf(await s.refused('agent.create', { name: 'x', ...body }, 400, 'bad_request')).sort()
  t.strictSame(await faults({ name: '', thinking_effort: 'huge', timeout_seconds: -1 }), [
    'name',
    'thinking_effort',
    'timeout_seconds',
  ])
  t.strictSame(await faults({ if_exists: 'adopt' }), ['external_ref'])
  t.strictSame(await faults({ compaction_policy: { threshold: 'sm', threshold_tokens: 5 } }), [
    'compaction_policy.threshold_tokens',
  ])
  t.strictSame(await faults({ model_route: { mode: 'worker' } }), ['model_route.provider'])
  t.strictSame(await faults({ model_route: { mode: 'worker', provider: 'ollama' } }), [
    'model_route.model',
  ])
  t.strictSame(await faults({ tags: { 'service:own': 'x' } }), ['tags.service:own'])
  t.strictSame(await faults({ memory_context: {} }), ['memory_context.mode'])
})

t.test('an agent authenticates with its own key and acts under its own name', async (t) => {
  const agent = await s.ok('agent.create', { name: 'Actor' })
  await s.refused(
    'key.create',
    { name: 'actor', principal_id: agent['id'] },
    409,
    'principal_has_no_roles',
  )
  await s.ok('assignment.create', { principal_id: agent['id'], role_name: 'Editor' })
  const as = {
    key: String((await s.ok('key.create', { name: 'actor', principal_id: agent['id'] }))['key']),
  }
  t.match(await s.ok('me.get', {}, as), {
    principal: { id: agent['id'], kind: 'agent', name: 'Actor' },
  })
  const other = await s.ok('agent.create', { name: 'Made by an agent' }, as)
  t.equal(other['created_by'], agent['id'])
  t.match(listOf(await s.ok('audit.list', { resource_id: other['id'], resource_type: 'agent' })), [
    { actor_type: 'agent', actor_id: agent['id'] },
  ])
  const channel = await s.ok('channel.create', { name: 'crew' })
  await s.ok('channel.add_member', { id: channel['id'], agent_id: agent['id'] })
  await s.ok('agent.delete', { id: agent['id'] })
  await s.refused('me.get', {}, 401, 'unauthorized', as)
  t.notOk(
    listOf(await s.ok('channel.members', { id: channel['id'] })).some((member) =>
      JSON.stringify(member).includes(String(agent['id'])),
    ),
    'the deleted agent is no longer a member',
  )
})

t.test('an agent gets its e-mail address once', async (t) => {
  const agent = await s.ok('agent.create', { name: 'Postmaster' })
  const first = await s.call('agent.inbox', { id: agent['id'] })
  t.strictSame([first.status, first.body['email_address']], [200, `${agent['id']}@agents.test`])
  t.strictSame((await s.call('agent.inbox', { id: agent['id'] })).body, first.body)
  await s.refused('agent.inbox', { id: 'agt_none' }, 404, 'not_found')
})

t.test('bindings assign accounts to agents; an account has one active binding', async (t) => {
  const [one, two] = [
    await s.ok('agent.create', { name: 'First' }),
    await s.ok('agent.create', { name: 'Second' }),
  ]
  const account = { provider: 'slack', integration_id: 'int_1' }
  const made = await s.ok('agent.set_binding', {
    id: one['id'],
    ...account,
    enabled: true,
    channels: ['C1'],
    model_route: { mode: 'worker', provider: 'ollama', model: 'llama' },
  })
  t.match(made, {
    id: /^amb_/,
    agent_id: one['id'],
    ...account,
    enabled: true,
    dms: true,
    mentions: true,
    all_messages: false,
    channels: ['C1'],
    dm_policy: 'open',
    sender_allow: [],
    reply_mode: 'auto',
    model_route: { mode: 'worker' },
  })
  const changed = await s.ok('agent.set_binding', {
    id: one['id'],
    ...account,
    enabled: true,
    dm_policy: 'allowlist',
    sender_allow: ['U1'],
  })
  t.match(changed, {
    id: made['id'],
    channels: [],
    dm_policy: 'allowlist',
    sender_allow: ['U1'],
    created_at: made['created_at'],
  })
  t.notOk('model_route' in changed, 'a binding is replaced as a whole')
  t.strictSame(
    await s.ok('agent.set_binding', {
      id: one['id'],
      ...account,
      enabled: true,
      dm_policy: 'allowlist',
      sender_allow: ['U1'],
    }),
    changed,
    'a repeat changes nothing',
  )
  await s.refused(
    'agent.set_binding',
    { id: two['id'], ...account, enabled: true },
    409,
    'conflict',
  )
  t.match(await s.ok('agent.set_binding', { id: two['id'], ...account }), { enabled: false })
  t.match(
    await s.ok('agent.set_binding', {
      id: two['id'],
      ...account,
      enabled: true,
      replace_existing: true,
    }),
    { enabled: true },
  )
  t.match(listOf(await s.ok('agent.bindings', { id: one['id'] })), [
    { enabled: false, sender_allow: ['U1'] },
  ])
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.set_binding',
        { id: one['id'], provider: 'fax', integration_id: '' },
        400,
        'bad_request',
      ),
    ).sort(),
    ['integration_id', 'provider'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.set_binding',
        { id: one['id'], ...account, model_route: { mode: 'worker' } },
        400,
        'bad_request',
      ),
    ),
    ['model_route.provider'],
  )
  await s.refused(
    'agent.delete_binding',
    { id: two['id'], binding_id: made['id'] },
    404,
    'not_found',
  )
  t.equal(
    (await s.call('agent.delete_binding', { id: one['id'], binding_id: made['id'] })).status,
    204,
  )
  t.strictSame(listOf(await s.ok('agent.bindings', { id: one['id'] })), [])
  await s.refused('agent.bindings', { id: 'agt_none' }, 404, 'not_found')
  t.strictSame(
    listOf(await s.ok('audit.list', { resource_id: made['id'] })).map(({ action }) => action),
    ['delete', 'update', 'update', 'create'],
  )
})

t.test(
  'an inactive agent claims no jobs, but stays connected and keeps its claimed jobs',
  async (t) => {
    const agent = await s.ok('agent.create', { name: 'Laborer' })
    await s.ok('assignment.create', { principal_id: agent['id'], role_name: 'Operator' })
    const key = String(
      (await s.ok('key.create', { name: 'laborer', principal_id: agent['id'] }))['key'],
    )
    const worker = await s.worker({ action_names: ['labor'] }, { key })
    const start = () => s.ok('run.start', { spec: acting('labor') })
    const first = await start()
    const job = await worker.job()
    await s.ok('agent.update', { id: agent['id'], status: 'inactive' })
    const second = await start()
    worker.send({ type: 'jobs.claim', message_id: 'asleep', available_slots: 1 })
    await worker.report(job)
    t.match(await ended(s, first['id']), { status: 'completed' }, 'a claimed job can be completed')
    t.match(await s.ok('run.get', { id: second['id'] }), { status: 'suspended' })
    t.notOk(
      worker.frames.some(
        (frame) =>
          frame['message_id'] === 'asleep' && (frame['jobs'] as unknown[] | undefined)?.length,
      ),
      'nothing was assigned',
    )
    await s.ok('agent.update', { id: agent['id'], status: 'active' })
    const next = await worker.wait(
      (frame) => frame['type'] === 'jobs.claimed' && (frame['jobs'] as unknown[]).length > 0,
      'a job',
    )
    await worker.report(listOf(next, 'jobs')[0] ?? {})
    t.match(await ended(s, second['id']), { status: 'completed' }, 'the pending claim is answered')
    worker.close()
  },
)

t.test('a repeated request is answered, even if the agent cannot start turns', async (t) => {
  const agent = await agentOf(s, 'retired')
  const asked = (key: string, more: object = {}) => ({
    agent_ref: { id: agent['id'] },
    input: { content: [text('hi')], idempotency_key: key },
    ...more,
  })
  const first = await s.ok('agent.invoke', asked('k1'))
  const { session_id, turn_id } = placeOf(first)
  const nudge = await s.ok('session.nudge', { session_id, content: 'and?', idempotency_key: 'n1' })
  await s.ok('session.cancel_turn', { session_id, turn_id })
  const second = await s.ok('session.start_turn', {
    session_id,
    content: [text('again')],
    idempotency_key: 'k2',
  })
  await s.ok('session.cancel_turn', placeOf(second))
  for (const [change, status, code] of [
    [{ status: 'inactive' }, 409, 'agent_inactive'],
    [
      { status: 'active', model: 'nope/none', model_route: { mode: 'managed' } },
      400,
      'bad_request',
    ],
  ] as const) {
    await s.ok('agent.update', { id: agent['id'], ...change })
    t.match(await s.ok('agent.invoke', asked('k1')), {
      deduped: true,
      turn: { id: turn_id, status: 'cancelled' },
      resume_cursor: first['resume_cursor'],
    })
    t.match(
      await s.ok('session.start_turn', {
        session_id,
        content: [text('again')],
        idempotency_key: 'k2',
      }),
      { deduped: true, turn: { id: placeOf(second).turn_id } },
    )
    t.match(await s.ok('session.nudge', { session_id, content: 'and?', idempotency_key: 'n1' }), {
      deduped: true,
      nudge_id: nudge['nudge_id'],
    })
    await s.refused(
      'session.nudge',
      { session_id, content: 'other', idempotency_key: 'n1' },
      409,
      'conflict',
    )
    await s.refused('agent.invoke', asked('k3'), status, code)
    await s.refused(
      'agent.invoke',
      asked('k3', { session: { session_key: 'fresh' } }),
      status,
      code,
    )
    await s.refused(
      'session.start_turn',
      { session_id, content: [text('x')], idempotency_key: 'k3' },
      status,
      code,
    )
    await s.refused(
      'session.nudge',
      { session_id, content: 'x', idempotency_key: 'n2' },
      status,
      code,
    )
    await s.refused('session.compact', { session_id }, status, code)
  }
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.invoke',
        asked('k1', { config: { model: 'nope/none' } }),
        400,
        'bad_request',
      ),
    ),
    ['config.model'],
    'the config is validated nevertheless',
  )
  t.strictSame(
    idsOf(await s.ok('session.list', { agent_id: agent['id'] })),
    [session_id],
    'no session was created',
  )
})

t.test('a session reports the token threshold of its automatic compaction', async (t) => {
  const agent = await agentOf(s, 'tidy')
  const { id: session_id } = await s.ok('session.create', { agent_id: agent['id'] })
  const progress = async () => (await s.ok('session.get', { session_id }))['compaction']
  const policy = (compaction_policy: object) =>
    s.ok('session.update', { session_id, compaction_policy })
  t.strictSame(
    await progress(),
    { in_progress: false, threshold_tokens: 40_000 },
    'one fifth of the context window, before the first turn',
  )
  await policy({ threshold_tokens: 500 })
  await s.ok(
    'session.cancel_turn',
    placeOf(await s.ok('session.start_turn', { session_id, content: [text('x')] })),
  )
  t.strictSame(await progress(), { in_progress: false, threshold_tokens: 500 })
  await policy({ threshold_tokens: 900 })
  t.strictSame(await progress(), { in_progress: false, threshold_tokens: 900 })
  for (const strategy of ['manual', 'disabled']) {
    await policy({ strategy })
    t.strictSame(await progress(), { in_progress: false }, strategy)
  }
})
