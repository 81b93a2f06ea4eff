/** The agents of a project, for lists and for looking up their names. */
import { useAll } from '../../api/all.ts'
import type { ApiError, CallReply } from '../../api/client.ts'

export type AgentRecord = CallReply<'agent.list'>['items'][number]

/**
 * Loads all agents of a project. `loaded` is false until the first page has arrived.
 */
export function useAgents(project: string): {
  readonly agents: readonly AgentRecord[]
  readonly loaded: boolean
  readonly error: ApiError | undefined
  readonly reload: () => void
  readonly nameOf: (id: string) => string
} {
  const list = useAll('agent.list', { project }, { kinds: ['agent'] })
  const { items, loading, error } = list.state.value
  const names = new Map(items.map(({ id, name }) => [id, name]))
  return {
    agents: items,
    loaded: items.length > 0 || !loading,
    error,
    reload: list.reload,
    nameOf: (id) => names.get(id) ?? id,
  }
}
