/** Views of configuration: workflows with their versions, and the audit log. */
import t from 'tap'
import type { Event } from '../../../protocol/entry.ts'
import { View } from '../../../views/view.ts'
import {
  type Answer,
  ask,
  at,
  type Draft,
  each,
  Journal,
  spec,
  started,
} from '../support/journal.ts'

const open = (options = {}) => {
  const journal = new Journal()
  const view = View.open(':memory:', options)
  return {
    view,
    commit: (...drafts: readonly Draft[]) => view.apply([journal.commit(0, ...drafts)]),
  }
}
const project = (events: readonly Event[], more: Partial<Draft> = {}): Draft => ({
  kind: 'project',
  project: 'prj_a',
  id: 'prj_a',
  events,
  ...more,
})
const organization = (events: readonly Event[], more: Partial<Draft> = {}): Draft => ({
  kind: 'organization',
  project: 'org_1',
  id: 'org_1',
  events,
  ...more,
})
const workflow = (id: string, handle: string, seconds: number) => ({
  id,
  handle,
  name: handle.toUpperCase(),
  published_as_tool: false,
  latest_version: 1,
  created_by: 'user_1',
  created_at: at(seconds),
  updated_at: at(seconds),
})
const created = (id: string, handle: string, seconds: number, more: Partial<Draft> = {}) =>
  project(
    [{ type: 'workflow.created', id, workflow: workflow(id, handle, seconds), spec } as Event],
    { at: seconds, ...more },
  )
const second = { ...spec, queue: 'slow' }
const updated = (id: string, seconds: number) =>
  project(
    [
      {
        type: 'workflow.updated',
        id,
        workflow: { latest_version: 2, description: 'x', updated_at: at(seconds) },
        spec: second,
        changes: { description: { to: 'x' } },
      } as Event,
    ],
    {
      at: seconds,
      principal: { type: 'service_account', id: 'svc_1' },
      credential: { type: 'api_key', id: 'key_1' },
    },
  )

t.test(
  'workflows are listed newest first without specs; by id or handle they have the latest',
  (t) => {
    const { view, commit } = open()
    commit(
      created('wfd_1', 'one', 1),
      created('wfd_2', 'two', 2),
      created('wfd_b', 'one', 3, { project: 'prj_b', id: 'prj_b' }),
    )
    commit(updated('wfd_1', 5))
    t.strictSame(ask(view, 'workflow.list').items, [
      workflow('wfd_2', 'two', 2),
      { ...workflow('wfd_1', 'one', 1), latest_version: 2, description: 'x', updated_at: at(5) },
    ])
    const first = ask(view, 'workflow.list', { limit: 1 })
    t.strictSame(
      each(ask(view, 'workflow.list', { limit: 1, after: first.position ?? [] }), 'id'),
      ['wfd_1'],
    )
    t.match(ask(view, 'workflow.get', { id: 'wfd_1' }), { id: 'wfd_1', spec: second })
    t.match(ask(view, 'workflow.get', { id: 'two' }), { id: 'wfd_2', spec })
    t.match(ask(view, 'workflow.get', { id: 'one' }, 'prj_b'), { id: 'wfd_b' })
    t.match(ask(view, 'workflow.get', { id: 'wfd_b' }), { refused: 'not_found' })
    t.end()
  },
)

t.test('versions never change, and are deleted with their workflow', (t) => {
  const { view, commit } = open()
  commit(created('wfd_1', 'one', 1))
  commit(updated('wfd_1', 5))
  t.strictSame(ask(view, 'workflow.versions', { id: 'one' }).items, [
    { definition_id: 'wfd_1', version: 2, created_by: 'svc_1', created_at: at(5) },
    { definition_id: 'wfd_1', version: 1, created_by: 'user_1', created_at: at(1) },
  ])
  t.match(ask(view, 'workflow.versions', { id: 'wfd_1', include_spec: true }).items, [
    { spec: second },
    { spec },
  ])
  const first = ask(view, 'workflow.versions', { id: 'wfd_1', limit: 1 })
  t.strictSame(
    each(
      ask(view, 'workflow.versions', { id: 'wfd_1', limit: 1, after: first.position ?? [] }),
      'version',
    ),
    [1],
  )
  commit(
    started('run_1', 6, { definition_id: 'wfd_1', definition_version: 1 }),
    started('run_2', 7, { definition_id: 'wfd_1', definition_version: 2 }),
    started('run_3', 8),
  )
  t.strictSame(each(ask(view, 'workflow.runs', { id: 'one' }), 'id'), ['run_2', 'run_1'])
  t.strictSame(each(ask(view, 'workflow.runs', { id: 'wfd_1', limit: 1 }), 'id'), ['run_2'])
  commit(project([{ type: 'workflow.deleted', id: 'wfd_1', name: 'ONE' } as Event]))
  for (const name of ['workflow.get', 'workflow.versions', 'workflow.runs'])
    t.match(ask(view, name, { id: 'wfd_1' }), { refused: 'not_found' }, name)
  t.match(ask(view, 'run.get', { id: 'run_1' }), { definition_id: 'wfd_1', spec }, 'runs go on')
  commit(created('wfd_9', 'one', 9))
  t.match(ask(view, 'workflow.get', { id: 'one' }), { id: 'wfd_9' }, 'the handle is free again')
  t.end()
})

