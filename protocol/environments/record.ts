/** The patches that events apply to the record of an environment, in the actor and in views. */
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
