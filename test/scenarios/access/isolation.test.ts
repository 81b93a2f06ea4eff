/**
 * Calls every operation of the API table without access: with no credential, with an unknown one,
 * and with the key of another project. A new operation is tested automatically.
 */
import t from 'tap'
import { api, type RowName } from '../../../protocol/api.ts'
import { type Row, routeOf } from '../../../protocol/contract.ts'
import { requestOf, service } from '../../support/service.ts'
import { acting, instant, listOf, sleeping } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const rows = Object.entries(api) as [RowName, Row][]
const STRANGER = 'stranger'
/** A text that identifies the data of the other project. */
const MARK = 'Xylophone'

const taken = { name: 'taken over' }
const columns = [{ name: 'name', type: 'string', required: true }]
const tableSchema = { identity_column: 'name', columns }
/** Valid request bodies, by operation, so that a call is refused only for lack of access. */
const bodies: Readonly<Record<string, object>> = {
  'run.start': { spec: instant() },
  'run.cancel_many': { run_ids: ['run_x'] },
  'run.retry_many': { run_ids: ['run_x'] },
  'run.signal': { name: 'go' },
  'workflow.create': { name: 'Taken over', spec: instant() },
  'workflow.update': { name: 'Taken over' },
  'project.update': { name: 'Taken over' },
  'project.create': { name: 'Taken over' },
  'key.create': { name: 'taken over' },
  'key.create_organization': { name: 'taken over' },
  'key.create_organization_old': { name: 'taken over' },
  'interaction.create': {
    kind: 'request_approval',
    title: 'taken over',
    target_user_ids: ['svc_x'],
  },
  'interaction.respond': { value: true },
  'interaction.review': { action: 'accept' },
  'action.create': { name: 'taken-over', endpoint_url: 'https://example.org' },
  'action.update': { title: 'taken over' },
  'action.invoke': { input: {} },
  'organization_action.create': { name: 'taken.over', endpoint_url: 'https://example.org' },
  'organization_action.update': { title: 'taken over' },
  'resolver.put': { source: 'stored', timeout_ms: 666 },
  'oauth_origins.put': { origins: ['https://taken.over.example'] },
  'principal.create': { name: 'taken over' },
  'principal.update': { state: 'disabled' },
  'user.create': { name: 'taken over' },
  'user.update': { state: 'disabled' },
  'token.create': { name: 'taken over' },
  'me.create_token': { name: 'taken over' },
  'role.create': { name: 'taken over', permissions: [] },
  'role.update': { permissions: [] },
  'assignment.create': { principal_id: 'svc_x', role_id: 'role_viewer' },
  'loop.create': { name: 'taken over', ...instant() },
  'loop.update': { name: 'taken over' },
  'table.create': { name: 'taken_over', schema: tableSchema },
  'table.update': { description: 'taken over' },
  'table.search': { query: 'theirs' },
  'row.search': { query: 'theirs' },
  'row.update': { data: taken },
  'row.insert': { data: taken },
  'row.upsert': { data: taken },
  'row.upsert_at_rows': { data: taken },
  'row.bulk': { rows: [taken] },
  'row.bulk_at_rows': { rows: [taken] },
  'channel.create': { name: 'taken-over' },
  'channel.update': { topic: 'taken over' },
  'channel.add_member': { user_id: 'svc_x' },
  'channel.send': { content: 'taken over' },
  'channel.edit': { content: 'taken over' },
  'channel.mark_read': { seq: 0 },
  'environment.attach': { name: 'taken-over' },
  'environment.release': { lease_token: 'taken-over' },
  'environment.git_credentials': { repo_full_name: 'taken/over' },
  'webhook.create': { name: 'taken over' },
  'webhook.update': { name: 'taken over' },
  'secret.put': { entries: { a: 'taken over' } },
  'mcp.send': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  'event.publish': { event_type: 'taken.over' },
  'event.publish_many': { events: [{ event_type: 'taken.over' }] },
  'agent.invoke': {
    agent_ref: { name: `${MARK} agent` },
    input: { content: [{ type: 'text', text: 'taken over' }] },
  },
  'session.create': { agent_id: 'agt_x' },
  'session.update': { title: 'taken over' },
  'session.append': {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'taken over' }] }],
  },
  'session.attach': { file: 'aGVsbG8=' },
  'session.start_turn': { content: [{ type: 'text', text: 'taken over' }] },
  'session.nudge': { content: 'taken over' },
  'agent.create': { name: 'taken over' },
  'agent.update': { name: 'taken over' },
  'agent.assign_toolkits': { toolkit_ids: [] },
  'agent.assign_skills': { skill_ids: [] },
  'agent.set_binding': { provider: 'slack', integration_id: 'taken over' },
  'memory.save': { content: 'taken over' },
  'toolkit.create': { name: 'taken over' },
  'toolkit.replace': { name: 'taken over' },
  'skill.import': { content: 'taken over', name: 'taken over' },
  'skill.import_organization': { content: 'taken over', name: 'taken over' },
  ...Object.fromEntries(
    [
      'skill.create',
      'skill.replace',
      'skill.create_organization',
      'skill.replace_organization',
    ].map((name) => [name, { name: 'taken over', instructions: 'taken over' }]),
  ),
}
const slotsOf = (row: Row): string[] => routeOf(row).slots
/**
 * Returns the status, text and content type of an operation's response. A stream is closed as soon
 * as it begins, and its text is `a stream`.
 */
