/** The roles of a project, shared by all tabs of the page. */
import type { CallReply } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'

export type Role = CallReply<'role.list'>['items'][number]
const LIMIT = 200

/**
 * Loads the roles of a project, at most `LIMIT`, built-in ones first. Empty until they are loaded.
 */
export const useRoles = (project: string): readonly Role[] =>
  useQuery('role.list', { project, limit: LIMIT }, { kinds: ['role'] }).state.value.data?.items ??
  []
