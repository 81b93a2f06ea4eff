/**
 * The principals, agents and roles of a project by id, so that pages can show names. The lists are
 * limited to 200 entries each; `Who` loads other principals individually.
 */
import { useMemo } from 'preact/hooks'
import type { Agent } from '../../protocol/agents/schema.ts'
import { useQuery } from '../api/query.ts'
import { current, identity } from '../shell/session.ts'
import { peopleText as text } from './text.ts'

/** A principal or agent with its name. */
interface Somebody {
  /** Id of the principal or, for an agent, the id of the agent. */
  readonly id: string
  readonly name: string
  readonly kind: 'user' | 'service' | 'agent' | 'system'
}
/** The principals, agents and roles of a project that have been loaded. */
export interface People {
  /** The active people and services, and the agents, sorted by name. */
  readonly all: readonly Somebody[]
  /** The agents, at most `LIMIT`. */
  readonly agents: readonly Agent[]
  /** Whether the lists of principals and agents have arrived. */
  readonly known: boolean
  /**
   * Returns the name of a principal or agent, or of a target such as `role:Operator`; undefined if
   * unknown.
   */
  nameOf(id: string): string | undefined
  /** The id of the person's principal in this project; '' if unknown. */
  readonly me: string
  /**
   * The interaction targets that include the person: the principal id, and `role:…` for each role.
   */
  readonly mine: ReadonlySet<string>
}

const ROLE = 'role:'
/** Maximum number of principals that are loaded. It also applies to agents and to roles. */
const LIMIT = 200

/** Loads the people of a project. All components share the requests. */
export function usePeople(project: string): People {
  const principals = useQuery(
    'principal.list',
    { project, limit: LIMIT, include_disabled: true },
    { kinds: ['principal', 'assignment'] },
  ).state.value.data
  const agents = useQuery('agent.list', { project, limit: LIMIT }, { kinds: ['agent'] }).state.value
    .data
  const roles = useQuery('role.list', { project, limit: LIMIT }, { kinds: ['role'] }).state.value
    .data
  const myself = current.value?.principal
  const organizationRole = identity.value?.organization?.role
  return useMemo(() => {
    const roleNames = new Map(roles?.items.map(({ id, name }) => [id, name]))
    const names = new Map<string, string>()
    for (const { id, name } of principals?.items ?? []) names.set(id, name)
    for (const { id, principal_id, name } of agents?.items ?? [])
      names.set(id, name).set(principal_id, name)
    if (myself && !names.has(myself.id)) names.set(myself.id, myself.name)
    const held = principals?.items.find(({ id }) => id === myself?.id)?.role_ids ?? []
    const organization = organizationRole ? [organizationRole, `role_${organizationRole}`] : []
    const all: Somebody[] = [
      ...(principals?.items ?? []).filter(
        ({ kind, state }) => kind !== 'agent' && kind !== 'system' && state === 'active',
      ),
      ...(agents?.items ?? []).map(({ id, name }) => ({ id, name, kind: 'agent' as const })),
    ]
    return {
      all: all.sort((a, b) => a.name.localeCompare(b.name)),
      agents: agents?.items ?? [],
      known: principals !== undefined && agents !== undefined,
      me: myself?.id ?? '',
      mine: new Set([
        ...(myself ? [myself.id] : []),
        ...[...held.flatMap((id) => [id, roleNames.get(id) ?? id]), ...organization].map(
          (role) => ROLE + role,
        ),
      ]),
      nameOf: (id) => {
        if (!id.startsWith(ROLE)) return names.get(id)
        const role = id.slice(ROLE.length)
        return text.role(roleNames.get(role) ?? role)
      },
    }
  }, [principals, agents, roles, myself, organizationRole])
}
