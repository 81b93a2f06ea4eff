/** Repository hosts in the project actor. */
import t from 'tap'
import { projectActor } from '../../../actors/projects/project.ts'
import type {
  RepositoryHost,
  RepositoryHostWithMaterial,
} from '../../../protocol/repositories/rows.ts'
import { played } from '../support/played.ts'

const PRJ = 'prj_01AAAAAAAAAAAAAAAAAAAAAA0B'
const fresh = () =>
  played(projectActor({ brand: 'Service' }), { project: PRJ, kind: 'project', id: PRJ })
const host = { kind: 'token', url: 'https://git.example', secrets: ['read_token'] }
const material = (digest: string) => ({ sealed: `sealed ${digest}`, digest })
const put = (project: ReturnType<typeof fresh>, more: object = {}) =>
  project.send('repository_host.put', {
    host_name: 'internal',
    kind: 'token',
    read_token: '',
    host,
    material: material('1'),
    ...more,
  }) as unknown as RepositoryHost
const kept = (project: ReturnType<typeof fresh>, name: string) =>
  project.ask<RepositoryHostWithMaterial | null>('repository_host', { name })

t.test('a host is added, unchanged, replaced and deleted', async (t) => {
  const project = fresh()
  const first = put(project)
  t.strictSame(first, {
    name: 'internal',
    ...host,
    version: 1,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  })
  t.strictSame(kept(project, 'internal'), { host: first, material: material('1') })
  project.at += 1000
  t.strictSame(put(project), first)
  t.strictSame(project.events, [], 'the same secrets and fields are no change')
  t.match(put(project, { material: material('2') }), {
    version: 2,
    created_at: first.created_at,
    updated_at: '2026-01-01T00:00:01.000Z',
  })
  for (const more of [{ url: 'https://other.example' }, { username: 'me' }, { kind: 'gitlab' }])
    t.equal(put(project, { host: { ...host, ...more } }).version > 2, true, JSON.stringify(more))
  t.equal(put(project, { host_name: 'a' }).name, 'a')
  t.strictSame(
    project.ask<RepositoryHost[]>('repository_hosts').map(({ name }) => name),
    ['a', 'internal'],
  )
  project.send('repository_host.delete', { host_name: 'internal' })
  t.equal(kept(project, 'internal'), null)
  t.match(project.send('repository_host.delete', { host_name: 'internal' }), {
    refused: 'not_found',
  })
})

t.test('invalid names of hosts are refused', async (t) => {
  const project = fresh()
  for (const host_name of ['', 'A', '-a', '.a', 'a/b', 'a b', 'a'.repeat(65), 'é'])
    t.match(put(project, { host_name }), { refused: 'bad_request' }, host_name)
  for (const name of ['constructor', '__proto__', 'toString'])
    t.equal(kept(project, name), null, name)
  t.match(put(project, { host_name: 'constructor' }), { version: 1 })
  t.match(project.send('repository_host.delete', { host_name: 'valueof' }), {
    refused: 'not_found',
  })
})

t.test('a project has a limited number of hosts', async (t) => {
  const project = fresh()
  for (let n = 0; n < 50; n++) t.match(put(project, { host_name: `h${n}` }), { version: 1 })
  t.match(put(project, { host_name: 'more' }), { refused: 'conflict', details: { limit: 50 } })
  t.match(put(project, { host_name: 'h1', material: material('2') }), { version: 2 })
})
