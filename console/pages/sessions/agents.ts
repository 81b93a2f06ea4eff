/** The agents of a project by id, for the names of agents in lists. */
import { useEffect } from 'preact/hooks'
import type { CallReply } from '../../api/client.ts'
import { useList } from '../../api/query.ts'

/** A record of an agent. */
export type AgentRecord = CallReply<'agent.list'>['items'][number]

/** Uses all agents of a project. `loaded` is false until the first of them have arrived. */
export function useAgents(project: string): {
  readonly agents: readonly AgentRecord[]
  readonly loaded: boolean
  readonly nameOf: (id: string) => string
} {
  const list = useList('agent.list', { project, limit: 200 }, { kinds: ['agent'] })
  const { items, more, loading } = list.state.value
  useEffect(() => {
    if (more && !loading) list.more()
  }, [more, loading, items.length])
  const names = new Map(items.map(({ id, name }) => [id, name]))
  return {
    agents: items,
    loaded: items.length > 0 || !loading,
    nameOf: (id) => names.get(id) ?? id,
  }
}
