/** The agents of a project, for lists and for looking up their names. */
import { useEffect } from 'preact/hooks'
import type { ApiError, CallReply } from '../../api/client.ts'
import { useList } from '../../api/query.ts'

export type AgentRecord = CallReply<'agent.list'>['items'][number]

/**
 * Loads all agents of a project, page by page. `loaded` is false until the first page has arrived.
 */
export function useAgents(project: string): {
  readonly agents: readonly AgentRecord[]
  readonly loaded: boolean
  readonly error: ApiError | undefined
  readonly reload: () => void
  readonly nameOf: (id: string) => string
} {
  const list = useList('agent.list', { project, limit: 200 }, { kinds: ['agent'] })
  const { items, more, loading, error } = list.state.value
  useEffect(() => {
    if (more && !loading && !error) list.more()
  }, [more, loading, items.length])
  const names = new Map(items.map(({ id, name }) => [id, name]))
  return {
    agents: items,
    loaded: items.length > 0 || !loading,
    error,
    reload: list.reload,
    nameOf: (id) => names.get(id) ?? id,
  }
}
