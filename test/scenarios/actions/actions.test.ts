/**
 * Actions over the real stack: their definitions, calls to them by runs and by clients, and the
 * signed requests of an executor, which a receiver verifies.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import {
  acting,
  ended,
  fieldsOf,
  idsOf,
  listOf,
  pages,
  timelineOf,
  until,
} from '../support/given.ts'
import { json, receiver, verified } from '../support/servers/receiver.ts'

const s = await service({ BATON_OUTBOUND_ALLOW: '127.0.0.1/32' })
const there = await receiver()
t.setTimeout(120_000)
t.teardown(async () => {
  await there.close()
  await s.stop()
})
const invocationOf = async (run_id: unknown) =>
  listOf(await s.ok('invocation.list', { run_id: String(run_id) }))[0]

t.test('an action is created, read, updated and deleted', async (t) => {
  const made = await s.ok('action.create', {
    name: 'crm.lookup',
    endpoint_url: `${there.url}/lookup`,
    title: 'Look up',
    input_schema: { type: 'object', required: ['id'] },
    annotations: { read_only: true },
    tags: { team: 'sales' },
  })
  t.match(made, {
    id: /^act_/,
    name: 'crm.lookup',
    endpoint_kind: 'http',
    invocation_format: 'legacy',
    annotations: { read_only: true },
  })
  t.equal(Buffer.from(String(made['signing_secret']), 'base64').length, 32)
  const read = await s.ok('action.get', { action_name: 'crm.lookup' })
  t.match(read, { id: made['id'], title: 'Look up' })
  t.notOk('signing_secret' in read, 'the secret is shown only once')
  t.match(
    await s.ok('action.update', {
      action_name: 'crm.lookup',
      title: 'Find',
      annotations: null,
      tags: {},
      invocation_format: 'signed_context_v1',
    }),
    { title: 'Find', invocation_format: 'signed_context_v1' },
  )
  const changed = await s.ok('action.get', { action_name: 'crm.lookup' })
  t.strictSame([changed['annotations'], changed['tags']], [undefined, undefined])
  const worker = await s.ok('action.create', { name: 'resize', endpoint_kind: 'worker' })
  t.notOk('signing_secret' in worker)
  t.strictSame(idsOf(await s.ok('action.list', {})), [worker['id'], made['id']])
  t.equal((await pages(s, 'action.list', {}, 1)).length, 2)

  await s.refused(
    'action.create',
    { name: 'crm.lookup', endpoint_url: there.url },
    409,
    'already_exists',
  )
  const bad = async (body: object) =>
    fieldsOf(
      await s.refused(
        'action.create',
        { name: 'other', endpoint_url: there.url, ...body },
        400,
        'bad_request',
      ),
    )
  t.strictSame(await bad({ name: 'service.mine' }), ['name'])
  t.strictSame(await bad({ name: 'workflow.mine' }), ['name'])
  t.strictSame(await bad({ name: 'Big' }), ['name'])
  t.strictSame(await bad({ endpoint_url: 'ftp://example.org' }), ['endpoint_url'])
  t.strictSame(await bad({ endpoint_url: 'https://user:word@example.org' }), ['endpoint_url'])
  t.strictSame(await bad({ endpoint_kind: 'worker' }), ['endpoint_url'])
  t.strictSame(await bad({ annotations: { odd: true } }), ['annotations.odd'])
  t.strictSame(await bad({ input_schema: { $ref: '#/nowhere' } }), ['input_schema.$ref'])
  t.strictSame(await bad({ input_schema: { properties: { a: { type: 'nope' } } } }), [
    'input_schema.properties.a.type',
  ])
  t.strictSame(await bad({ input_schema: { properties: { a: { pattern: '(' } } } }), [
    'input_schema.properties.a.pattern',
  ])
  t.strictSame(fieldsOf(await s.refused('action.create', { name: 'other' }, 400, 'bad_request')), [
    'endpoint_url',
  ])
  t.strictSame(
    fieldsOf(
      await s.refused(
        'action.update',
        { action_name: 'resize', endpoint_url: there.url },
        400,
        'bad_request',
      ),
    ),
    ['endpoint_url'],
  )
  await s.refused('action.rotate_secret', { action_name: 'resize' }, 400, 'bad_request')
  for (const name of [
    'action.update',
    'action.delete',
    'action.get',
    'action.rotate_secret',
    'action.invoke',
    'catalog.action',
  ] as const)
    await s.refused(name, { action_name: 'none' }, 404, 'not_found')
  await s.ok('action.delete', { action_name: 'resize' })
  await s.ok('action.delete', { action_name: 'crm.lookup' })
  t.strictSame(idsOf(await s.ok('action.list', {})), [])
  const log = listOf(
    await s.ok('audit.list', { resource_type: 'action', resource_id: String(made['id']) }),
  )
  t.strictSame(
    log.map(({ action }) => action),
    ['delete', 'update', 'create'],
  )
})

t.test('a step sends a signed call, and the response is the output of the step', async (t) => {
  const { signing_secret, id } = await s.ok('action.create', {
    name: 'mail',
    endpoint_url: `${there.url}/mail`,
  })
  const from = there.deliveries.length
  there.answer = json({ sent: 3 })
  const started = await s.ok('run.start', {
    spec: {
      steps: [
        {
          id: 'send',
          kind: 'action',
          config: { action_name: 'mail', parameters: { to: '${{ input.to }}' } },
        },
      ],
      output: { sent: '${{ steps.send.output.sent }}' },
    },
    input: { to: 'ada' },
  })
  t.match(await ended(s, started['id']), { status: 'completed', result: { sent: 3 } })
  const delivery = await there.delivery(from)
  t.strictSame(delivery.body, {
    run_id: started['id'],
    step_key: 'send',
    parameters: { to: 'ada' },
  })
  t.ok(verified(delivery, String(signing_secret)))
  t.notOk(verified({ ...delivery, text: `${delivery.text} ` }, String(signing_secret)))
  const { headers } = delivery
  t.match(headers, {
    'content-type': 'application/json',
    'user-agent': 'service-actions/1',
    'x-service-secret-ref': 'service/action/mail',
    'x-service-secret-version': '1',
    'x-service-delivery-id': /^whd_/,
  })
  t.equal(headers['idempotency-key'], headers['x-service-delivery-id'])
  const [job] = listOf(await s.ok('run.jobs', { id: started['id'] }))
  t.match(job, {
    status: 'completed',
    executor_kind: 'server_worker',
    claim_attempt: 1,
    result: { sent: 3 },
  })
  t.match(await invocationOf(started['id']), {
    id: /^ainv_/,
    action_name: 'mail',
    source: 'loop',
    status: 'success',
    retry_count: 0,
    job_id: job?.['id'],
    step_name: 'send',
    action_id: id,
    definition_scope: 'project',
    invocation_format: 'legacy',
    actor_principal_type: 'service',
    delivery_id: headers['x-service-delivery-id'],
    secret_version: 1,
    http_status: 200,
    parameters: { to: 'ada' },
    output_summary: { sent: 3 },
  })
})

t.test(
  'the signed context contains actor and origin, and a rotated secret signs the next call',
  async (t) => {
    const made = await s.ok('action.create', {
      name: 'crm.sync',
      endpoint_url: `${there.url}/sync`,
      invocation_format: 'signed_context_v1',
    })
    const rotated = await s.ok('action.rotate_secret', { action_name: 'crm.sync' })
    t.match(rotated, { secret_ref: 'service/action/crm.sync', secret_version: 2 })
    t.not(rotated['signing_secret'], made['signing_secret'])
    const from = there.deliveries.length
    there.answer = (_, res) => {
      res.writeHead(200, { 'content-type': 'application/vnd.service.action+json' })
      res.end(
        JSON.stringify({ output: { done: true }, context: [{ name: 'crm', content: 'fresh' }] }),
      )
    }
    const run = await ended(
      s,
      (
        await s.ok('run.start', {
          spec: acting('crm.sync', {
            config: { action_name: 'crm.sync', parameters: { id: '42' } },
          }),
        })
      )['id'],
    )
    t.match(run, { status: 'completed' })
    const delivery = await there.delivery(from)
    t.ok(verified(delivery, String(rotated['signing_secret'])))
    t.equal(delivery.headers['x-service-secret-version'], '2')
    t.equal(
      delivery.headers['content-type'],
      'application/vnd.service.action-invocation+json; version=1',
    )
    const project = await s.ok('project.get', {})
    t.match(delivery.body, {
      service: {
        schema_version: 1,
        scope: { org_id: /^org_/, project_id: project['id'] },
        action: { id: made['id'], name: 'crm.sync' },
        actor: { principal_id: /^svc_/, principal_type: 'service' },
        origin: { kind: 'loop_action_step', run_id: run['id'], step_key: 'call' },
      },
      parameters: { id: '42' },
    })
    t.match(listOf(await s.ok('run.steps', { id: run['id'] })), [{ result: { done: true } }])
  },
)

t.test(
  'a loop run names its loop and acts for its starter; a triggered run has no actor',
  async (t) => {
    await s.ok('action.create', {
      name: 'crm.push',
      endpoint_url: `${there.url}/push`,
      invocation_format: 'signed_context_v1',
    })
    const loop = await s.ok('loop.create', {
      name: 'Pushes',
      steps: [{ id: 'call', kind: 'action', config: { action_name: 'crm.push' } }],
      triggers: [{ kind: 'event', key: 'e', config: { event_type: 'crm.changed' } }],
    })
    const caller = await s.ok('loop.create', {
      name: 'Calls',
      steps: [{ id: 'on', kind: 'loop', config: { loop_id: loop['id'] } }],
    })
    there.answer = json({ done: true })
    const run = await ended(s, (await s.ok('loop.start', { id: loop['id'] }))['id'])
    const child = await ended(
      s,
      (
        (await ended(s, (await s.ok('loop.start', { id: caller['id'] }))['id']))[
          'result'
        ] as unknown as { on: { run_id: string } }
      ).on.run_id,
    )
    const { source_event_id } = await s.ok('event.publish', { event_type: 'crm.changed' })
    const fired = await ended(
      s,
      (
        await until(
          async () => listOf(await s.ok('run.list', { source_event_id })),
          (runs) => runs.length > 0,
        )
      )[0]?.['id'],
    )
    for (const [{ id: run_id }, principal_type] of [
      [run, 'service'],
      [child, 'service'],
      [fired, 'system'],
    ] as const) {
      t.match(
        there.deliveries.find(
          ({ body }) =>
            (body as never as { service?: { origin: { run_id: unknown } } }).service?.origin
              .run_id === run_id,
        )?.body,
        {
          service: {
            actor: { principal_type },
            origin: { kind: 'loop_action_step', run_id, loop_id: loop['id'], step_key: 'call' },
          },
        },
      )
      t.match(await invocationOf(run_id), {
        loop_id: loop['id'],
        actor_principal_type: principal_type,
        parameters: {},
      })
    }
  },
)

t.test(
  'transient failures are retried under one delivery id with a new signature; others are final',
  async (t) => {
    await s.ok('action.create', { name: 'flaky', endpoint_url: `${there.url}/flaky` })
    const calls = async (step: Record<string, unknown>) =>
      ended(s, (await s.ok('run.start', { spec: acting('flaky', step) }))['id'])
    let from = there.deliveries.length
    there.answer = (delivery, res) =>
      there.deliveries.length - from < 3
        ? json({ busy: true }, 503)(delivery, res)
        : json({ at: 'last' })(delivery, res)
    const run = await calls({ retry: { max_attempts: 4, delay: '50ms' } })
    t.match(run, { status: 'completed' })
    const tried = there.deliveries.slice(from)
    t.equal(tried.length, 3)
    t.equal(new Set(tried.map(({ headers }) => headers['x-service-delivery-id'])).size, 1)
    t.equal(new Set(tried.map(({ text }) => text)).size, 1)
    t.ok(
      tried.every((one, i) => i === 0 || one.at - (tried[i - 1]?.at ?? 0) >= 45),
      'attempts are separated by the delay',
    )
    t.strictSame(
      (await timelineOf(s, run['id'])).filter((type) => type.startsWith('action.')),
      ['action.called', 'action.retried', 'action.retried', 'action.completed'],
    )
    t.match(await invocationOf(run['id']), { status: 'success', retry_count: 2 })

    from = there.deliveries.length
    there.answer = json({ why: 'no such customer' }, 422)
    const refused = await calls({ retry: { max_attempts: 5 } })
    t.match(refused, {
      status: 'failed',
      error_type: 'http_422',
      error_message: /no such customer/,
    })
    t.equal(there.deliveries.length - from, 1)
    t.match(await invocationOf(refused['id']), {
      status: 'failed',
      http_status: 422,
      error_type: 'http_422',
    })

    from = there.deliveries.length
    there.answer = json({}, 302, { location: `${there.url}/elsewhere` })
    t.match(await calls({ retry: { max_attempts: 5 } }), {
      status: 'failed',
      error_type: 'http_302',
    })
    t.equal(there.deliveries.length - from, 1, 'a redirect is not followed')

    there.answer = (_, res) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(`"${'x'.repeat(1_100_000)}"`)
    }
    t.match(await calls({}), { status: 'failed', error_type: 'response_too_large' })
    there.answer = (_, res) => {
      res.socket?.destroy()
    }
    from = there.deliveries.length
    t.match(await calls({ retry: { max_attempts: 2 } }), {
      status: 'failed',
      error_type: 'network_error',
    })
    t.equal(there.deliveries.length - from, 2)
    t.equal(
      listOf(await s.ok('invocation.list', { action_name: 'flaky', status: 'failed', limit: 100 }))
        .length,
      4,
    )
  },
)

t.test('response bodies of every format become outputs', async (t) => {
  await s.ok('action.create', { name: 'forms', endpoint_url: `${there.url}/forms` })
  const answers: readonly [string | undefined, string, unknown][] = [
    ['application/json', '{"a":1}', { a: 1 }],
    ['application/json', '[1,2]', { output: [1, 2] }],
    ['text/plain', 'hello', { text: 'hello' }],
    ['text/plain; charset=utf-8', '{"a":1}', { a: 1 }],
    [undefined, ' [1]', { output: [1] }],
    ['text/plain', '7', { text: '7' }],
    ['text/plain', '{a}', { text: '{a}' }],
    [undefined, '', {}],
    ['application/json', 'broken', { text: 'broken' }],
    ['application/vnd.service.action+json; charset=utf-8', '{"output":7}', { output: 7 }],
    ['application/problem+json', '{"b":2}', { b: 2 }],
  ]
  for (const [type, text, output] of answers) {
    there.answer = (_, res) => {
      res.writeHead(200, type === undefined ? {} : { 'content-type': type })
      res.end(text)
    }
    t.match(
      await s.ok('action.invoke', { action_name: 'forms' }),
      { status: 'completed', output },
      `${type}: ${text}`,
    )
  }
  there.answer = (_, res) => {
    res.writeHead(200, { 'content-type': 'application/vnd.service.action+json' })
    res.end('[]')
  }
  t.match(await s.ok('action.invoke', { action_name: 'forms' }), {
    status: 'failed',
    error: /envelope/,
  })
})

t.test('a direct call is validated, waits for its result, and is recorded', async (t) => {
  await s.ok('action.create', {
    name: 'price',
    endpoint_url: `${there.url}/price`,
    input_schema: {
      type: 'object',
      required: ['sku'],
      properties: { sku: { type: 'string' }, count: { type: 'integer' } },
      additionalProperties: false,
    },
  })
  const from = there.deliveries.length
  there.answer = json({ price: 9 })
  const answer = await s.call('action.invoke', {
    action_name: 'price',
    input: { sku: '${{ input.secret }}', count: 2 },
  })
  t.equal(answer.status, 200)
  t.match(answer.body, {
    status: 'completed',
    job_id: /^job_/,
    run_id: /^run_/,
    output: { price: 9 },
  })
  t.strictSame(
    (await there.delivery(from)).body['parameters'],
    { sku: '${{ input.secret }}', count: 2 },
    'input is not rendered as a template and keeps its types',
  )
  t.match(await invocationOf(answer.body['run_id']), { source: 'direct', status: 'success' })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'action.invoke',
        { action_name: 'price', input: { sku: 1 } },
        400,
        'bad_request',
      ),
    ),
    ['input.sku'],
  )
  t.strictSame(
    fieldsOf(
      await s.refused(
        'action.invoke',
        { action_name: 'price', input: { sku: 'a' }, dry_run: true },
        400,
        'bad_request',
      ),
    ),
    ['dry_run'],
  )
  await s.ok('action.update', { action_name: 'price', annotations: { read_only: true } })
  t.match(
    await s.call('action.invoke', { action_name: 'price', input: { sku: 'a' }, dry_run: true }),
    { status: 200, body: { status: 'completed' } },
  )
  await s.refused(
    'action.invoke',
    { action_name: 'price', input: {}, dry_run: true },
    400,
    'bad_request',
  )
  t.equal(there.deliveries.length, from + 1, 'no other call was sent')
  await s.ok('action.update', { action_name: 'price', annotations: null })

  there.answer = () => {}
  const slow = await s.call('action.invoke', {
    action_name: 'price',
    input: { sku: 'slow' },
    timeout_seconds: 1,
  })
  t.equal(slow.status, 202)
  t.match(slow.body, { status: 'active', run_id: /^run_/ })
  await s.ok('run.cancel', { id: slow.body['run_id'] })
  t.match(await ended(s, slow.body['run_id']), { status: 'cancelled' })
  t.match(await invocationOf(slow.body['run_id']), { status: 'cancelled' })

  there.answer = json({ price: 1 })
  const headers = { 'idempotency-key': 'once' }
  const [one, two] = [
    await s.ok('action.invoke', { action_name: 'price', input: { sku: 'b' } }, { headers }),
    await s.ok('action.invoke', { action_name: 'price', input: { sku: 'b' } }, { headers }),
  ]
  t.strictSame(one, two)
})

t.test('calling an action requires the permission to execute it', async (t) => {
  there.answer = json({})
  const role = await s.ok('role.create', {
    name: 'Pricer',
    permissions: ['service.project.view', 'actions.execute.price'],
  })
  const bot = await s.ok('principal.create', { name: 'pricer', role_ids: [role['id']] })
  const key = String((await s.ok('key.create', { name: 'pricer', principal_id: bot['id'] }))['key'])
  t.match(await s.ok('action.invoke', { action_name: 'price', input: { sku: 'a' } }, { key }), {
    status: 'completed',
  })
  await s.refused('action.invoke', { action_name: 'mail' }, 403, 'permission_denied', { key })
})

t.test('workers receive all jobs except those that the service executes', async (t) => {
  const worker = await s.worker({ concurrency_limit: 2 })
  t.teardown(() => worker.close())
  there.answer = json({ by: 'service' })
  t.match(await s.ok('action.invoke', { action_name: 'forms' }), { output: { by: 'service' } })
  const asked = worker.job()
  const run = await s.ok('run.start', { spec: acting('unknown') })
  const job = await asked
  t.equal(job['action_name'], 'unknown', 'jobs of an undefined action are for workers')
  await worker.report(job, { result: { by: 'worker' } })
  t.match(await ended(s, run['id']), { status: 'completed' })
  t.match(await s.refused('action.invoke', { action_name: 'unknown' }, 404, 'not_found'), {
    message: /is in the catalog after it was created with endpoint_kind worker/,
  })

  await s.ok('action.create', { name: 'thumb', endpoint_kind: 'worker' })
  t.match(await s.ok('catalog.action', { action_name: 'thumb' }), {
    readiness: 'ready',
    endpoint_kind: 'worker',
  })
  const claimed = worker.job()
  const called = s.ok('action.invoke', { action_name: 'thumb', input: { size: 3 } })
  await worker.report(await claimed, { result: { file: 'a.png' } })
  t.match(await called, { status: 'completed', output: { file: 'a.png' } })
  t.match(listOf(await s.ok('invocation.list', { action_name: 'thumb' })), [
    { source: 'direct', definition_scope: 'project', parameters: { size: 3 } },
  ])
  worker.close()
  await worker.closed
  await until(
    () => s.ok('catalog.action', { action_name: 'thumb' }),
    ({ readiness }) => readiness === 'needs_setup',
  )
  await s.refused('action.invoke', { action_name: 'thumb' }, 409, 'conflict')
})

t.test(
  'the service executes a job that waited for a worker once the action is defined',
  async (t) => {
    there.answer = json({ late: true })
    const run = await s.ok('run.start', { spec: acting('later') })
    await s.ok('action.create', { name: 'later', endpoint_url: `${there.url}/later` })
    t.match(await ended(s, run['id']), { status: 'completed' })
  },
)

t.test('the catalog lists the callable actions', async (t) => {
  await s.ok('workflow.create', {
    name: 'Bill',
    handle: 'bill',
    published_as_tool: true,
    spec: {
      input: { customer: { type: 'string', required: true } },
      steps: [{ kind: 'sleep', config: { duration: '0' } }],
    },
  })
  const entries = listOf(await s.ok('catalog.actions', {}))
  t.match(
    entries.find(({ name }) => name === 'price'),
    {
      source: 'custom',
      definition_scope: 'project',
      readiness: 'ready',
      endpoint_kind: 'http',
      risk: 'medium',
      annotations: { idempotent: false, destructive: false, read_only: false },
    },
  )
  t.match(
    entries.find(({ name }) => name === 'service.run.get'),
    { endpoint_kind: 'builtin', readiness: 'ready', description: /Only agents call this\.$/ },
  )
  t.match(
    entries.find(({ name }) => name === 'thumb'),
    { readiness: 'needs_setup', readiness_reason: 'provider_unavailable' },
  )
  t.match(await s.ok('catalog.action', { action_name: 'workflow.bill' }), {
    endpoint_kind: 'builtin',
    title: 'Bill',
    input_schema: {
      type: 'object',
      required: ['customer'],
      properties: { customer: { type: 'string' } },
    },
  })
  await s.refused('action.invoke', { action_name: 'workflow.bill' }, 400, 'bad_request')
})

t.test('invocations are filtered by every field and listed newest first', async (t) => {
  const all = await pages(s, 'invocation.list', {}, 7)
  t.ok(all.length > 15)
  t.strictSame(
    all.map(({ finished_at }) => String(finished_at)),
    all
      .map(({ finished_at }) => String(finished_at))
      .sort()
      .reverse(),
  )
  const one = all.find(
    ({ action_name, delivery_id }) => action_name === 'crm.sync' && delivery_id !== undefined,
  )
  for (const filter of ['run_id', 'job_id', 'action_id', 'delivery_id', 'secret_version'] as const)
    t.strictSame(
      idsOf(await s.ok('invocation.list', { [filter]: one?.[filter] })),
      [one?.['id']],
      filter,
    )
  t.ok(
    idsOf(
      await s.ok('invocation.list', {
        definition_scope: 'project',
        action_name: 'crm.sync',
        status: 'success',
      }),
    ).includes(String(one?.['id'])),
  )
  for (const filter of [
    { definition_scope: 'organization' },
    { correlation_id: 'none' },
    { environment_id: 'none' },
    { status: 'odd' },
  ])
    t.strictSame(idsOf(await s.ok('invocation.list', filter)), [])
})
