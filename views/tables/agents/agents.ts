/** Stores, lists and finds the agents of projects. */
import type { Agent, AgentEvent } from '../../../protocol/agents/schema.ts'
import { parseTimestamp } from '../../../protocol/common.ts'
import type { Event, PlacedEntry } from '../../../protocol/entry.ts'
import { type Refusal, refuse } from '../../../protocol/errors.ts'
import { patch } from '../../../protocol/patch.ts'
import { equalityConditions } from '../../conditions.ts'
import { newestRecords, recordWith } from '../../newest.ts'
import type { Page, Paging } from '../../page.ts'
import type { Store } from '../../store.ts'

const missing: Refusal = refuse(
  'not_found',
  { resource: 'agent' },
  'There is no such agent in this project.',
)

/** Applies the agent events of an entry of a project. */
export function applyAgents(store: Store, { entry }: PlacedEntry): void {
  const project = store.numberOf(entry.project)
  for (const any of entry.events as readonly Event[]) {
    const event = any as AgentEvent
    if (event.type === 'agent.created') put(store, project, event.agent)
    else if (event.type === 'agent.updated') {
      const agent = find(store, project, event.id)
      if (agent) put(store, project, patch(agent, event.agent))
    } else if (event.type === 'agent.deleted')
      store.run('DELETE FROM agents WHERE id = ? AND project = ?', event.id, project)
  }
}
const put = (store: Store, project: number, agent: Agent) =>
  store.run(
    'INSERT OR REPLACE INTO agents (id, project, name, status, created_at, record) VALUES (?, ?, ?, ?, ?, ?)',
    agent.id,
    project,
    agent.name,
    agent.status,
    parseTimestamp(agent.created_at) ?? 0,
    JSON.stringify(agent),
  )
const find = (store: Store, project: number, id: string): Agent | undefined =>
  recordWith(store, 'agents', project, id)

/** Whether a project has an agent with this id. */
export const hasAgent = (store: Store, project: number, id: string): boolean =>
  store.one('SELECT 1 FROM agents WHERE id = ? AND project = ?', id, project) !== undefined
/**
 * Finds the project of an agent among all projects of the partition. Returns an empty object if the
 * partition has no such agent.
 */
export function agentHome(store: Store, id: string): { project?: string } {
  const row = store.one<{ project: string }>(
    'SELECT projects.id AS project FROM agents JOIN projects ON projects.n = agents.project WHERE agents.id = ?',
    id,
  )
  return row ? { project: row.project } : {}
}
/** Returns an agent of a project, or `not_found` if the project has no such agent. */
export const agentGet = (
  store: Store,
  project: number,
  { id }: { readonly id: string },
): Agent | Refusal => find(store, project, id) ?? missing

/** Filters of the list of agents. All must match. */
export interface AgentFilters extends Paging {
  readonly name?: string
  readonly principal_id?: string
  readonly status?: string
}
/** Returns agents of a project, newest first. */
export const agentList = (store: Store, project: number, input: AgentFilters): Page<Agent> =>
  newestRecords(
    store,
    'agents',
    project,
    equalityConditions({ name: input.name, id: input.principal_id, status: input.status }),
    input,
  )