async function ask(
  name: RowName,
  input: Record<string, unknown>,
  key: string | null,
): Promise<{ status: number; text: string; type: string }> {
  const { id, project, worker_instance_id, ...rest } = input
  const given: Record<string, unknown> = {
    id,
    project,
    worker_instance_id,
    message_id: message['id'],
    user_id: principal['id'],
    token: token['id'],
    memory_key: 'likes',
    binding_id: binding['id'],
    action_name: ACTION,
    action_id: shared['id'],
    version: '1',
    webhook_id: webhook['id'],
    delivery_id: 'whd_none',
    trigger_id: 'manual',
    secret_name: SECRET,
    host_name: HOST,
    blueprint_key: HOST,
    session_id: id,
    turn_id: talk['turn']?.['id'],
    artifact_id: (file as Record<string, Record<string, unknown>>)['artifact']?.['id'],
    nudge_id: nudge['nudge_id'],
    row_id: row['id'],
    environment_id: environment['id'],
  }
  const { method, path, body } = requestOf(api[name], {
    ...bodies[name],
    ...rest,
    ...Object.fromEntries(slotsOf(api[name]).map((slot) => [slot, given[slot]])),
  })
  const abort = new AbortController()
  const answer = await fetch(s.url + path, {
    method,
    signal: abort.signal,
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body }),
  })
  const type = answer.headers.get('content-type') ?? ''
  const text = type.startsWith('text/event-stream') ? 'a stream' : await answer.text()
  abort.abort()
  return { status: answer.status, text, type }
}

