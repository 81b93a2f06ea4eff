/** The e-mail addresses of targets that are named directly or through a role. */
import t from 'tap'
import { projectActor } from '../../../actors/projects/project.ts'
import type { ReachablePerson } from '../../../protocol/access/directory.ts'
import { permissions } from '../../../protocol/access/schema.ts'
import { played } from '../support/played.ts'

const PRJ = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B'

t.test('active people with an address are listed once, named ones before roles', async (t) => {
  const project = played(projectActor({ brand: 'Service' }), {
    project: PRJ,
    kind: 'project',
    id: PRJ,
  })
  const send = (name: string, input: object) =>
    project.send(name, { holds: Object.keys(permissions), brand: 'Service', ...input }) as {
      id: string
    }
  const user = (name: string, email?: string, role_ids: readonly string[] = []) =>
    send('user.create', {
      name,
      ...(email !== undefined && { email }),
      ...(role_ids.length > 0 && { role_ids }),
    }).id
  const reach = (...targets: string[]) => project.ask<ReachablePerson[]>('reach', { targets })
  const custom = send('role.create', {
    name: 'Release team',
    permissions: ['service.project.view'],
  }).id
  const ada = user('Ada', 'ada@example.org', ['role_editor', custom])
  const bo = user('Bo', 'bo@example.org', ['role_editor'])
  const mute = user('Mute', undefined, ['role_editor'])
  const off = user('Off', 'off@example.org', ['role_editor'])
  send('user.update', { id: off, state: 'disabled' })
  const found = (target: string, id: string, name: string) => ({
    target,
    id,
    name,
    email: `${name.toLowerCase()}@example.org`,
  })
  t.strictSame(reach(bo, ada, mute, off, 'svc_nobody', 'constructor'), [
    found(bo, bo, 'Bo'),
    found(ada, ada, 'Ada'),
  ])
  for (const target of ['role:Editor', 'role:role_editor'])
    t.strictSame(reach(target), [found(target, ada, 'Ada'), found(target, bo, 'Bo')])
  for (const target of ['role:Release team', `role:${custom}`])
    t.strictSame(reach(target), [found(target, ada, 'Ada')])
  t.strictSame(
    reach('role:Editor', ada),
    [found(ada, ada, 'Ada'), found('role:Editor', bo, 'Bo')],
    'a named target is not listed for its role as well',
  )
  t.strictSame(reach('role:Owner'), [])
  send('user.delete', { id: bo })
  t.strictSame(reach(bo, 'role:Editor'), [found('role:Editor', ada, 'Ada')])
})
