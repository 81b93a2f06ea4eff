/** Converts a caller to the form that views use to check read access. */
import type { Viewer } from '../../protocol/channels/schema.ts'
import type { Caller } from './authenticate.ts'

/** Returns the caller's principal id, and whether the caller administers the project. */
export const viewerOf = ({ principal, permissions }: Caller): Viewer => ({
  id: principal.id,
  admin: permissions.has('project.admin'),
})
