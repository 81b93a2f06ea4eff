/**
 * Finding and creating sessions. The id of a session with a key is derived from project, agent, key
 * and generation, so concurrent requests for a key reach the same actor. A deleted or expired
 * session keeps its id. The next session of the key has the next generation, is in the same shard,
 * and notifies the first session of the key.
 */
import { policyOf, resolvedPolicy } from '../../protocol/agents/schema.ts'
import type { Api } from '../../protocol/api.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import type {
  SessionLocation,
  SessionLocationInput,
  Standing,
} from '../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../protocol/sessions/events.ts'
import type { SessionSeed } from '../../protocol/sessions/requests.ts'
import { publicSession, type Session } from '../../protocol/sessions/schema.ts'
import { withVisibility } from '../../protocol/sessions/visibility.ts'
import type { Cause, Decision } from '../actor.ts'
import { change, type Draft, emit, newDraft, tell, withReply } from './draft.ts'
import { isLive, type Live, type SessionState } from './state.ts'

type Seed = SessionSeed & { readonly agent_id: string }

/**
 * Begins a decision on the session of a request. The session is found or created, as the request's
 * `mode` allows.
 */
export function findOrCreate(
  brand: string,
  state: SessionState,
  seed: Seed,
  at: SessionLocation,
  cause: Cause,
): Draft | Refusal {
  const mode = seed.mode ?? 'continue_or_create'
  if (isLive(state, cause.at)) {
    if (state.record.agent_id !== at.agent_id)
      return refuse(
        'conflict',
        { session_id: state.record.id },
        'The session belongs to another agent.',
      )
    if (mode === 'new')
      return refuse(
        'conflict',
        { field: 'session_key', session_id: state.record.id },
        'A session with this key already exists.',
      )
    return newDraft(state, cause, brand)
  }
  // The session ended after the gateway had looked it up. The next lookup finds the next
  // generation.
  if (state.record)
    return refuse(
      'service_unavailable',
      undefined,
      'The session has just ended; send the request again.',
    )
  if (mode === 'continue')
    return refuse(
      'not_found',
      { session_key: at.session_key },
      'There is no session with this key.',
    )
  const draft = newDraft(state as Live, cause, brand)
  emit(draft, {
    type: 'session.created',
    session: newSession(seed, at, cause),
    root: at.root,
    generation: at.generation,
    ...(seed.visibility && { visibility_requested: true }),
  })
  if (at.generation > 0)
    tell(draft, 'session', at.root, 'session.succeed', { generation: at.generation })
  return draft
}

function newSession(
  {
    title = '',
    visibility,
    model,
    compaction_policy = undefined,
    retention,
    thinking_effort,
    metadata,
  }: Seed & { readonly model?: string },
  at: SessionLocation,
  cause: Cause,
): Session {
  const now = timestamp(cause.at)
  const shared = {
    visibility: visibility ?? 'project',
    origin: at.of_run ? 'loop' : 'api',
    scope: at.scope_ref_id === undefined ? 'agent' : 'loop',
    scope_ref_id: at.scope_ref_id ?? at.agent_id,
  } as const
  return {
    id: cause.self.id,
    agent_id: at.agent_id,
    title,
    status: 'active',
    ...shared,
    scope_name: at.session_key,
    session_key: at.session_key,
    ...(model && { model }),
    compaction_policy: resolvedPolicy(policyOf(at.compaction_policy, compaction_policy ?? {})),
    ...(retention && { retention }),
    ...(thinking_effort && thinking_effort !== 'inherit' && { thinking_effort }),
    message_count: 0,
    token_input_total: 0,
    token_output_total: 0,
    cache_read_input_total: 0,
    cache_creation_input_total: 0,
    version: 1,
    created_by: cause.principal.id,
    ...(metadata && { metadata }),
    created_at: now,
    updated_at: now,
  }
}

/** Finds or creates a session. */
export const create =
  (brand: string) =>
  (
    state: SessionState,
    input: Input<Api['session.create']> & SessionLocationInput,
    cause: Cause,
  ): Decision<SessionEvent, Session> => {
    const draft = findOrCreate(brand, state, input, input.place, cause)
    if (isRefusal(draft)) return draft
    if (draft.state.record.status === 'archived') change(draft, { status: 'active' })
    return withReply(draft, ({ record }) => publicSession(record))
  }
/** Records that a newer session of the key exists. */
export const succeed = (
  state: SessionState,
  { generation }: { readonly generation: number },
): Decision<SessionEvent, undefined> => ({
  events: generation > state.newest ? [{ type: 'session.succeeded', generation }] : [],
  reply: undefined,
})

/**
 * Returns the facts that a gateway or an executor needs before it sends a request to the session.
 */
export const standing = (state: SessionState, _: unknown, at: number): Standing => ({
  exists: state.record !== undefined,
  gone: state.record !== undefined && !isLive(state, at),
  generation: state.newest,
  ...(state.record && { session: withVisibility(state.record, state.visibility_requested) }),
})