const project = 'other'
await s.ok('project.create', { name: `${MARK} project`, handle: project })
const worker = await s.worker(
  { action_names: ['act'], worker_instance_id: `${MARK}-worker` },
  { project },
)
t.teardown(() => worker.close())
const stranger = await s.ok('key.create', {
  name: STRANGER,
  principal_id: (await s.ok('principal.create', { name: STRANGER, role_ids: ['role_owner'] }))[
    'id'
  ],
})
const key = String(stranger['key'])
const workflow = await s.ok('workflow.create', { project, name: `${MARK} flow`, spec: sleeping() })
const run = await s.ok('workflow.run', {
  project,
  id: workflow['id'],
  external_id: MARK,
  input: { secret: MARK },
})
await s.ok('run.start', { project, spec: acting() })
const failed = await s.ok('run.start', {
  project,
  spec: { steps: [{ kind: 'sleep', config: { duration: '0' }, if: 'meta.run_id' }] },
})
const principal = await s.ok('principal.create', {
  project,
  name: `${MARK} bot`,
  role_ids: ['role_viewer'],
})
const channel = await s.ok('channel.create', {
  project,
  name: 'theirs',
  topic: MARK,
  member_ids: [String(principal['id'])],
})
const message = await s.ok('channel.send', {
  project,
  id: channel['id'],
  content: `${MARK} message`,
})
const held = await s.ok('key.create', {
  project,
  name: `${MARK} key`,
  principal_id: principal['id'],
})
const asked = await s.ok('interaction.create', {
  project,
  kind: 'request_approval',
  title: `${MARK}?`,
  target_user_ids: [principal['id']],
})
const user = await s.ok('user.create', { project, name: `${MARK} person` })
const token = await s.ok('token.create', { project, id: user['id'], name: `${MARK} token` })
const role = await s.ok('role.create', {
  project,
  name: `${MARK} role`,
  permissions: ['service.project.view'],
})
const assignment = await s.ok('assignment.create', {
  project,
  principal_id: user['id'],
  role_id: role['id'],
})
const event = await s.ok('event.publish', {
  project,
  event_type: 'order.paid',
  event: { word: MARK },
})
const loop = await s.ok('loop.create', { project, name: `${MARK} loop`, ...sleeping() })
const agent = await s.ok('agent.create', {
  project,
  name: `${MARK} agent`,
  system_prompt: MARK,
  model_route: { mode: 'worker', provider: MARK, model: 'm' },
})
const toolkit = await s.ok('toolkit.create', { project, name: `${MARK} toolkit` })
const skill = await s.ok('skill.create', { project, name: `${MARK} skill`, instructions: MARK })
await s.ok('agent.assign_toolkits', { project, id: agent['id'], toolkit_ids: [toolkit['id']] })
await s.ok('agent.assign_skills', { project, id: agent['id'], skill_ids: [skill['id']] })
await s.ok('memory.save', { project, id: agent['id'], memory_key: 'likes', content: MARK })
const binding = await s.ok('agent.set_binding', {
  project,
  id: agent['id'],
  provider: 'slack',
  integration_id: MARK,
})
const ACTION = 'theirs-only'
await s.ok('action.create', {
  project,
  name: ACTION,
  title: MARK,
  endpoint_url: 'https://example.org',
})
const shared = await s.ok('organization_action.create', {
  name: 'shared.one',
  endpoint_url: 'https://example.org',
})
const talk = (await s.ok('agent.invoke', {
  project,
  agent_ref: { id: agent['id'] },
  session: { title: MARK },
  input: { content: [{ type: 'text', text: MARK }] },
})) as Record<string, Record<string, unknown>>
const nudge = await s.ok('session.nudge', {
  project,
  session_id: talk['session']?.['id'],
  content: MARK,
})
const file = await s.ok('session.attach', {
  project,
  session_id: talk['session']?.['id'],
  name: `${MARK}.txt`,
  file: Buffer.from(MARK).toString('base64'),
})
const webhook = await s.ok('webhook.create', {
  project,
  name: `${MARK} hook`,
  url: 'https://example.org/',
})
const SECRET = 'theirs'
await s.ok('secret.put', { project, secret_name: SECRET, entries: { word: MARK } })
const HOST = 'theirs-git'
await s.ok('repository_host.put', {
  project,
  host_name: HOST,
  kind: 'token',
  url: 'https://git.invalid',
  read_token: MARK,
})
await s.ok('blueprint.apply', {
  project,
  blueprint_key: HOST,
  resources: { skills: [{ key: HOST, name: `${MARK} bound`, instructions: MARK }] },
})
const definition = { name: 'theirs', description: MARK, schema: tableSchema }
const table = await s.ok('table.create', { project, ...definition })
const row = await s.ok('row.insert', { project, id: table['id'], data: { name: MARK } })
const environment = await s.ok('environment.create', { project, name: MARK })
const project_id = String((await s.ok('project.get', { project }))['id'])

/**
 * Returns ids of the other project that are suitable for the `:id` slot of an operation, the best
 * match first.
 */
