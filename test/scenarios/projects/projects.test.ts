/** Projects over HTTP: handles, adoption, lists, updates and deletion. */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, type Found, fieldsOf, instant, listOf, pages, waiting } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const handles = (items: readonly Found[]) => items.map(({ handle }) => String(handle))

t.test('the project `default` exists from the first start', async (t) => {
  t.match(await s.ok('project.get'), {
    id: /^prj_/,
    handle: 'default',
    name: 'default',
    access_mode: 'open',
  })
  t.strictSame(
    await s.ok('project.get', { project: (await s.ok('project.get'))['id'] }),
    await s.ok('project.get'),
    'the id is accepted instead of the handle',
  )
  t.match(await s.ok('project.capabilities'), { can_manage_project: true, can_manage_access: true })
  await s.refused('project.get', { project: 'nothing' }, 404, 'not_found')
})

t.test(
  'a project gets a unique handle, which stays reserved when the project is changed or deleted',
  async (t) => {
    const { status, body: made } = await s.call('project.create', {
      name: 'Big Plan',
      description: 'd',
      access_mode: 'restricted',
      tags: { a: 'b' },
    })
    t.equal(status, 201)
    t.match(made, {
      id: /^prj_/,
      handle: 'big-plan',
      access_mode: 'restricted',
      created_by: /^svc_/,
      tags: { a: 'b' },
    })
    t.strictSame(await s.ok('project.get', { project: 'big-plan' }), made)
    t.match(await s.refused('project.create', { name: 'Big plan' }, 409, 'already_exists'), {
      details: { field: 'handle', handle: 'big-plan' },
    })
    t.match(
      await s.ok('project.update', {
        project: 'big-plan',
        name: 'Bigger',
        description: '',
        external_ref: 'crm/1',
      }),
      { name: 'Bigger', handle: 'big-plan', external_ref: 'crm/1', description: undefined },
    )
    await s.refused(
      'project.update',
      { project: 'big-plan', external_ref: 'crm/2' },
      409,
      'conflict',
    )
    t.strictSame(
      fieldsOf(
        await s.refused(
          'project.update',
          { project: 'big-plan', seed_existing_members: true },
          400,
          'bad_request',
        ),
      ),
      ['seed_existing_members'],
    )
    t.strictSame(fieldsOf(await s.refused('project.create', { name: '!!!' }, 400, 'bad_request')), [
      'handle',
    ])
    t.strictSame(
      fieldsOf(
        await s.refused(
          'project.create',
          { name: 'x', handle: 'Not a handle', tags: { 'service:x': 'y' } },
          400,
          'bad_request',
        ),
      ),
      ['handle'],
    )
    t.match(
      fieldsOf(
        await s.refused(
          'project.create',
          { name: 'x', tags: { 'service:x': 'y' } },
          400,
          'bad_request',
        ),
      ).join(),
      /^tags/,
      "tags with the brand's prefix are reserved",
    )
    await s.ok('project.delete', { project: 'big-plan' })
    await s.refused('project.create', { name: 'Big plan' }, 409, 'already_exists')
  },
)

t.test(
  'adopting a project returns the one with the reference, or rejects another identity',
  async (t) => {
    const adopt = { name: 'Shop', external_ref: 'shop/7', if_exists: 'adopt' }
    const first = await s.call('project.create', adopt)
    t.equal(first.status, 201)
    const again = await s.call('project.create', { ...adopt, name: 'Another name' })
    t.equal(again.status, 200)
    t.strictSame(again.body, first.body)
    t.strictSame(
      (
        await Promise.all(
          [1, 2, 3].map(() =>
            s.ok('project.create', { name: 'Raced', external_ref: 'race', if_exists: 'adopt' }),
          ),
        )
      ).map(({ handle }) => handle),
      ['raced', 'raced', 'raced'],
    )
    t.match(
      await s.refused(
        'project.create',
        { ...adopt, handle: 'other-shop' },
        409,
        'external_identity_conflict',
      ),
      { details: { handle: 'shop' } },
    )
    await s.refused(
      'project.create',
      { name: 'Shop two', external_ref: 'shop/7' },
      409,
      'already_exists',
    )
    t.strictSame(
      fieldsOf(
        await s.refused('project.create', { name: 'x', if_exists: 'adopt' }, 400, 'bad_request'),
      ),
      ['external_ref'],
    )
    await s.ok('project.delete', { project: 'shop' })
    await s.refused('project.create', adopt, 409, 'external_identity_conflict')
  },
)

