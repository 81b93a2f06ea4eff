/** Reads the record of an environment, and issues credentials for its repositories. */
import type { Environment } from '../../protocol/environments/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { gitCredential } from './git-credentials.ts'

async function find(edge: Edge, call: Call): Promise<Environment | Refusal> {
  const id = call.slots['environment_id'] ?? ''
  if (!isId(id, 'environment')) return refuse('not_found')
  const project = scopeId(edge, call)
  const found = await edge.world.ask({ project, kind: 'environment', id }, 'get', {})
  return found ?? refuse('not_found')
}

/** Queries by row name. */
export const environmentRecords = {
  'environment.get': find,
  'environment.git_credentials': async (edge: Edge, call: Call) => {
    const found = await find(edge, call)
    return isRefusal(found) ? found : gitCredential(edge, call, scopeId(edge, call), found)
  },
} as const