const shop = () => {
  const world = open()
  const key = {
    id: 'key_2',
    name: 'ci',
    key_prefix: 'bat_abcd',
    principal_id: 'svc_2',
    created_at: at(2),
    updated_at: at(2),
  }
  world.commit(
    organization(
      [
        { type: 'organization.created', id: 'org_1', name: 'Acme' } as Event,
        {
          type: 'project.created',
          id: 'prj_a',
          project: {
            id: 'prj_a',
            name: 'Alpha',
            handle: 'a',
            access_mode: 'open',
            created_at: at(0),
            updated_at: at(0),
          },
        } as Event,
      ],
      { principal: { type: 'system', id: 'system' } },
    ),
  )
  world.commit(
    created('wfd_1', 'one', 1, { request_id: 'req_1', ip: '127.0.0.1', user_agent: 'curl' }),
  )
  world.commit(
    project(
      [
        {
          type: 'principal.created',
          id: 'svc_2',
          principal: { id: 'svc_2', name: 'robot' },
        } as Event,
        { type: 'key.created', id: 'key_2', key, hash: 'secret' } as Event,
      ],
      { at: 2 },
    ),
  )
  world.commit(project([{ type: 'key.used', id: 'key_2', at: 0 } as Event], { at: 3 }))
  world.commit(updated('wfd_1', 4))
  world.commit(
    organization(
      [
        {
          type: 'project.updated',
          id: 'prj_a',
          project: { description: 'd' },
          changes: { description: { to: 'd' } },
        } as Event,
      ],
      { at: 5 },
    ),
  )
  world.commit(
    project([{ type: 'key.revoked', id: 'key_2', name: 'ci', at: 0 } as Event], {
      at: 6,
      project: 'prj_a',
    }),
  )
  world.commit(created('wfd_b', 'two', 7, { project: 'prj_b', id: 'prj_b' }))
  world.commit(started('run_1', 8))
  return world
}
const audit = (view: View, input: object = {}) => ask(view, 'audit.list', { ...input }, '')
const told = ({ items }: Answer) =>
  items.map(
    ({ resource_type, action, resource_name }) => `${action} ${resource_type} ${resource_name}`,
  )

t.test('every change of configuration is audited, and nothing else', (t) => {
  const { view } = shop()
  t.strictSame(told(audit(view)), [
    'create workflow TWO',
    'delete api_key ci',
    'update project Alpha',
    'update workflow ONE',
    'create api_key ci',
    'create principal robot',
    'create workflow ONE',
    'create project Alpha',
    'create organization Acme',
  ])
  const { items } = audit(view)
  const { id, ...entry } = items[6] ?? {}
  t.match(id, /^aud_[0-9A-HJKMNP-TV-Z]{26}$/)
  t.equal(new Set(each({ items }, 'id')).size, 9)
  t.strictSame(entry, {
    org_id: 'org_1',
    project_id: 'prj_a',
    resource_type: 'workflow',
    resource_id: 'wfd_1',
    resource_name: 'ONE',
    action: 'create',
    actor_type: 'user',
    actor_id: 'user_1',
    user_id: 'user_1',
    request_id: 'req_1',
    ip_address: '127.0.0.1',
    user_agent: 'curl',
    created_at: at(1),
  })
  t.match(items[3], {
    actor_type: 'service_account',
    actor_id: 'svc_1',
    credential_type: 'api_key',
    credential_id: 'key_1',
    changes: { description: { to: 'x' } },
  })
  t.notOk('user_id' in (items[3] ?? {}), 'no person acted')
  t.notOk('project_id' in (items[8] ?? {}), 'the organization is in no project')
  t.notMatch(JSON.stringify(items), 'secret')
  t.end()
})

