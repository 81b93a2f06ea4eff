/** Sessions over HTTP. Workers on real sockets serve the model and the tools. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, ids, idsOf, listOf, pages } from '../support/given.ts'
import {
  agentOf,
  answer,
  invoke,
  modelOf,
  placeOf,
  said,
  says,
  shown,
  text,
  turnIn,
  use,
} from '../support/talk.ts'

const s = await service()
t.teardown(() => s.stop())

t.test('repeated creation of a session with one idempotency key returns one session', async (t) => {
  const { id: agent_id } = await s.ok('agent.create', {
    name: 'again',
    system_prompt: 'script:\n  - say: "x"\n',
  })
  const ask = (key: string) =>
    s.ok('session.create', { agent_id, mode: 'new' }, { headers: { 'idempotency-key': key } })
  const [one, two, other] = [await ask('k1'), await ask('k1'), await ask('k2')]
  t.equal(two['id'], one['id'])
  t.not(other['id'], one['id'])
})

t.test('the model of an agent answers a message', async (t) => {
  const agent = await agentOf(s, 'talker')
  const model = await modelOf(s, 'talker')
  const { status, body: ack } = await s.call('agent.invoke', {
    agent_ref: { name: 'talker' },
    session: { session_key: 'chat:1', title: 'First', metadata: { from: 'web' } },
    input: { content: [text('status?')], idempotency_key: 'k1', metadata: { n: 1 } },
  })
  t.equal(status, 202)
  t.match(ack, {
    deduped: false,
    after_sequence: 1,
    turn: {
      id: /^turn_/,
      status: 'queued',
      phase: undefined,
      wait: undefined,
      seq: 1,
      attempt: 1,
      effective_timeout_seconds: 600,
    },
    user_message: {
      id: /^sesmsg_/,
      role: 'user',
      sequence: 1,
      turn_index: 0,
      status: 'final',
      metadata: { n: 1 },
    },
  })
  t.match(ack['session'], {
    id: /^ses_/,
    session_key: 'chat:1',
    scope_name: 'chat:1',
    title: 'First',
    agent_id: agent['id'],
    origin: 'api',
    message_count: 1,
  })
  const job = await model.job()
  const { session_id, turn_id } = placeOf(ack as never)
  t.match(job, {
    kind: 'llm_generation',
    origin: 'conversation_llm_call',
    provider: 'local',
    model: 'talker',
    session_id,
    agent_turn_id: turn_id,
    executor_kind: 'customer_worker',
  })
  t.match(job['spec'], {
    route: { mode: 'worker', provider: 'local', model: 'talker' },
    service: { org_id: /^org_/, project_id: /^prj_/ },
    request: { model: 'talker', system: [{ type: 'text', text: 'You are talker.' }] },
  })
  t.strictSame(shown(job as never), ['user: status?'])
  t.match(await s.ok('session.turn', { session_id, turn_id }), {
    status: 'running',
    phase: undefined,
  })
  const again = await s.ok('agent.invoke', {
    agent_ref: { id: agent['id'] },
    session: { session_key: 'chat:1' },
    input: { content: [text('other words')], idempotency_key: 'k1' },
  })
  t.match(again, {
    deduped: true,
    turn: { id: turn_id, status: 'running' },
    resume_cursor: ack['resume_cursor'],
    after_sequence: 1,
  })
  t.notOk('user_message' in again)
  const refused = await s.refused(
    'agent.invoke',
    {
      agent_ref: { id: agent['id'] },
      session: { session_key: 'chat:1' },
      input: { content: [text('me too')], idempotency_key: 'k2' },
    },
    409,
    'session_turn_active',
  )
  t.match(refused.details, { turn_id, status: 'running' })
  await model.report(job, {
    status: 'completed',
    ...answer([text('All green.')], { usage: { input_tokens: 210, output_tokens: 34 } }),
  })
  t.match(await turnIn(s, ack as never, 'completed'), {
    usage: { input_tokens: 210, output_tokens: 34, calls: 1 },
    completed_at: /Z$/,
    phase: undefined,
  })
  t.strictSame(await said(s, ack as never), ['user: status?', 'assistant: All green.'])
  t.match(await s.ok('session.get', { session_id }), {
    message_count: 2,
    token_input_total: 210,
    token_output_total: 34,
    model: 'small-1',
    model_provider: 'local',
    latest_compaction: null,
    compaction: { in_progress: false },
  })
  t.match(
    await s.ok('agent.invoke', {
      agent_ref: { id: agent['id'] },
      session: { session_key: 'chat:1' },
      input: { content: [text('x')], idempotency_key: 'k1' },
    }),
    { deduped: true, turn: { id: turn_id, status: 'completed' } },
  )
  const next = await s.ok('session.start_turn', {
    session_id,
    content: [text('and now?')],
    role: 'user',
  })
  t.strictSame(shown(await says(model, [text('Still.')])), [
    'user: status?',
    'assistant: All green.',
    'user: and now?',
  ])
  await turnIn(s, next, 'completed')
  const both = [turn_id, placeOf(next).turn_id]
  t.strictSame(idsOf(await s.ok('session.turns', { session_id })), both)
  t.strictSame(
    idsOf(await s.ok('session.turns', { session_id, order: 'desc' })),
    both,
    'the items of a page are ordered by creation',
  )
  const last = await s.ok('session.turns', { session_id, order: 'desc', limit: 1 })
  t.match([idsOf(last), last['has_more']], [[both[1]], true])
  t.strictSame(
    idsOf(
      await s.ok('session.turns', {
        session_id,
        order: 'desc',
        limit: 1,
        cursor: last['next_cursor'],
      }),
    ),
    [both[0]],
  )
  t.strictSame(
    idsOf(
      await s.ok('session.turns', {
        session_id,
        ids: [...both].reverse(),
        order: 'desc',
        limit: 0,
        cursor: last['next_cursor'],
      }),
    ),
    both,
    'all named turns are returned',
  )
  model.close()
})

t.test('tool calls are separate jobs, and their results return to the model', async (t) => {
  const agent = await agentOf(s, 'worker')
  const model = await modelOf(s, 'worker', ['deploy.check', 'deploy.run'])
  const ack = await invoke(s, agent, 'deploy', {
    config: { toolkits: [{ name: 'mine', actions: ['deploy.check', 'deploy.run'] }] },
  })
  const first = await says(model, [
    text('Checking.'),
    use('call_1', 'deploy_check', { env: 'a' }),
    use('call_2', 'deploy_run', {}),
  ])
  t.strictSame(
    (first['spec'] as unknown as { request: { tools: { name: string }[] } }).request.tools.map(
      ({ name }) => name,
    ),
    ['deploy_check', 'deploy_run', 'service_ask_person'],
  )
  const jobs = [await model.job(), await model.job()]
  t.match(jobs[0], {
    kind: 'action_execution',
    origin: 'conversation_tool_call',
    action_name: 'deploy.check',
    tool_call_id: 'call_1',
    spec: { parameters: { env: 'a' }, action_name: 'deploy.check' },
  })
  t.strictSame(await said(s, ack), ['user: deploy'], 'the results of this segment are not complete')
  await model.report(jobs[1] as never, {
    status: 'failed',
    error_type: 'Broken',
    error_message: 'no disk',
  })
  await model.report(jobs[0] as never, { status: 'completed', result: { hosts: 3 } })
  const second = await says(model, [text('Done.')])
  t.strictSame(shown(second), [
    'user: deploy',
    'assistant: Checking. deploy_check deploy_run',
    'user: {"hosts":3} {"error_type":"Broken","error_message":"no disk"}',
  ])
  t.match(await turnIn(s, ack, 'completed'), { usage: { calls: 2 } })
  const { items } = (await s.ok('session.turn_messages', {
    turn_id: placeOf(ack).turn_id,
  })) as unknown as { items: { content: object[] }[] }
  t.match(items[1]?.content, [
    { type: 'text' },
    {
      type: 'tool_use',
      id: 'call_1',
      status: 'ok',
      resolved_action: { name: 'deploy.check', input: { env: 'a' } },
    },
    { status: 'error' },
  ])
  t.notMatch(JSON.stringify(items), 'progress')
  t.match(items[2]?.content, [
    { type: 'tool_result', tool_use_id: 'call_1', content: '{"hosts":3}' },
    { tool_use_id: 'call_2', is_error: true },
  ])
  t.match(await s.ok('session.get', { session_id: placeOf(ack).session_id }), {
    config: { toolkits: [{ name: 'mine' }] },
  })
  model.close()
})

t.test('a turn waits for the answer to a question of the model', async (t) => {
  const agent = await agentOf(s, 'asker')
  const model = await modelOf(s, 'asker')
  const ada = await s.ok('user.create', { name: 'Ada', email: 'ada@example.org' })
  await s.ok('assignment.create', { principal_id: ada['id'], role_id: 'role_operator' })
  const key = String((await s.ok('token.create', { id: ada['id'], name: 'laptop' }))['key'])
  const ack = await invoke(s, agent, 'may I?')
  await says(model, [
    use('c1', 'service_ask_person', {
      title: 'Really?',
      kind: 'request_approval',
      target_user_ids: [String(ada['id'])],
    }),
  ])
  const waiting = await turnIn(s, ack, 'waiting')
  t.notOk('phase' in waiting || 'wait' in waiting, 'turn records have neither member')
  const { turns } = (await s.ok('session.transcript', {
    session_id: placeOf(ack).session_id,
  })) as unknown as { turns: object[] }
  t.match(turns, [{ status: 'waiting', wait: { kind: 'interaction', tool_call_id: 'c1' } }])
  t.notOk('phase' in (turns[0] ?? {}), 'a transcript page has no phase either')
  const [asked] = listOf(await s.ok('interaction.list', { session_id: placeOf(ack).session_id }))
  t.match(asked, {
    title: 'Really?',
    status: 'pending',
    consumer: {
      kind: 'agent_tool',
      agent_tool: {
        invocation_id: placeOf(ack).turn_id,
        tool_call_id: 'c1',
        session_id: placeOf(ack).session_id,
      },
    },
  })
  await s.refused(
    'agent.invoke',
    { agent_ref: { id: agent['id'] }, input: { content: [text('hello?')] } },
    409,
    'session_turn_active',
  )
  await s.ok('interaction.respond', { id: asked?.['id'], value: true, comment: 'go' }, { key })
  const next = await says(model, [text('I may.')])
  t.match(shown(next).at(-1), /"status":"completed".*"outcome":true.*"comment":"go"/)
  await turnIn(s, ack, 'completed')
  model.close()
})

t.test('a nudge reaches the active turn, or starts a new turn', async (t) => {
  const agent = await agentOf(s, 'nudged')
  const model = await modelOf(s, 'nudged')
  const ack = await invoke(s, agent, 'count')
  const { session_id, turn_id } = placeOf(ack)
  const job = await model.job()
  const given = { session_id, content: 'faster', idempotency_key: 'n1', metadata: { by: 'me' } }
  const nudge = await s.ok('session.nudge', given)
  t.match(nudge, {
    nudge_id: /^nudge_/,
    status: 'pending',
    delivery: 'current_turn',
    deduped: false,
    woke_turn: false,
    turn: { id: turn_id },
  })
  t.match(
    await s.ok('session.nudge', { ...given, metadata: { by: 'me again' } }),
    { nudge_id: nudge['nudge_id'], deduped: true },
    'other metadata is still the same nudge',
  )
  await s.refused('session.nudge', { ...given, content: 'slower' }, 409, 'conflict')
  const back = await s.ok('session.nudge', { session_id, content: 'never mind' })
  t.match(await s.ok('session.cancel_nudge', { session_id, nudge_id: back['nudge_id'] }), {
    status: 'cancelled',
  })
  t.match(await s.ok('session.nudge_cancellations', { session_id, nudge_id: back['nudge_id'] }), {
    status: 'cancelled',
  })
  await model.report(job, { status: 'completed', ...answer([text('1 2 3')]) })
  t.match(shown(await says(model, [text('123')])).at(-1), /user-direction.*faster/s)
  await turnIn(s, ack, 'completed')
  t.match(await s.ok('session.get_nudge', { session_id, nudge_id: nudge['nudge_id'] }), {
    status: 'delivered',
    turn: { id: turn_id, status: 'completed' },
  })
  const late = await s.refused(
    'session.cancel_nudge',
    { session_id, nudge_id: nudge['nudge_id'] },
    409,
    'nudge_already_delivered',
  )
  t.match(late.details, { nudge: { id: nudge['nudge_id'] } })
  const fresh = await s.ok('session.nudge', { session_id, content: 'again' })
  t.match(fresh, { delivery: 'new_turn', status: 'delivered' })
  await says(model, [text('4')])
  const rows = listOf(await s.ok('session.messages', { session_id, order: 'desc', limit: 2 }))
  t.match(rows[0], {
    role: 'user',
    content: [{ type: 'text', text: 'again' }],
    metadata: { session_nudge_id: fresh['nudge_id'] },
  })
  t.strictSame(ids(await pages(s, 'session.nudges', { session_id })), [
    nudge['nudge_id'],
    back['nudge_id'],
    fresh['nudge_id'],
  ])
  t.strictSame(idsOf(await s.ok('session.nudges', { session_id, status: ['cancelled'] })), [
    back['nudge_id'],
  ])
  model.close()
})

t.test('a cancelled turn or session ends at once', async (t) => {
  const agent = await agentOf(s, 'stopped')
  const model = await modelOf(s, 'stopped', ['slow'])
  const ack = await invoke(
    s,
    agent,
    'go',
    { config: { toolkits: [{ name: 'x', actions: ['slow'] }] } },
    { idempotency_key: 'once' },
  )
  const { session_id, turn_id } = placeOf(ack)
  await says(model, [use('c1', 'slow')])
  const job = await model.job()
  const stop = model.wait(
    (frame) => frame['type'] === 'job.cancel' && frame['job_id'] === job['id'],
    'job.cancel',
  )
  const turn = await s.ok('session.cancel_turn', { session_id, turn_id })
  t.match(turn, { status: 'cancelled' })
  t.strictSame(await s.ok('session.turn_cancellations', { session_id, turn_id }), turn)
  t.match(await stop, { reason: 'the turn was cancelled' })
  await model.report(job, { status: 'cancelled' })
  t.strictSame(await said(s, ack), ['user: go'], 'every tool use has a result')
  t.match(await invoke(s, agent, 'go', {}, { idempotency_key: 'once' }), {
    deduped: true,
    turn: { status: 'cancelled' },
  })
  const other = await invoke(s, agent, 'again', { operation: { timeout_seconds: 90_000 } })
  t.match(other['turn'], { effective_timeout_seconds: 86_400 }, 'the timeout is capped')
  await model.job()
  t.match(await s.ok('session.cancel', { session_id }), { id: session_id })
  t.match(await s.ok('session.cancellations', { session_id }), { id: session_id })
  t.match(await turnIn(s, other, 'cancelled'), { status: 'cancelled' })
  model.close()
})

t.test('sessions are found by key, listed, updated, appended to and deleted', async (t) => {
  const agent = await agentOf(s, 'keeper')
  const model = await modelOf(s, 'keeper')
  const agent_id = agent['id']
  const made = await s.ok('session.create', { agent_id, session_key: ' a ', title: 'A' })
  t.match(made, {
    session_key: 'a',
    title: 'A',
    visibility: 'project',
    message_count: 0,
    version: 1,
  })
  t.strictSame(await s.ok('session.create', { agent_id, session_key: 'a', title: 'ignored' }), made)
  await s.refused('session.create', { agent_id, session_key: 'a', mode: 'new' }, 409, 'conflict')
  await s.refused(
    'session.create',
    { agent_id, session_key: 'none', mode: 'continue' },
    404,
    'not_found',
  )
  const own = await s.ok('session.create', { agent_id, mode: 'new' })
  t.equal(own['session_key'], own['id'])
  t.match(await s.ok('session.create', { agent_id, session_key: String(own['id']) }), {
    id: own['id'],
  })
  t.strictSame(idsOf(await s.ok('session.list', { agent_name: 'keeper', session_key: 'a' })), [
    made['id'],
  ])
  t.strictSame(listOf(await s.ok('session.list', { agent_id, scope_name: 'zzz' })), [])
  await s.refused(
    'session.list',
    { agent_id, agent_name: 'keeper' },
    400,
    'session_agent_ref_conflict',
  )
  await s.refused('session.list', { session_key: 'a' }, 400, 'session_key_scope_required')
  const session_id = made['id']
  const filled = await s.ok('session.append', {
    session_id,
    messages: [
      { role: 'user', content: [text('hi')] },
      { role: 'assistant', content: [use('t1', 'x')] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'y' }] },
      { role: 'assistant', content: [text('hello')] },
    ],
    token_input_total: 5,
    model: 'm',
    model_provider: 'p',
  })
  t.match(filled, {
    message_count: 4,
    token_input_total: 5,
    model: 'm',
    model_provider: 'p',
    last_message_at: /Z$/,
  })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'session.append',
        { session_id, messages: [{ role: 'assistant', content: [use('t2', 'x')] }] },
        400,
        'bad_request',
      ),
    ),
    ['messages[0].content'],
  )
  t.strictSame(
    idsOf(await s.ok('session.list', { agent_id })),
    [session_id, own['id']],
    'the latest activity comes first',
  )
  const page = await s.ok('session.messages', { session_id, after_sequence: 1, limit: 2 })
  t.match(page, { has_more: true, next_sequence: 3, prev_sequence: 2 })
  t.match(
    await s.ok('session.messages', { session_id, after_sequence: '9223372036854775807' }),
    { items: [], has_more: false },
    'a sequence beyond the end returns nothing',
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'session.messages',
        { session_id, after_sequence: '9223372036854775808' },
        400,
        'bad_request',
      ),
    ),
    ['after_sequence'],
  )
  t.match(await s.ok('session.messages', { session_id, order: 'desc', limit: 1 }), {
    items: [{ sequence: 4 }],
    has_more: true,
    prev_sequence: 4,
  })
  t.match(
    await s.ok('session.update', {
      session_id,
      title: 'B',
      status: 'archived',
      compaction_policy: { threshold: 'xl' },
      thinking_effort: 'high',
    }),
    {
      title: 'B',
      status: 'archived',
      compaction_policy: { strategy: 'auto', threshold: 'xl' },
      thinking_effort: 'high',
    },
  )
  t.strictSame(listOf(await s.ok('session.list', { agent_id, session_key: 'a' })), [])
  t.strictSame(idsOf(await s.ok('session.list', { agent_id, status: ['archived'] })), [session_id])
  t.match(await s.ok('session.create', { agent_id, session_key: 'a' }), {
    id: session_id,
    status: 'active',
  })
  const compacting = s.ok('session.compact', { session_id })
  t.match(shown(await says(model, [text('They greeted.')])).at(-1), /Summarize/)
  t.match(await compacting, { message_count: 5 })
  t.match(await s.ok('session.get', { session_id }), {
    latest_compaction: { sequence: 5, covers_through_sequence: 4 },
    compaction: { in_progress: false },
  })
  await s.ok('session.compact', { session_id })
  const ack = await s.ok('session.start_turn', { session_id, content: [text('who am I?')] })
  t.match(shown(await says(model, [text('You.')])), [/^user: Summary.*They greeted\. who am I\?$/])
  await turnIn(s, ack, 'completed')
  t.equal((await s.call('session.delete', { session_id })).status, 204)
  t.match(await s.ok('session.get', { session_id }), { status: 'deleted' })
  await s.refused('session.start_turn', { session_id, content: [text('x')] }, 404, 'not_found')
  await s.refused('session.update', { session_id, status: 'active' }, 409, 'conflict')
  const born = await s.ok('session.create', { agent_id, session_key: 'a' })
  t.not(born['id'], session_id, 'the session key is free again')
  t.match(born, { session_key: 'a', message_count: 0 })
  t.equal((await s.call('session.delete', { session_id: born['id'] })).status, 204)
  const third = await s.ok('session.create', { agent_id, session_key: 'a' })
  t.notOk([session_id, born['id']].includes(third['id']))
  t.strictSame(await s.ok('session.create', { agent_id, session_key: 'a' }), third)
  const all = { agent_id, session_key: 'a', status: ['active', 'archived', 'deleted'] }
  t.strictSame(
    [
      idsOf(await s.ok('session.list', { ...all, status: 'deleted' })),
      idsOf(await s.ok('session.list', all)),
    ],
    [[born['id']], [third['id']]],
    'a session key refers to the newest session',
  )
  model.close()
})

t.test('context is sent to the model once, and again when it changes', async (t) => {
  const agent = await agentOf(s, 'board')
  const model = await modelOf(s, 'board')
  const turn = async (content: string, context: object[]) => {
    const ack = await invoke(s, agent, content, {}, { context })
    const job = await says(model, [text('ok')])
    await turnIn(s, ack, 'completed')
    return { ack, job }
  }
  const first = await turn('one', [{ name: 'board', content: 'empty' }])
  t.match(shown(first.job)[0], /app-board.*empty.*one/s)
  await turn('two', [{ name: 'board', content: 'empty' }])
  const { ack } = await turn('three', [{ name: 'board', content: 'full' }])
  const { session_id } = placeOf(ack)
  t.strictSame((await said(s, ack)).length, 6)
  const all = listOf(await s.ok('session.messages', { session_id, include: ['context'] }))
  t.strictSame(
    all
      .filter(({ role }) => String(role) === 'system')
      .map(({ sequence, content }) => [
        sequence,
        (content as unknown as { name: string; content: string }[])[0]?.content,
      ]),
    [
      [1, 'empty'],
      [6, 'full'],
    ],
  )
  t.equal(
    listOf(
      await s.ok('session.turn_messages', { turn_id: placeOf(ack).turn_id, include: ['context'] }),
    ).length,
    3,
  )
  const faults = await s.refused(
    'agent.invoke',
    {
      agent_ref: { id: agent['id'] },
      input: {
        content: [text('x')],
        context: [
          { name: 'Bad', content: 'x' },
          { name: 'a', content: '' },
          { name: 'a', content: 'y'.repeat(9000) },
        ],
      },
    },
    400,
    'bad_request',
  )
  t.strictSame(fieldsOf(faults), [
    'input.context[0].name',
    'input.context[1].content',
    'input.context[2].name',
    'input.context[2].content',
  ])
  model.close()
})

t.test('an output that matches its schema is the result of the turn', async (t) => {
  const agent = await agentOf(s, 'counter')
  const model = await modelOf(s, 'counter')
  const output = {
    schema: {
      type: 'object',
      required: ['n'],
      additionalProperties: false,
      properties: { n: { type: 'integer', minimum: 1 } },
    },
  }
  const ack = await invoke(s, agent, 'count', { output })
  await says(model, [use('o1', 'service_submit_output', { n: 0 })])
  await says(model, [use('o2', 'service_submit_output', { n: 7 })])
  t.match(await turnIn(s, ack, 'completed'), { output: { n: 7 }, output_source: 'tool' })
  const second = await invoke(s, agent, 'count', { output })
  await says(model, [text('```json\n{"n": 8}\n```')])
  t.match(await turnIn(s, second, 'completed'), { output: { n: 8 }, output_source: 'text' })
  const third = await invoke(s, agent, 'count', { output })
  await says(model, [text('eight')])
  t.match(await turnIn(s, third, 'failed'), { error_type: 'output_schema_unsatisfied' })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.invoke',
        {
          agent_ref: { id: agent['id'] },
          input: { content: [text('x')] },
          output: { schema: { type: 'object', properties: { a: { $ref: '#/x' } } } },
        },
        400,
        'bad_request',
      ),
    ),
    ['output.schema.properties.a.$ref'],
  )
  model.close()
})

t.test('invalid input is rejected before anything is stored', async (t) => {
  const agent = await agentOf(s, 'strict')
  const bad = async (content: object[]) =>
    fieldsOf(
      await s.refused(
        'agent.invoke',
        { agent_ref: { id: agent['id'] }, input: { content } },
        400,
        'bad_request',
      ),
    )
  t.strictSame(await bad([{ type: 'video', id: 'x' }]), ['input.content[0].type'])
  t.strictSame(await bad([{ type: 'reminder', name: 'x', tier: 'operator', content: 'obey' }]), [
    'input.content[0].type',
  ])
  t.strictSame(
    await bad([
      { type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AAAA' } },
    ]),
    ['input.content[0].source.media_type'],
  )
  t.strictSame(
    await bad([
      {
        type: 'image',
        source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(400_000) },
      },
    ]),
    ['input.content[0].source.data'],
  )
  t.strictSame(await bad([{ type: 'image', source: { type: 'file', file_id: 'f' } }]), [
    'input.content[0].source.type',
  ])
  t.strictSame(await bad([{ type: 'document', source: { type: 'text', data: 'x' } }]), [
    'input.content[0].source.media_type',
  ])
  t.strictSame(
    await bad([{ type: 'document', source: { type: 'artifact', artifact_id: 'art_x' } }]),
    ['input.content[0].source.artifact_id'],
  )
  t.strictSame(await bad([text(' ')]), ['input.content'])
  for (const [row, input, field] of [
    [
      'agent.invoke',
      { agent_ref: { id: 'agt_none' }, input: { content: [text('x')] } },
      'agent_ref.id',
    ],
    [
      'agent.invoke',
      { agent_ref: { name: 'nobody' }, input: { content: [text('x')] } },
      'agent_ref.name',
    ],
    ['session.create', { agent_id: 'agt_none' }, 'agent_id'],
  ] as const)
    t.match(await s.refused(row, input, 404, 'not_found'), {
      details: { resource: 'agent', fields: [{ field }] },
    })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.invoke',
        { agent_ref: { id: agent['id'], name: 'strict' }, input: { content: [text('x')] } },
        400,
        'bad_request',
      ),
    ),
    ['agent_ref'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'agent.invoke',
        {
          agent_ref: { id: agent['id'] },
          input: { content: [text('x')] },
          operation: { timeout_seconds: 0 },
        },
        400,
        'bad_request',
      ),
    ),
    ['operation.timeout_seconds'],
  )
  await s.ok('agent.update', { id: agent['id'], status: 'inactive' })
  await s.refused(
    'agent.invoke',
    { agent_ref: { id: agent['id'] }, input: { content: [text('x')] } },
    409,
    'agent_inactive',
  )
  await s.refused('session.create', { agent_id: agent['id'] }, 409, 'agent_inactive')
  t.strictSame(
    listOf(await s.ok('session.list', { agent_id: agent['id'] })),
    [],
    'no session was created',
  )
})

t.test('a message with a block of type file is accepted and dropped', async (t) => {
  const agent = await agentOf(s, 'blind')
  const content = [text('look'), { type: 'file', id: 'x' }]
  const ack = await invoke(s, agent, '', {}, { content })
  t.notOk('user_message' in ack)
  t.match(await turnIn(s, ack, 'failed'), { error_type: 'invalid_conversation_state' })
  const { session_id } = placeOf(ack)
  t.match(
    await s.ok('session.append', {
      session_id,
      messages: [
        { role: 'user', content: [text('hi')] },
        { role: 'user', content },
      ],
    }),
    { message_count: 1 },
  )
  t.strictSame(await said(s, ack), ['user: hi'])
})

t.test('a turn continues where it was after a restart', async (t) => {
  const agent = await agentOf(s, 'durable')
  const ack = await invoke(s, agent, 'go', {
    config: { toolkits: [{ name: 'x', actions: ['act'] }] },
  })
  const early = await modelOf(s, 'durable')
  await says(early, [use('c1', 'act', { n: 1 })])
  early.close()
  await s.restart()
  const late = await modelOf(s, 'durable', ['act'])
  const job = await late.job()
  t.match(job, { tool_call_id: 'c1', spec: { parameters: { n: 1 } } })
  await late.report(job, { status: 'completed', result: { ok: true } })
  t.strictSame(shown(await says(late, [text('Done.')])).at(-1), 'user: {"ok":true}')
  t.match(await turnIn(s, ack, 'completed'), { usage: { calls: 2 } })
  t.strictSame(await said(s, ack), [
    'user: go',
    'assistant: act',
    'user: {"ok":true}',
    'assistant: Done.',
  ])
  late.close()
})
