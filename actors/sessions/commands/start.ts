/**
 * Direct turns, which clients start with a message. A single command finds the session, which
 * `agent.invoke` may also create, and then admits the turn, detects a repeat, or refuses the turn,
 * for example while another direct turn has not ended.
 */
import type { Api } from '../../../protocol/api.ts'
import { bodyKey, type JsonObject } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { isRefusal, isServiceFault, type Refusal, refuse } from '../../../protocol/errors.ts'
import type { TurnWork } from '../../../protocol/sessions/bookkeeping.ts'
import { ingest, isDropped } from '../../../protocol/sessions/check.ts'
import type { Defined, Keyed, SessionLocationInput } from '../../../protocol/sessions/commands.ts'
import type { SessionEvent } from '../../../protocol/sessions/events.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import { type AgentTurn, publicSession, type TurnAck } from '../../../protocol/sessions/schema.ts'
import type { AppContext } from '../../../protocol/sessions/turns/context.ts'
import type { Cause, Decision } from '../../actor.ts'
import { change, type Draft, liveSession, newDraft, recordOf, turnOf, withReply } from '../draft.ts'
import { bindFiles } from '../files.ts'
import { findOrCreate } from '../find-or-create.ts'
import { refuseExcessContexts } from '../history/context.ts'
import { recall } from '../history/remembered.ts'
import { directTurn, isFull, type SessionState, type Turn } from '../state.ts'
import { admitTurn } from '../turns/admit.ts'
import { startNextTurn } from '../turns/turns.ts'

type Invoke = Input<Api['agent.invoke']> & SessionLocationInput & Keyed
type Start = Input<Api['session.start_turn']> & Keyed

const askerOf = ({ principal: { id, type } }: Cause): TurnWork['asker'] => ({ id, type })
/** Stores the inline config of the request in the session. Null clears the stored config. */
function configure(draft: Draft, config: Defined['config']): void {
  if (config !== undefined) change(draft, { config })
}

/** Sends a message to an agent, in an existing or a new session. */
export const invoke =
  (brand: string) =>
  (state: SessionState, input: Invoke, cause: Cause): Decision<SessionEvent, TurnAck> => {
    const { content, context, metadata } = input.input
    const session = input.session ?? {}
    const placed = findOrCreate(
      brand,
      state,
      { ...session, agent_id: input.place.agent_id },
      input.place,
      cause,
    )
    if (isRefusal(placed)) return placed
    const channel_context = input.channel_context
    return start(
      placed,
      {
        path: 'input.content',
        key: bodyKey(input.input),
        content,
        context,
        metadata: channel_context ? { ...metadata, channel_context } : metadata,
        output: input.output?.schema,
      },
      input,
    )
  }
/** Starts a turn in an existing session. */
export const startTurn =
  (brand: string) =>
  (state: SessionState, input: Start, cause: Cause): Decision<SessionEvent, TurnAck> => {
    const session = liveSession(state, cause)
    if (!session) return refuse('not_found')
    const { content, context, metadata, output } = input
    return start(
      newDraft(session, cause, brand),
      { path: 'content', key: bodyKey(input), content, context, metadata, output: output?.schema },
      input,
    )
  }

interface Asked {
  readonly path: string
  readonly key: string | undefined
  readonly content: readonly JsonObject[]
  readonly context: readonly AppContext[] | undefined
  readonly metadata: JsonObject | undefined
  readonly output: JsonObject | undefined
}
function start(draft: Draft, asked: Asked, given: Keyed): Decision<SessionEvent, TurnAck> {
  const { key } = asked
  const known = key === undefined ? undefined : recall(draft.state.keys, key)
  if (known) {
    const turn = turnOf(draft, known.turn_id)
    // The record of a turn that has ended is no longer in the state. The gateway adds it.
    const current = turn ? recordOf(turn) : ({ id: known.turn_id } as AgentTurn)
    return {
      events: [],
      reply: {
        session: publicSession(draft.state.record),
        turn: current,
        resume_cursor: String(known.boundary),
        after_sequence: known.after_sequence,
        deduped: true,
      },
    }
  }
  // A definition that is only temporarily unavailable does not hide a lasting reason.
  if ('unfit' in given) return (isServiceFault(given.unfit) && blocked(draft)) || given.unfit
  const { definition, config } = given
  const content = isDropped(asked.content)
    ? undefined
    : bindFiles(draft.state, asked.content, asked.path)
  if (isRefusal(content)) return content
  const refused = blocked(draft) ?? refuseExcessContexts(draft.state, asked.context)
  if (refused) return refused
  configure(draft, config)
  const { turn_id, user_message, boundary, after_sequence } = admitTurn(draft, {
    owner: 'direct',
    asker: askerOf(draft.cause),
    definition,
    content: content && ingest(content),
    key,
    metadata: asked.metadata,
    output_schema: asked.output,
    ...(asked.context && { context: asked.context }),
  })
  const turn = recordOf(turnOf(draft, turn_id) as Turn)
  startNextTurn(draft)
  // Replies are stored to answer repeated requests. This reply therefore omits the content of the
  // message, which the gateway adds again.
  return withReply(draft, ({ record }) => ({
    session: publicSession(record),
    turn,
    ...(user_message && { user_message: { ...user_message, content: [] } }),
    resume_cursor: String(boundary),
    after_sequence,
    deduped: false,
  }))
}
function blocked({ state }: Draft): Refusal | undefined {
  const active = directTurn(state)
  if (active)
    return refuse('session_turn_active', {
      turn_id: active.record.id,
      status: active.record.status,
    })
  return isFull(state)
    ? refuse(
        'conflict',
        { limit: limits.turns },
        'The session has the maximum number of unfinished turns and waiting nudges.',
      )
    : undefined
}
