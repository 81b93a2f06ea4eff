/** Whether a given principal may read a restricted event. */
import t from 'tap'
import type { Directory } from '../../../gateway/directory.ts'
import { mayReadEvent } from '../../../gateway/sessions/reader.ts'
import type { OrganizationDirectory, ProjectDirectory } from '../../../protocol/access/directory.ts'
import { fake, fakeWorld } from '../../support/fake-world.ts'

t.test(
  'the principal of an organization key reads as an administrator until it expires',
  async (t) => {
    const key = {
      principal_id: 'prn_key',
      org_role: 'Admin',
      expires_at: '2026-01-01T00:00:00.000Z',
    }
    const organization = { keys: { key_1: key } } as unknown as OrganizationDirectory
    const home = { principals: {}, roles: {} } as unknown as ProjectDirectory
    const directory = fake<Directory>('directory', {
      project: () => home,
      organization: () => organization,
    })
    const asked: unknown[] = []
    const at = (now: string) =>
      fakeWorld({
        now: () => Date.parse(now),
        view: async (_project: string, _name: string, { viewer }: { viewer: unknown }) => {
          asked.push(viewer)
          return { known: true, closed: false }
        },
      })
    const read = (now: string) =>
      mayReadEvent({ world: at(now), directory }, 'prj_1', { private_session: 'ses_1' }, 'prn_key')
    t.equal(await read('2025-12-31T23:59:59.999Z'), true)
    t.strictSame(asked, [{ id: 'prn_key', admin: true }])
    t.equal(await read('2026-01-01T00:00:00.000Z'), false)
  },
)

t.test('only its owner, while active, reads the event of a private artifact', async (t) => {
  const home = {
    principals: {
      user_1: { state: 'active' },
      user_2: { state: 'active' },
      user_3: { state: 'disabled' },
    },
    roles: {},
  } as unknown as ProjectDirectory
  const directory = fake<Directory>('directory', {
    project: () => home,
    organization: () => ({ keys: {} }),
  })
  const world = fakeWorld({
    now: () => 0,
    view: () => t.fail('no session is looked up'),
  })
  const read = (private_owner: string, reader: string) =>
    mayReadEvent({ world, directory }, 'prj_1', { private_owner }, reader)
  t.equal(await read('user_1', 'user_1'), true)
  t.equal(await read('user_1', 'user_2'), false)
  t.equal(await read('', 'user_2'), false)
  t.equal(await read('user_3', 'user_3'), false)
})
