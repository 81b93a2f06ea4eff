/** Callers as readers. */
import type { Viewer } from '../../protocol/channels/schema.ts'
import type { Caller } from './authenticate.ts'

/** The caller as views identify a reader. */
export const viewerOf = ({ principal, permissions }: Caller): Viewer => ({
  id: principal.id,
  admin: permissions.has('project.admin'),
})
