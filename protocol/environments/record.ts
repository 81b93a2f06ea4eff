/** How events change the record of an environment. The actor and the views apply the same patches. */
import type { Patch } from '../patch.ts'
import type { EnvironmentEvent } from './events.ts'
import type { Environment } from './schema.ts'

/**
 * Returns the patch of the record by an event; undefined for an event that leaves it unchanged, and
 * for the creation, which has the whole record.
 */
export function recordPatch(event: EnvironmentEvent): Patch<Environment> | undefined {
  if ('record' in event) return event.record
  if (event.type === 'environment.operation_claimed')
    return { place: event.place, isolation: event.isolation ?? null }
  if (event.type === 'environment.operation_ended' && event.displaced)
    return { place: null, isolation: null }
  return undefined
}
