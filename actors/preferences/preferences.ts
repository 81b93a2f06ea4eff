/**
 * The preferences of one principal in one project. The id of the actor is the id of the principal.
 *
 * Invariants:
 * P1. Every change increments the version. A request that expects another version changes nothing.
 * P2. Once the principal has been deleted, there are no preferences, and none can be saved.
 */
import type { Api } from '../../protocol/api.ts'
import { timestamp } from '../../protocol/common.ts'
import { refuse } from '../../protocol/errors.ts'
import type {
  Preferences,
  PreferencesCommands,
  PreferencesEvent,
} from '../../protocol/preferences/schema.ts'
import type { Actor } from '../actor.ts'

interface PreferencesState extends Preferences {
  readonly deleted?: true
}
const initial = (): PreferencesState => ({ preferences: {}, version: 0 })

/** The actor of a principal's preferences. */
export const preferencesActor: Actor<
  PreferencesState,
  PreferencesEvent,
  Api,
  'preferences',
  PreferencesCommands
> = {
  kind: 'preferences',
  initial,
  decide: {
    'me.save_preferences': ({ version, deleted }, { preferences, expected_version }, { at }) => {
      if (deleted) return refuse('not_found')
      if (expected_version !== undefined && expected_version !== version)
        return refuse(
          'conflict',
          { expected_version, version },
          `The version is ${version}, not ${expected_version}; read the preferences and try again.`,
        )
      const saved = { version: version + 1, updated_at: timestamp(at) }
      return { events: [{ type: 'preferences.saved', preferences, ...saved }], reply: saved }
    },
    'preferences.clear': ({ deleted }) => ({
      events: deleted ? [] : [{ type: 'preferences.cleared' }],
      reply: undefined,
    }),
  },
  evolve: {
    'preferences.saved': (_, { type: _type, ...saved }) => saved,
    'preferences.cleared': () => ({ ...initial(), deleted: true }),
  },
  ask: { get: ({ deleted: _, ...preferences }) => preferences },
  ended: ({ deleted }) => deleted === true,
}
