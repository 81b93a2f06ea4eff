/** Whether a given principal may read a private session. */
import t from 'tap'
import type { Directory } from '../../../gateway/directory.ts'
import type { World } from '../../../gateway/ports.ts'
import { mayRead } from '../../../gateway/sessions/reader.ts'
import type { OrganizationDirectory, ProjectDirectory } from '../../../protocol/access/directory.ts'

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
    const directory = {
      project: () => home,
      organization: () => organization,
    } as unknown as Directory
    const asked: unknown[] = []
    const at = (now: string) =>
      ({
        now: () => Date.parse(now),
        view: async (_project: string, _name: string, { viewer }: { viewer: unknown }) => {
          asked.push(viewer)
          return { known: true, closed: false }
        },
      }) as unknown as World
    const read = (now: string) =>
      mayRead({ world: at(now), directory }, 'prj_1', 'ses_1', 'prn_key')
    t.equal(await read('2025-12-31T23:59:59.999Z'), true)
    t.strictSame(asked, [{ id: 'prn_key', admin: true }])
    t.equal(await read('2026-01-01T00:00:00.000Z'), false)
  },
)
