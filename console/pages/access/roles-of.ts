/** Loads the roles of a project, for all tabs of the page. */
import type { CallReply } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'

export type Role = CallReply<'role.list'>['items'][number]
/** Maximum number of loaded roles. */
const MAX_ROLES = 200

/**
 * Loads the roles of a project, at most `MAX_ROLES`, built-in ones first. Returns an empty list
 * until they are loaded.
 */
export const useRoles = (project: string): readonly Role[] =>
  useQuery('role.list', { project, limit: MAX_ROLES }, { kinds: ['role'] }).state.value.data
    ?.items ?? []
