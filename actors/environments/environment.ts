/** The environment actor. */
import type { Event } from '../../protocol/entry.ts'
import type { Actor } from '../actor.ts'

export const environmentActor: Actor<null, Event, Record<never, never>, 'environment'> = {
  kind: 'environment',
  initial: () => null,
  decide: {},
  evolve: {},
}
