/** Deletion of a deleted principal's preferences and private views. */
import type { Effect } from '../actor.ts'

/** Returns the effects that delete the preferences and the private views of the principal. */
export const forgetPreferences = (project: string, principal: string): readonly Effect[] => [
  { tell: { to: { kind: 'preferences', id: principal }, name: 'preferences.clear', input: {} } },
  {
    tell: {
      to: { kind: 'saved_views', id: project },
      name: 'saved_view.drop_private',
      input: { owner_id: principal },
    },
  },
]