t.test('projects are listed newest first, and filtered by text and by tags', async (t) => {
  for (const [name, tags] of [
    ['Red boat', { kind: 'boat', color: 'red' }],
    ['Blue boat', { kind: 'boat', color: 'blue' }],
    ['Red car', { kind: 'car', color: 'red', 'a:b': 'c' }],
  ] as const)
    await s.ok('project.create', { name, tags, description: `About the ${name}` })
  const list = async (query: object) =>
    handles(listOf(await s.ok('project.list', { limit: 200, ...query })))
  t.strictSame((await list({})).slice(0, 3), ['red-car', 'blue-boat', 'red-boat'])
  t.strictSame(handles(await pages(s, 'project.list')), await list({}))
  t.notOk((await list({})).includes('shop'), 'deleted projects are not listed')
  t.strictSame(await list({ search: 'BOAT' }), ['blue-boat', 'red-boat'])
  t.strictSame(await list({ search: 'about the red' }), ['red-car', 'red-boat'])
  t.strictSame(await list({ tag: 'kind:boat' }), ['blue-boat', 'red-boat'])
  const tagged = await s.raw('GET', '/v1/projects?tag=kind:boat&tag=color:red')
  t.strictSame(
    listOf(tagged.body).map(({ handle }) => handle),
    ['red-boat'],
    'tag may be repeated, like every list in a query',
  )
  t.strictSame(await list({ tag: 'kind:boat,color:red' }), ['red-boat'])
  t.strictSame(await list({ tag: 'color', search: 'car' }), ['red-car'])
  t.strictSame(await list({ tag: 'a:b:c' }), ['red-car'])
  t.strictSame(await list({ tag: 'kind:plane' }), [])
})

t.test(
  'a deleted project rejects new work, but its history is readable and its active runs end',
  async (t) => {
    const project = 'doomed'
    const { id: project_id } = await s.ok('project.create', { name: project })
    const worker = await s.worker({ action_names: ['last'] }, { project })
    const { id } = await s.ok('run.start', { project, spec: waiting() })
    const { id: done } = await s.ok('run.start', { project, spec: instant() })
    const { key } = await s.ok('key.create', { project, name: 'k' })
    await s.ok('workflow.create', { project, name: 'Doomed flow', spec: instant() })
    t.equal((await s.call('project.delete', { project })).status, 204)
    for (const [row, input] of [
      ['project.get', {}],
      ['project.delete', {}],
      ['run.start', { spec: instant() }],
      ['run.list', {}],
      ['workflow.list', {}],
      ['key.list', {}],
    ] as const)
      await s.refused(row, { project, ...input }, 404, 'not_found')
    await s.refused('run.start', { project: project_id, spec: instant() }, 404, 'not_found')
    t.match(await s.ok('run.get', { project: project_id, id: done }), { status: 'completed' })
    t.equal(
      (await s.follow('run.events', { id: done }, () => false)).at(-1)?.event,
      'run.completed',
    )
    t.match(await s.ok('run.steps', { id }), { items: [{ status: 'suspended' }] })
    await s.refused('run.cancel', { project, id }, 404, 'not_found')
    t.ok(
      [401, 403, 404].includes(
        (await s.call('run.list', { project }, { key: String(key) })).status,
      ),
    )
    t.equal(
      (
        await Promise.race([
          worker.closed,
          new Promise<{ code: number }>((resolve) => setTimeout(() => resolve({ code: 0 }), 5000)),
        ])
      ).code,
      4404,
      'workers are disconnected',
    )
    await s.refused('project.create', { name: project }, 409, 'already_exists')
    t.match(
      await ended(s, (await s.ok('run.start', { spec: instant() }))['id']),
      { status: 'completed' },
      'other projects are not affected',
    )
  },
)
