/**
 * Environments over HTTP without hosts, so no environment is ever prepared: creation, names,
 * owners, lists, the start of workers, and destruction.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { fieldsOf, ids, idsOf, listOf, pages, sleeping, until } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const missing = 'env_01AAAAAAAAAAAAAAAAAAAAAA0C'
const create = (input: object = {}) => s.ok('environment.create', { ...input })
const project = async (handle: string) => {
  await s.ok('project.create', { name: handle, handle })
  return handle
}
const everything = { include: 'worker_state,jobs_in_progress' }

t.test('an environment is created, read, changed and destroyed', async (t) => {
  const me = (await s.ok('me.get'))['principal'] as unknown as { id: string }
  const made = await create({ name: 'desk', tags: { team: 'docs' } })
  t.match(made, {
    id: /^env_/,
    name: 'desk',
    provider: 'local',
    status: 'provisioning',
    lifetime: 'explicit',
    retention_policy: 'manual',
    cleanup_status: 'none',
    mode: 'manual',
    owned_by: me.id,
    tags: { team: 'docs' },
  })
  t.notOk('worker_state' in made, 'additions are shown on request')
  const environment_id = made['id']
  t.strictSame(await s.ok('environment.get', { environment_id }), made)
  t.match(await s.ok('environment.get', { environment_id, ...everything }), {
    worker_state: 'stopped',
    jobs_in_progress: 0,
  })
  const changed = await s.ok('environment.update', { environment_id, tags: { team: 'code' } })
  t.strictSame(changed['tags'], { team: 'code' })
  const bare = await s.ok('environment.update', { environment_id, tags: {}, owned_by: null })
  t.notOk('tags' in bare || 'owned_by' in bare)
  const gone = await s.ok('environment.delete', { environment_id })
  t.match(gone, { id: environment_id, status: 'destroyed' })
  t.strictSame(await s.ok('environment.delete', { environment_id }), gone, 'a repeat')
  t.strictSame(await s.ok('environment.get', { environment_id }), gone)
  await s.refused('environment.update', { environment_id, tags: {} }, 409, 'conflict')
  await s.refused('environment.acquire', { environment_id }, 409, 'environment_not_ready')
  await s.refused('environment.start_worker', { environment_id }, 409, 'environment_not_ready')
})

t.test('a definition names a provider of the installation or an alias of one', async (t) => {
  const spec = (provider: string) => ({
    steps: [{ kind: 'sleep', config: { duration: '1s' } }],
    defaults: { environment: { provider } },
  })
  for (const name of ['local', 'sprites', 'worker'])
    await s.ok('loop.create', { name: `On ${name}`, ...spec(name) })
  const loop = await s.refused('loop.create', { name: 'x', ...spec('moon') }, 400, 'bad_request')
  t.same(fieldsOf(loop), ['defaults.environment.provider'])
  const flow = { name: 'x', spec: spec('moon') }
  for (const row of ['workflow.create', 'run.start'] as const) {
    const refused = await s.refused(
      row,
      row === 'run.start' ? { spec: flow.spec } : flow,
      400,
      'bad_request',
    )
    t.same(fieldsOf(refused), ['spec.defaults.environment.provider'], row)
  }
})

t.test('unknown environments are not found', async () => {
  for (const environment_id of [missing, 'env_1', 'desk']) {
    await s.refused('environment.get', { environment_id }, 404, 'not_found')
    await s.refused('environment.update', { environment_id, tags: {} }, 404, 'not_found')
    await s.refused('environment.update', { environment_id, scope: 'owner' }, 404, 'not_found')
    await s.refused('environment.delete', { environment_id }, 404, 'not_found')
    await s.refused('environment.acquire', { environment_id }, 404, 'not_found')
    await s.refused('environment.start_worker', { environment_id }, 404, 'not_found')
    await s.refused('environment.worker_logs', { environment_id }, 404, 'not_found')
    await s.refused(
      'environment.git_credentials',
      { environment_id, repo_full_name: 'a/b' },
      404,
      'not_found',
    )
  }
})

t.test('a wrong creation is refused with its fields', async (t) => {
  const faults = async (input: object) =>
    fieldsOf(await s.refused('environment.create', { ...input }, 400, 'bad_request'))
  for (const name of ['', '-a', 'a b', 'x'.repeat(64), 'env-0123456789'])
    t.strictSame(await faults({ name }), ['name'], name)
  for (const provider of ['worker', 'docker', 'Upper'])
    t.strictSame(await faults({ provider }), ['provider'], provider)
  t.strictSame(await faults({ tags: { 'service:x': 'y' } }), ['tags.service:x'])
  t.strictSame(await faults({ mode: 'run' }), ['run_id'])
  t.strictSame(await faults({ mode: 'loop', run_id: 'run_1' }), ['run_id', 'loop_id'])
  t.strictSame(await faults({ agent_id: 'agt_1' }), ['agent_id'])
  t.strictSame(await faults({ template_id: 'other' }), ['template_id'])
  t.match(await create({ provider: 'sprites' }), { provider: 'local' }, 'an alias')
})

t.test('a name belongs to one environment of a project, or of an owner', async (t) => {
  const one = await create({ name: 'shared' })
  const { details } = await s.refused(
    'environment.create',
    { name: 'shared' },
    409,
    'already_exists',
  )
  t.match(details, { name: 'shared' })
  const raced = await Promise.all(
    Array.from({ length: 6 }, () => s.call('environment.create', { name: 'raced' })),
  )
  t.strictSame(raced.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409])
  const mine = { name: 'shared', scope: 'owner' }
  const [ann, bob] = [
    await create({ ...mine, owned_by: 'user_ann' }),
    await create({ ...mine, owned_by: 'user_bob' }),
  ]
  await s.refused('environment.create', { ...mine, owned_by: 'user_bob' }, 409, 'already_exists')
  const change = (environment: Record<string, unknown>, input: object) =>
    ['environment.update' as const, { environment_id: environment['id'], ...input }] as const
  await s.refused(...change(ann, { scope: null }), 409, 'already_exists')
  await s.refused(...change(ann, { owned_by: 'user_bob' }), 409, 'already_exists')
  t.match(await s.ok(...change(ann, { owned_by: 'user_eve' })), { owned_by: 'user_eve' })
  t.match(
    await s.ok(...change(bob, { owned_by: 'user_ann' })),
    { owned_by: 'user_ann' },
    'the former name is free',
  )
  await s.ok('environment.delete', { environment_id: one['id'] })
  const moved = await s.ok(...change(ann, { scope: null }))
  t.notOk('scope' in moved)
  await s.refused('environment.create', { name: 'shared' }, 409, 'already_exists')
  t.match(await create({ ...mine, owned_by: 'user_eve' }), { owned_by: 'user_eve' })
  const other = await project('names')
  t.match(await create({ project: other, name: 'shared' }), { name: 'shared' })
})

t.test('only the environment of a run ends with the run', async (t) => {
  for (const name of ['environment.create', 'environment.acquire_matching'] as const)
    t.match(await s.refused(name, { name: 'no-run', lifetime: 'run' }, 400, 'bad_request'), {
      details: { fields: [{ field: 'lifetime', message: 'run requires the mode run' }] },
    })
  const resources = { environments: [{ key: 'e', name: 'no-run', lifetime: 'run' }] }
  for (const mode of ['preview', 'apply'])
    t.match(await s.refused('blueprint.apply', { resources, mode }, 400, 'bad_request'), {
      details: { fields: [{ field: 'resources.environments[0].lifetime' }] },
    })
  await create({ name: 'no-run', lifetime: 'lease' })
})

t.test('an owner is the id of a principal', async (t) => {
  const { id: environment_id } = await create({ name: 'owned' })
  const calls = [
    ['environment.create', { name: 'other' }],
    ['environment.acquire_matching', { name: 'other' }],
    ['environment.update', { environment_id }],
    ['environment.attach', { name: 'other' }],
  ] as const
  for (const [name, input] of calls)
    for (const owned_by of ['Ann', 'ann@example.org', 'role_viewer', 'user_'])
      t.match(await s.refused(name, { ...input, owned_by }, 400, 'bad_request'), {
        details: { fields: [{ field: 'owned_by', actual: owned_by }] },
      })
  t.match(await s.ok('environment.update', { environment_id, owned_by: 'agt_1' }), {
    owned_by: 'agt_1',
  })
})

t.test('concurrent changes of owners leave each name with one environment', async (t) => {
  const owners = ['user_1', 'user_2', 'user_3']
  const all = await Promise.all(
    owners.map((owned_by) => create({ name: 'many', scope: 'owner', owned_by })),
  )
  const next = [...owners, 'user_4', 'user_5', 'user_6']
  await Promise.all(
    all.flatMap(({ id }) =>
      next.map((owned_by) => s.call('environment.update', { environment_id: id, owned_by })),
    ),
  )
  const records = await Promise.all(
    all.map(({ id }) => s.ok('environment.get', { environment_id: id })),
  )
  const taken = records.map(({ owned_by }) => String(owned_by))
  t.equal(new Set(taken).size, 3)
  for (const owned_by of next) {
    const { status } = await s.call('environment.create', {
      name: 'many',
      scope: 'owner',
      owned_by,
    })
    t.equal(status, taken.includes(owned_by) ? 409 : 201, owned_by)
  }
})

t.test('a refused change of the scope reserves no name', async (t) => {
  const { id: environment_id } = await create({ name: 'kept' })
  const move = { environment_id, scope: 'owner' }
  const refused = await s.call('environment.update', move, { headers: { 'if-match': '"other"' } })
  t.equal(refused.status, 412)
  t.match(await create({ name: 'kept', scope: 'owner' }), { scope: 'owner' })
  await s.refused('environment.update', move, 409, 'already_exists')
})

t.test('an environment without a name gets one', async (t) => {
  const [one, two] = [await create(), await create()]
  t.match(one['name'], /^env-[0-9A-Z]{10}$/)
  t.not(one['name'], two['name'])
})

t.test('a creation under an idempotency key is answered as the first time', async (t) => {
  for (const input of [{ name: 'keyed' }, {}]) {
    const headers = { 'idempotency-key': `make ${JSON.stringify(input)}` }
    const first = await s.call('environment.create', input, { headers })
    t.equal(first.status, 201)
    await s.ok('environment.delete', { environment_id: first.body['id'] })
    const again = await s.call('environment.create', input, { headers })
    t.strictSame([again.status, again.body], [201, first.body])
    const changed = await s.call('environment.create', { name: 'else' }, { headers })
    t.equal(changed.status, 409)
  }
})

t.test('an environment belongs to a run, an agent or a loop that exists', async (t) => {
  const run = await s.ok('run.start', { spec: sleeping() })
  const bound = { mode: 'run', run_id: run['id'] }
  const headers = { 'idempotency-key': 'for a run' }
  const { body: made } = await s.call('environment.create', bound, { headers })
  t.match(made, { ...bound, lifetime: 'run', retention_policy: 'destroy_on_success' })
  t.equal(String(made['id']).slice(4), String(run['id']).slice(4))
  await s.refused('environment.create', bound, 409, 'already_exists')
  t.match(await create({ ...bound, name: 'second' }), { ...bound, name: 'second' })
  const list = await s.ok('environment.list', { run_id: run['id'] })
  t.strictSame(
    listOf(list).map(({ name }) => name),
    ['second', made['name']],
  )
  await s.ok('run.cancel', { id: run['id'] })
  await until(
    () => s.ok('run.get', { id: run['id'] }),
    ({ status }) => status === 'cancelled',
  )
  await s.refused('environment.create', { ...bound, name: 'late' }, 409, 'conflict')
  const again = await s.call('environment.create', bound, { headers })
  t.strictSame([again.status, again.body], [201, made], 'also after the run has ended')
  const agent = await s.ok('agent.create', {
    name: 'env agent',
    model_route: { mode: 'worker', provider: 'any', model: 'm' },
  })
  t.match(await create({ mode: 'agent', agent_id: agent['id'] }), {
    lifetime: 'lease',
    retention_policy: 'retain_always',
  })
  const loop = await s.ok('loop.create', { name: 'env loop', ...sleeping() })
  t.match(await create({ mode: 'loop', loop_id: loop['id'] }), { loop_id: loop['id'] })
  const unknown = '_01AAAAAAAAAAAAAAAAAAAAAA0C'
  for (const input of [
    { mode: 'run', run_id: `run${unknown}` },
    { mode: 'agent', agent_id: `agt${unknown}` },
    { mode: 'loop', loop_id: `loop${unknown}` },
    { mode: 'loop', loop_id: 'any' },
  ])
    await s.refused('environment.create', input, 404, 'not_found')
})

t.test('lists are filtered, and show destroyed environments on request', async (t) => {
  const at = { project: await project('lists') }
  const all = []
  for (let i = 0; i < 5; i++) all.push(await create({ ...at, name: `n${i}` }))
  const newest = ids(all).reverse()
  t.strictSame(ids(await pages(s, 'environment.list', at)), newest)
  const [first, second] = all
  const since = String(
    (await s.ok('environment.delete', { ...at, environment_id: first?.['id'] }))['updated_at'],
  )
  const list = async (input: object) => idsOf(await s.ok('environment.list', { ...at, ...input }))
  t.strictSame(await list({}), newest.slice(0, 4))
  t.strictSame(await list({ include_destroyed: true }), newest)
  t.strictSame(await list({ status: 'destroyed' }), [first?.['id']])
  t.strictSame(await list({ status: 'provisioning', limit: 2 }), newest.slice(0, 2))
  t.strictSame(await list({ status: 'ready' }), [])
  t.strictSame(await list({ include_destroyed: true, destroyed_since: since }), newest)
  const later = '2999-01-01T00:00:00.000Z'
  t.strictSame(
    await list({ include_destroyed: true, destroyed_since: later }),
    newest.slice(0, 4),
    'only destroyed environments are narrowed',
  )
  await s.refused('environment.list', { ...at, status: 'gone' }, 400, 'bad_request')
  const one = { ...at, environment_id: second?.['id'] }
  await s.ok('environment.acquire', one)
  const shown = listOf(await s.ok('environment.list', at))
  t.strictSame(
    shown.find(({ id }) => id === second?.['id']),
    await s.ok('environment.get', one),
    'the record of a list is that of the owner',
  )
})

t.test('the start of a worker is accepted, and waits for a host', async (t) => {
  const repositories = [{ full_name: 'a/b', push: false }]
  const { id: environment_id } = await create({ repositories })
  const input = { environment_id, keep_warm: '5m', concurrency: 2 }
  const started = await Promise.all([
    s.call('environment.start_worker', input),
    s.call('environment.start_worker', input),
  ])
  for (const { status, body } of started) {
    t.equal(status, 202)
    t.match(body, { environment: { id: environment_id }, started: true })
  }
  await s.refused(
    'environment.worker_logs',
    { environment_id },
    409,
    'environment_worker_unavailable',
  )
  await s.refused(
    'environment.git_credentials',
    { environment_id, repo_full_name: 'a/b' },
    503,
    'service_unavailable',
  )
  await s.refused('environment.attach', { name: 'mine' }, 404, 'not_found')
})

t.test('changes are in the audit log, without tokens', async (t) => {
  const { id } = await create({ name: 'audited' })
  const leased = (await s.ok('environment.acquire', { environment_id: id })) as Record<
    string,
    Record<string, string>
  >
  await s.ok('environment.update', { environment_id: id, tags: { a: 'b' } })
  await s.ok('environment.delete', { environment_id: id })
  const entries = listOf(await s.ok('audit.list', { resource_id: id, limit: 100 }))
  const actions = entries.map(({ action }) => String(action))
  t.equal(actions.at(-1), 'create')
  t.ok(actions.includes('update') && actions.includes('delete'))
  t.notMatch(JSON.stringify(entries), leased['lease']?.['token'] ?? 'none')
})

t.test('environments of another project do not exist', async (t) => {
  const other = await project('foreign')
  const { id: environment_id } = await create()
  const at = { project: other, environment_id }
  await s.refused('environment.get', at, 404, 'not_found')
  await s.refused('environment.delete', at, 404, 'not_found')
  await s.refused('environment.acquire', at, 404, 'not_found')
  t.strictSame(listOf(await s.ok('environment.list', { project: other })), [])
})

t.test('the environments of a deleted project are destroyed', async (t) => {
  const handle = await project('doomed')
  const { id } = await create({ project: handle })
  await s.ok('project.delete', { project: handle })
  await until(
    () => s.ok('audit.list', { resource_id: id }),
    (answer) => listOf(answer).some(({ action }) => action === 'delete'),
  )
  t.pass('the audit log shows the destruction')
})

t.test('lists and records agree after a restart', async (t) => {
  const before = await pages(s, 'environment.list', { include_destroyed: true }, 20)
  t.ok(before.length > 20)
  await s.restart()
  const after = await pages(s, 'environment.list', { include_destroyed: true }, 20)
  t.strictSame(after, before)
  for (const record of after)
    t.strictSame(await s.ok('environment.get', { environment_id: record['id'] }), record)
})

t.test('actions are called by their names of earlier releases', async (t) => {
  const { id: environment_id } = await create({ name: 'earlier' })
  const { id: role } = await s.ok('role.create', {
    name: 'Publisher',
    permissions: ['service.project.view', 'actions.execute.environment.artifact.publish'],
  })
  const bot = await s.ok('principal.create', { name: 'publisher', role_ids: [role] })
  const made = await s.ok('key.create', { name: 'publisher', principal_id: bot['id'] })
  const as = { key: String(made['key']) }
  const [publish, download] = ['environment.artifacts.publish', 'environment.artifacts.download']
  const call = { action_name: publish, environment_id, input: { path: 'a' }, timeout_seconds: 1 }
  const { run_id: id } = await s.ok('action.invoke', call, as)
  const { items } = await s.ok('run.jobs', { id })
  t.match(items, [{ action_name: 'environment.artifact.publish' }], 'the current name is stored')
  await s.ok('run.cancel', { id })
  await s.refused('action.invoke', { ...call, action_name: download }, 403, 'permission_denied', as)
  t.match(await s.ok('catalog.action', { action_name: download }), {
    name: 'environment.artifact.download',
  })
})
