/** The roles of a project, as all tabs of the page use them. */
import type { CallReply } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'

export type Role = CallReply<'role.list'>['items'][number]
const LIMIT = 200

/** Uses all roles of a project, the built-in ones first; empty until they are known. */
export const useRoles = (project: string): readonly Role[] =>
  useQuery('role.list', { project, limit: LIMIT }, { kinds: ['role'] }).state.value.data?.items ??
  []
