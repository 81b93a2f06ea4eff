/** Finds the environment whose name or id is given to a command. */
import { api } from '../../../protocol/api.ts'
import type { Transport } from '../../transport.ts'
import { resolveNames } from '../names.ts'

/**
 * Returns the id of the environment with the given name or id.
 * @throws Mistake if no environment matches, or several environments have the name.
 */
export async function environmentId(transport: Transport, text: string): Promise<string> {
  const row = api['environment.get']
  const { environment_id } = await resolveNames(transport, 'environment.get', row, {
    environment_id: text,
  })
  return String(environment_id)
}
