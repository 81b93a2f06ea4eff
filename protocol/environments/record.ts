/** The changes that events make to an environment's record, for the actor and the views alike. */
import type { Patch } from '../patch.ts'
import type { EnvironmentEvent } from './events.ts'
import type { Environment } from './schema.ts'

/**
 * Returns the patch that an event applies to the record. Returns undefined for an event that does
 * not change the record, and for the creation, which contains the whole record.
 */
export function recordPatch(event: EnvironmentEvent): Patch<Environment> | undefined {
  if ('record' in event) return event.record
  if (event.type === 'environment.operation_claimed')
    return { place: event.place, isolation: event.isolation ?? null }
  if (event.type === 'environment.operation_ended' && event.displaced)
    return { place: null, isolation: null }
  return undefined
}
