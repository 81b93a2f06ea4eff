/** The principal of the key that tests use to call a service. */
import { listOf } from '../../scenarios/support/given.ts'
import type { Service } from '../../support/service.ts'

const owners = new WeakMap<Service, string>()
/** Returns the principal of the owner key. */
export async function ownerOf(s: Service): Promise<string> {
  const known = owners.get(s)
  if (known !== undefined) return known
  const keys = listOf(await s.ok('key.list_organization', { limit: 200 }))
  const root = keys.find(({ name }) => name === 'root')
  if (!root) throw new Error('the owner key is not in the list of keys')
  const owner = String(root['principal_id'])
  owners.set(s, owner)
  return owner
}
