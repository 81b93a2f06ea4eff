/** The holder of the name of an environment. */
import type { Event } from '../../protocol/entry.ts'
import type { Actor } from '../actor.ts'

export const environmentName: Actor<null, Event, Record<never, never>, 'environment_name'> = {
  kind: 'environment_name',
  initial: () => null,
  decide: {},
  evolve: {},
}
