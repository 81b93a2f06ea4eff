/**
 * Queries of sessions that a view cannot answer alone: the list and the record of a session. The
 * filters of the list can refer to agents by name, and have defaults. The record includes a
 * compaction threshold and, on request, the environment of the session's agent.
 */

import { parseTimestamp } from '../../protocol/common.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../../protocol/errors.ts'
import type { RowQuestion } from '../../protocol/queries/views.ts'
import type { SessionDetail } from '../../protocol/sessions/schema.ts'
import { viewerOf } from '../auth/viewer.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { agentWorkspace, definitionOf } from './definition.ts'

/** Fetches a page of the sessions that the caller may read. */
export async function listSessions(
  edge: Edge,
  call: Call,
  { agent_name, scope_name, since, ...question }: RowQuestion<'session.list'>,
): Promise<unknown | Refusal> {
  const { agent_id } = question
  const given = question.session_key ?? scope_name
  const session_key = typeof given === 'string' ? given.trim() : undefined
  if (agent_id !== undefined && agent_name !== undefined)
    return refuse('session_agent_ref_conflict')
  if (session_key !== undefined && agent_id === undefined && agent_name === undefined)
    return refuse('session_key_scope_required')
  const after = since === undefined ? undefined : parseTimestamp(String(since))
  if (since !== undefined && after === undefined)
    return refuseFields({ field: 'since', message: 'must be an RFC 3339 time', actual: since })
  const known =
    agent_name === undefined ? undefined : await edge.directory.project(scopeId(edge, call))
  if (isRefusal(known)) return known
  const id = known
    ? Object.entries(known.agents).find(([, { name }]) => name === agent_name)?.[0]
    : agent_id
  if (known && id === undefined) return { items: [] }
  // By default, a key identifies only the agent's own session. Sessions that runs created under the
  // same key are listed only if the query specifies a `scope`.
  const scope = question.scope ?? (session_key === undefined ? undefined : 'agent')
  return edge.world.view(scopeId(edge, call), 'session.list', {
    ...question,
    ...(scope !== undefined && { scope }),
    ...(id !== undefined && { agent_id: id }),
    ...(session_key !== undefined && { session_key }),
    ...(after !== undefined && { since: after }),
    viewer: viewerOf(call.caller),
  })
}

/**
 * Returns a session with the compaction threshold that its next turn would have and, if the
 * parameter `include` requests it, the environment of its agent. The threshold is absent if
 * compaction is not automatic, or if the definition is invalid. The environment is absent if it
 * does not exist or no tool uses it.
 */
export async function readSession(edge: Edge, call: Call): Promise<SessionDetail | Refusal> {
  const project = scopeId(edge, call)
  const session = await edge.world.view(project, 'session.get', {
    ...call.query,
    session_id: call.slots['session_id'] ?? '',
  })
  if (isRefusal(session)) return session
  const found = await definitionOf(edge, project, session)
  if (isRefusal(found)) return session
  const { strategy, threshold_tokens } = found.compaction
  const environment = includes(call, 'environment')
    ? await existing(edge, project, await agentWorkspace(edge, project, session.agent_id, found))
    : undefined
  if (isRefusal(environment)) return environment
  return {
    ...session,
    ...(strategy === 'auto' && { compaction: { ...session.compaction, threshold_tokens } }),
    ...(environment && { environment }),
  }
}
const includes = ({ query }: Call, addition: string): boolean =>
  (query['include'] as readonly string[] | undefined)?.includes(addition) ?? false
/**
 * Reads the id and status of an environment from its owner. Returns undefined if it does not exist.
 */
async function existing(
  edge: Edge,
  project: string,
  id: string | Refusal | undefined,
): Promise<SessionDetail['environment'] | Refusal> {
  if (id === undefined || isRefusal(id)) return id
  const found = await edge.world.ask({ project, kind: 'environment', id }, 'get', {})
  if (isRefusal(found)) return found
  return found ? { id: found.id, status: found.status } : undefined
}