t.test(
  'updates of one record in one entry form one audit record, which also names fields without a value',
  (t) => {
    const { view, commit } = open()
    const interaction = (events: readonly unknown[]): Draft => ({
      kind: 'interaction',
      project: 'prj_a',
      id: 'iact_1',
      events: events as Event[],
    })
    commit(
      interaction([
        { type: 'interaction.responded', id: 'iact_1', response: { id: 'r', value: 1 } },
        {
          type: 'interaction.resolved',
          id: 'iact_1',
          was: 'pending',
          set: { status: 'completed' },
          outcome: { value: null },
        },
      ]),
    )
    commit({
      kind: 'loop',
      project: 'prj_a',
      id: 'loop_1',
      events: [
        {
          type: 'loop.updated',
          id: 'loop_1',
          name: 'L',
          loop: {},
          changes: { triggers: {}, version: { from: 1, to: 2 } },
        } as Event,
      ],
    })
    const changes = (type: string) =>
      audit(view, { resource_type: type }).items.map((item) => item['changes'])
    t.strictSame(changes('interaction'), [
      {
        response: { to: { id: 'r', value: 1 } },
        status: { from: 'pending', to: 'completed' },
        outcome: { to: null },
      },
    ])
    t.strictSame(changes('loop'), [{ triggers: {}, version: { from: 1, to: 2 } }])
    const rotated = { name: 'n', version: 2 }
    commit(
      project([
        { type: 'action.secret_rotated', id: 'act_1', ...rotated } as Event,
        { type: 'webhook.secret_rotated', id: 'wh_1', ...rotated } as Event,
        { type: 'skills.assigned', id: 'agt_1', skills: [] } as Event,
      ]),
    )
    for (const version of [1, 2])
      commit(
        project(
          [
            {
              type: 'secret.stored',
              id: 's',
              secret: { name: 's', version, entries: ['a'] },
            } as Event,
          ],
          { at: version },
        ),
      )
    t.strictSame(
      audit(view, {})
        .items.filter(
          ({ resource_type }) => !['interaction', 'loop'].includes(String(resource_type)),
        )
        .map(({ resource_type, action }) => `${resource_type} ${action}`)
        .sort(),
      [
        'action_secret update',
        'agent_assignment update',
        'secret create',
        'secret update',
        'webhook_secret update',
      ],
    )
    t.end()
  },
)

t.test('memory entries that an agent saves itself are not audited', (t) => {
  const { view, commit } = open()
  const change = (operation: string) => ({
    agent_id: 'agt_1',
    memory_key: 'k',
    operation,
    version: 2,
  })
  const saved = (operation: string) => [
    {
      type: 'memory.saved',
      entry: { key: 'k', kind: 'fact', importance: 50, updated_at: at(1) },
      change: change(operation),
    } as unknown as Event,
  ]
  const memory = (more: Partial<Draft>): Draft => ({
    kind: 'memory',
    project: 'prj_a',
    id: 'agt_1',
    events: [],
    ...more,
  })
  commit(
    memory({ events: saved('created') }),
    memory({ events: saved('updated'), principal: { type: 'agent', id: 'agt_1' } }),
    memory({
      events: [{ type: 'memory.forgotten', change: change('deleted') } as unknown as Event],
    }),
    memory({ events: [{ type: 'memory.cleared' } as Event] }),
  )
  t.strictSame(told(audit(view, { resource_id: 'agt_1:k' })).sort(), [
    'create agent_memory k',
    'delete agent_memory k',
  ])
  t.equal(audit(view).items.length, 2)
  t.end()
})

t.test('the audit log is filtered by any attribute', (t) => {
  const { view } = shop()
  const count = (input: object) => audit(view, input).items.length
  t.equal(count({ project_id: 'prj_a' }), 7)
  t.equal(count({ project_id: 'prj_b' }), 1)
  t.equal(count({ resource_type: ['workflow', 'project'] }), 5)
  t.equal(count({ resource_type: 'principal' }), 1)
  t.equal(count({ resource_id: 'wfd_1' }), 2)
  t.equal(count({ user_id: 'user_1' }), 6)
  t.equal(count({ actor_id: 'svc_1' }), 1)
  t.equal(count({ actor_type: ['service'] }), 1)
  t.equal(count({ actor_type: ['service_account', 'system'] }), 3)
  t.equal(count({ action: ['delete', 'update'], project_id: 'prj_a' }), 3)
  t.equal(count({ created_after: at(5) }), 3, 'after includes')
  t.equal(count({ created_before: at(5) }), 6, 'before excludes')
  t.equal(
    count({
      created_after: '2031-02-03T06:05:11+02:00',
      created_before: at(7),
      resource_type: ['project'],
    }),
    1,
  )
  t.match(audit(view, { created_after: 'yesterday' }), { refused: 'bad_request' })
  t.end()
})

t.test('the audit log is read in pages', (t) => {
  const { view } = shop()
  const seen: unknown[] = []
  for (
    let answer: Answer | undefined = audit(view, { limit: 2 });
    answer;
    answer = answer.position && audit(view, { limit: 2, after: answer.position })
  )
    seen.push(...each(answer, 'id'))
  t.strictSame(seen, each(audit(view), 'id'))
  t.end()
})

t.test('a partition without the organization receives its id for the audit log', (t) => {
  const { view, commit } = open({ organization: () => 'org_7' })
  commit(created('wfd_1', 'one', 1))
  t.match(audit(view).items, [{ org_id: 'org_7' }])
  t.end()
})