const idsFor = (name: string): unknown[] =>
  name.startsWith('run.')
    ? [run['id'], failed['id']]
    : name.startsWith('workflow.')
      ? [workflow['id'], workflow['handle']]
      : name.startsWith('key.')
        ? [held['id']]
        : name.startsWith('principal.')
          ? [principal['id'], user['id']]
          : /^(user|token)\./.test(name)
            ? [user['id'], principal['id']]
            : name.startsWith('interaction.')
              ? [asked['id']]
              : name.startsWith('loop.')
                ? [loop['id'], loop['name']]
                : name.startsWith('event.')
                  ? [event['source_event_id']]
                  : name.startsWith('channel.')
                    ? [channel['id']]
                    : /^(agent|memory)\./.test(name)
                      ? [agent['id']]
                      : name.startsWith('toolkit.')
                        ? [toolkit['id']]
                        : name.startsWith('skill.')
                          ? [skill['id']]
                          : /^(table|row)\./.test(name)
                            ? [table['id']]
                            : name.startsWith('session.')
                              ? [talk['session']?.['id']]
                              : name.startsWith('assignment.')
                                ? [assignment['id']]
                                : [role['id']]

t.test(
  'every operation answers only 401 without a credential or with an unknown one',
  async (t) => {
    for (const [name, row] of rows) {
      for (const credential of [null, 'bat_0000000000000000000000000000000000000000', `${key}x`]) {
        const { status, text } = await ask(
          name,
          { project, id: idsFor(name)[0], worker_instance_id: `${MARK}-worker` },
          credential,
        )
        if (row.shape.stream === 'socket')
          t.ok(status >= 400, `${name} is not a plain request: ${status}`)
        else if (status !== 401 || !text.includes('"unauthorized"'))
          t.fail(`${name} answered ${status} ${text}`)
        else t.notMatch(text, MARK)
      }
    }
  },
)

t.test(
  'the key of another project is rejected by every operation of the project, by handle and by id',
  async (t) => {
    for (const [name, row] of rows) {
      if (!slotsOf(row).includes('project')) continue
      for (const place of [project, project_id])
        for (const id of idsFor(name)) {
          const { status, text } = await ask(
            name,
            { project: place, id, worker_instance_id: `${MARK}-worker` },
            key,
          )
          if (row.shape.stream === 'socket') t.ok(status >= 400, `${name}: ${status}`)
          else if (status !== 403 && status !== 404)
            t.fail(`${name} answered ${status} ${text} to a stranger`)
          t.notMatch(text, MARK, name)
        }
    }
  },
)

t.test('ids of another project are not found, and operations on them have no effect', async (t) => {
  for (const [name, row] of rows) {
    if (row.shape.stream === 'socket' || name === 'project.delete') continue
    const slots = slotsOf(row)
    for (const id of idsFor(name)) {
      const { status, text } = await ask(
        name,
        { project: 'default', id, worker_instance_id: `${MARK}-worker` },
        key,
      )
      t.notMatch(text, MARK, `${name} answered ${status} with a record of another project`)
      t.notMatch(text, String(run['id']), name)
      const names =
        slots.includes('id') ||
        slots.includes('session_id') ||
        slots.includes('turn_id') ||
        slots.includes('worker_instance_id') ||
        slots.includes('action_name') ||
        slots.includes('action_id') ||
        slots.includes('webhook_id')
      if (names && status !== 403 && status !== 404)
        t.fail(`${name} answered ${status} ${text} for an id of another project`)
    }
  }
  const many = { run_ids: [run['id'], failed['id']] }
  for (const name of ['run.cancel_many', 'run.retry_many'] as const) {
    const { status, text } = await ask(name, { project: 'default', ...many }, key)
    t.equal(status, 200)
    t.strictSame(
      (JSON.parse(text) as { results: { error?: { code: string } }[] }).results.map(
        ({ error }) => error?.code,
      ),
      ['not_found', 'not_found'],
    )
  }
  const start = await ask(
    'run.start',
    { project: 'default', spec: undefined, definition_id: workflow['id'] },
    key,
  )
  t.equal(start.status, 404, 'a workflow of another project cannot be started')
  for (const filter of [{ external_id: MARK }, { parent_run_id: run['id'] }])
    t.match(JSON.parse((await ask('run.list', { project: 'default', ...filter }, key)).text), {
      items: [],
    })
})

