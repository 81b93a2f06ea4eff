/** Finds the environment that a command names. */
import { api } from '../../../protocol/api.ts'
import type { Transport } from '../../transport.ts'
import { resolveNames } from '../names.ts'

/**
 * The id of the environment with this name or id.
 * @throws Mistake if there is none, or several have the name.
 */
export async function environmentId(transport: Transport, text: string): Promise<string> {
  const row = api['environment.get']
  const { environment_id } = await resolveNames(transport, 'environment.get', row, {
    environment_id: text,
  })
  return String(environment_id)
}
