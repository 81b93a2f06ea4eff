/**
 * Determines which session a request refers to. This is the current session of its key. If a
 * session was deleted or has expired, its key gets a session of the next generation. The id of a
 * session with a key is derived from the key and the generation, so every gateway and executor
 * computes the same id.
 */
import type { Agent } from '../../protocol/agents/schema.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { isId, slotOf } from '../../protocol/ids.ts'
import type { SessionLocation, Standing } from '../../protocol/sessions/commands.ts'
import type { SessionSeed } from '../../protocol/sessions/requests.ts'
import type { Session } from '../../protocol/sessions/schema.ts'
import type { CapabilityReader } from '../queries/agent-capabilities.ts'

/** The session key of requests that specify none. */
const DEFAULT_KEY = 'default'
/**
 * Reads the standing of a session from its actor: whether the session exists or has ended, and its
 * record.
 */
export const standingOf = (
  edge: Pick<CapabilityReader, 'world'>,
  project: string,
  id: string,
): Promise<Standing | Refusal> => edge.world.ask({ project, kind: 'session', id }, 'standing', {})

export interface Located {
  readonly id: string
  readonly location: SessionLocation
  /** The session's record. Absent when the session does not exist, was deleted or has expired. */
  readonly session?: Session
  /** Set when the id was generated at random for this request, so its actor does not exist yet. */
  readonly born?: true
}
export interface SessionRequest {
  readonly project: string
  readonly agent: Pick<Agent, 'id' | 'name' | 'compaction_policy'>
  /** The fields of the request that select or describe the session. */
  readonly seed: SessionSeed
  /**
   * Set if the session is for a run. `scope_ref_id` is the id of the loop or workflow to whose
   * scope the key belongs. If it is absent, the key belongs to the scope of the agent.
   */
  readonly ofRun?: { readonly scope_ref_id?: string }
  /** Seed of the request's idempotency key, so that repeats get the same new session. */
  readonly repeatSeed?: string | undefined
}
/**
 * Finds the session of a request: its id, and the `SessionLocation` used to create the session if
 * it does not exist.
 */
export async function locateSession(
  edge: Pick<CapabilityReader, 'world'>,
  { project, agent, seed, ofRun, repeatSeed }: SessionRequest,
): Promise<Located | Refusal> {
  const { world } = edge
  const { mode, session_key, scope_name } = seed
  const key = (session_key ?? scope_name ?? '').trim()
  const { scope_ref_id } = ofRun ?? {}
  const at = (root: string, generation: number, name: string): SessionLocation => ({
    root,
    generation,
    session_key: name,
    agent_id: agent.id,
    agent_name: agent.name,
    ...(agent.compaction_policy && { compaction_policy: agent.compaction_policy }),
    ...(scope_ref_id !== undefined && { scope_ref_id }),
    ...(ofRun && { of_run: true as const }),
  })
  const found = (id: string, location: SessionLocation, { gone, session }: Standing): Located => ({
    id,
    location,
    ...(session && !gone && { session }),
  })
  if (mode === 'new' && key === '') {
    const id = world.id('agent_session', repeatSeed)
    return { id, location: at(id, 0, id), ...(repeatSeed === undefined && { born: true }) }
  }
  // The key of a session that was created without a key is the id of the session, so this key may
  // be the id of an existing session.
  if (scope_ref_id === undefined && isId(key, 'agent_session')) {
    const own = await standingOf(edge, project, key)
    if (isRefusal(own)) return own
    if (
      own.exists &&
      !own.gone &&
      own.session?.session_key === key &&
      own.session.agent_id === agent.id
    )
      return found(key, at(key, 0, key), own)
  }
  const name = key || DEFAULT_KEY
  const spelled = (generation: number): string =>
    JSON.stringify([
      'session',
      project,
      agent.id,
      name,
      generation,
      ...(scope_ref_id === undefined ? [] : [scope_ref_id]),
    ])
  const root = world.id('agent_session', spelled(0))
  const first = await standingOf(edge, project, root)
  if (isRefusal(first)) return first
  if (!first.gone) return found(root, at(root, 0, name), first)
  for (let generation = Math.max(1, first.generation); ; generation++) {
    const id = world.id('agent_session', spelled(generation), slotOf(root))
    const next = await standingOf(edge, project, id)
    if (isRefusal(next)) return next
    if (!next.gone) return found(id, at(root, generation, name), next)
  }
}