t.test('none of these calls has changed the other project', async (t) => {
  t.match(await s.ok('run.get', { project, id: run['id'] }), {
    status: 'suspended',
    cancel_requested: false,
  })
  t.match(await s.ok('run.get', { project, id: failed['id'] }), { status: 'failed' })
  t.match(await s.ok('workflow.get', { project, id: workflow['id'] }), {
    name: `${MARK} flow`,
    latest_version: 1,
  })
  t.match(await s.ok('principal.get', { project, id: principal['id'] }), { state: 'active' })
  t.match(await s.ok('user.get', { project, id: user['id'] }), {
    state: 'active',
    role_ids: [role['id']],
  })
  t.match(await s.ok('role.get', { project, id: role['id'] }), {
    permissions: ['service.project.view'],
  })
  t.equal(listOf(await s.ok('token.list', { project, id: user['id'] })).length, 1)
  t.equal(listOf(await s.ok('assignment.list', { project })).length, 2)
  t.match(await s.ok('project.get', { project }), { name: `${MARK} project` })
  t.match(await s.ok('interaction.list', { project }), {
    items: [{ id: asked['id'], status: 'pending', responses: [], lifecycle: [{}] }],
  })
  await s.ok('key.get', { project, id: held['id'] })
  t.match(await s.ok('channel.get', { project, id: channel['id'] }), {
    topic: MARK,
    member_count: 2,
    message_seq: 1,
  })
  t.match(
    await s.ok('channel.message', { project, id: channel['id'], message_id: message['id'] }),
    { content: `${MARK} message` },
  )
  t.match(await s.ok('agent.list', { project }), {
    items: [{ id: agent['id'], name: `${MARK} agent`, status: 'active' }],
  })
  const session_id = talk['session']?.['id']
  t.match(await s.ok('session.get', { project, session_id }), {
    title: MARK,
    message_count: 1,
    status: 'active',
  })
  t.match(await s.ok('session.turns', { project, session_id }), { items: [{ status: 'running' }] })
  t.match(await s.ok('session.nudges', { project, session_id }), { items: [{ status: 'pending' }] })
  t.match(await s.ok('session.attachments', { project, session_id }), {
    items: [{ name: `${MARK}.txt` }],
  })
  t.match(await s.ok('memory.entries', { project, id: agent['id'] }), {
    items: [{ key: 'likes', content: MARK, version: 1 }],
  })
  t.match(await s.ok('agent.bindings', { project, id: agent['id'] }), {
    items: [{ id: binding['id'], integration_id: MARK }],
  })
  t.match(await s.ok('agent.toolkits', { project, id: agent['id'] }), {
    items: [{ toolkit: { name: `${MARK} toolkit` } }],
  })
  t.match(await s.ok('agent.skills', { project, id: agent['id'] }), {
    items: [{ skill: { name: `${MARK} skill` } }],
  })
  t.match(await s.ok('action.get', { project, action_name: ACTION }), {
    title: MARK,
    endpoint_url: 'https://example.org',
  })
  t.match(await s.ok('organization_action.list'), {
    items: [
      { id: shared['id'], enabled: true, secret_versions: [{ version: 1, status: 'active' }] },
    ],
  })
  t.match(await s.ok('webhook.get', { project, webhook_id: webhook['id'] }), {
    name: `${MARK} hook`,
  })
  t.match(await s.ok('webhook.deliveries', { project, webhook_id: webhook['id'] }), { items: [] })
  t.match(await s.ok('secret.list', { project }), { items: [{ name: SECRET, version: 1 }] })
  t.match(await s.ok('worker.list', { project }), { items: [{ state: 'online' }] })
  t.equal(listOf(await s.ok('project.list')).length, 2, 'no project was created')
  t.equal(listOf(await s.ok('key.list', { project })).length, 1)
  t.equal(listOf(await s.ok('workflow.list', { project })).length, 1)
  t.match(await s.ok('loop.list', { project }), {
    items: [{ name: `${MARK} loop`, status: 'active' }],
  })
  t.equal(listOf(await s.ok('run.list', { project })).length, 3)
})
