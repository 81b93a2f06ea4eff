/**
 * Preparations of the session rows: the lookups before their commands are sent, and the completion
 * of their answers. The definition of a turn is resolved in `definition.ts`.
 */

import { withAdditions } from '../../protocol/additions.ts'
import { api } from '../../protocol/api.ts'
import type { JsonObject } from '../../protocol/common.ts'
import {
  type FieldError,
  isRefusal,
  isServiceFault,
  type Refusal,
  refuse,
} from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { ingest } from '../../protocol/sessions/check.ts'
import type { Appended, Defined, Keyed } from '../../protocol/sessions/commands.ts'
import type { SessionSeed } from '../../protocol/sessions/requests.ts'
import {
  type AgentTurn,
  type NudgeAck,
  publicSession,
  type Session,
  type SessionNudge,
  type TurnAck,
  turnDetail,
} from '../../protocol/sessions/schema.ts'
import { isPrivate } from '../../protocol/sessions/visibility.ts'
import { authorize } from '../auth/authorize.ts'
import { type Call, type Edge, scopeId } from '../call.ts'
import { type Identity, unlessRepeated } from '../http/idempotency.ts'
import type { Prepare, Prepared } from '../prepare.ts'
import { sleep } from '../timing.ts'
import { attachmentPreparations } from './attach.ts'
import { type DefinitionRequest, defineTurn, findAgent, requireActive } from './definition.ts'
import { type Located, locateSession, standingOf } from './session-id.ts'
import { sealTranscriptCursor } from './transcript/transcript-cursor.ts'
import { recordNotFound } from './visibility.ts'

const missingSession = recordNotFound('session')

interface Said {
  readonly content: readonly JsonObject[]
  readonly idempotency_key?: string
}

/** Returns the current state of a turn, without its additions. */
async function turnNow(
  edge: Edge,
  call: Call,
  session_id: string,
  turn_id: string,
): Promise<AgentTurn | Refusal> {
  const turn = await edge.world.view(scopeId(edge, call), 'session.turn', { session_id, turn_id })
  return isRefusal(turn)
    ? turn
    : (withAdditions(turnDetail.additions, undefined, turn) as AgentTurn)
}

/**
 * Completes the acknowledgement of a turn: seals the resume cursor, adds the content of the user
 * message and, if the command was a repeat, replaces the turn with its current state.
 */
async function acknowledged(
  edge: Edge,
  call: Call,
  said: readonly JsonObject[],
  reply: unknown,
): Promise<TurnAck | Refusal> {
  const ack = reply as TurnAck
  const turn = ack.deduped ? await turnNow(edge, call, ack.session.id, ack.turn.id) : ack.turn
  if (isRefusal(turn)) return turn
  return {
    ...ack,
    turn,
    ...(ack.user_message && { user_message: { ...ack.user_message, content: ingest(said) } }),
    resume_cursor: sealTranscriptCursor(
      edge.world,
      scopeId(edge, call),
      ack.session.id,
      Number(ack.resume_cursor),
    ),
  }
}

/**
 * Returns the located session, or the refusal `not_found` when the session is private and the
 * caller may not read it.
 */
async function readable(
  edge: Edge,
  call: Call,
  located: Located | Refusal,
): Promise<Located | Refusal> {
  if (isRefusal(located) || !located.session || !isPrivate(located.session)) return located
  const refused = await edge.sessionVisibility.check(
    scopeId(edge, call),
    { session_id: located.session.id },
    call.caller,
  )
  return refused ?? located
}

/**
 * Prepares an update. An update that deletes a session needs the permission of `session.delete`.
 */
const update = ({ world }: Edge, { body, caller }: Call): Prepared | Refusal =>
  (body['status'] === 'deleted'
    ? authorize(world.settings.brand, api['session.delete'].shape.permission, caller)
    : undefined) ?? {}

/**
 * Returns the definition of a turn for the command's input. If the definition is refused but the
 * command has an idempotency key, the refusal is passed to the session's actor in the field
 * `unfit`: a repeat needs no definition, and only the actor can recognize a repeat. A refusal that
 * concerns the config in the command itself is returned immediately.
 * @param starts whether the command starts a turn. Then a temporary refusal is passed as well,
 * because only the actor knows whether the session has an active turn.
 */
function orRepeat(
  defined: Defined | Refusal,
  key: string | undefined,
  { config }: DefinitionRequest,
  starts = true,
): Keyed | Refusal {
  if (!isRefusal(defined)) return defined
  const passes = key?.trim() || (starts && isServiceFault(defined))
  if (!passes) return defined
  const fields = (defined.details?.['fields'] ?? []) as readonly FieldError[]
  const inConfig = fields.some(({ field }) => field.startsWith('config.'))
  return config && (defined.refused === 'permission_denied' || inConfig)
    ? defined
    : { unfit: defined }
}

/**
 * Returns the refusal of an unknown agent. A repeat gets the first answer, if the session of the
 * first request can be found without the agent.
 */
async function unknownAgent(
  edge: Edge,
  call: Call,
  identity: Identity,
  refusal: Refusal,
  wanted: { readonly id?: string | undefined; readonly seed: SessionSeed },
  answer?: Prepared['answer'],
): Promise<Prepared | Refusal> {
  const { mode, session_key, scope_name } = wanted.seed
  const isNew = mode === 'new' && (session_key ?? scope_name ?? '').trim() === ''
  if (identity.seed === undefined || (!isNew && wanted.id === undefined)) return refusal
  const located = await locateSession(edge, {
    project: scopeId(edge, call),
    agent: { id: wanted.id ?? '', name: '' },
    seed: wanted.seed,
    repeatSeed: identity.seed,
  })
  if (isRefusal(located)) return located
  return unlessRepeated(refusal, identity, { id: located.id, ...(answer && { answer }) })
}

async function invoke(edge: Edge, call: Call, identity: Identity): Promise<Prepared | Refusal> {
  const { seed: repeatable } = identity
  const {
    agent_ref,
    session: seed = {},
    input,
  } = call.body as { agent_ref: { id?: string; name?: string }; session?: SessionSeed; input: Said }
  const agent = await findAgent(
    edge,
    scopeId(edge, call),
    agent_ref,
    `agent_ref.${agent_ref.id === undefined ? 'name' : 'id'}`,
  )
  const answer = (reply: unknown) => acknowledged(edge, call, input.content, reply)
  if (isRefusal(agent))
    return unknownAgent(edge, call, identity, agent, { id: agent_ref.id, seed }, answer)
  const located = await readable(
    edge,
    call,
    await locateSession(edge, {
      project: scopeId(edge, call),
      agent,
      seed,
      repeatSeed: repeatable,
    }),
  )
  if (isRefusal(located)) return located
  const { id, location, session, born } = located
  const defined = orRepeat(
    await defineTurn(
      edge,
      { project: scopeId(edge, call), agent, session: session ?? seeded(seed) },
      {
        ...(call.body as DefinitionRequest),
        author: call.caller.permissions,
        trigger: 'invoke',
      },
    ),
    input.idempotency_key?.trim() || repeatable,
    call.body as DefinitionRequest,
  )
  return isRefusal(defined)
    ? defined
    : {
        id,
        ...(born && { born }),
        input: { place: location, ...defined },
        answer,
      }
}
const seeded = ({
  thinking_effort,
  compaction_policy,
}: SessionSeed): Pick<Session, 'thinking_effort' | 'compaction_policy'> => ({
  ...(thinking_effort && { thinking_effort }),
  ...(compaction_policy && { compaction_policy }),
})

async function create(edge: Edge, call: Call, identity: Identity): Promise<Prepared | Refusal> {
  const { seed } = identity
  const agent_id = String(call.body['agent_id'])
  const agent = await findAgent(edge, scopeId(edge, call), { id: agent_id }, 'agent_id')
  if (isRefusal(agent)) {
    const wanted = { id: agent_id, seed: call.body as SessionSeed }
    return unknownAgent(edge, call, identity, agent, wanted)
  }
  const located = await readable(
    edge,
    call,
    await locateSession(edge, {
      project: scopeId(edge, call),
      agent,
      seed: call.body as SessionSeed,
      repeatSeed: seed,
    }),
  )
  if (isRefusal(located)) return located
  // An existing session is only returned, so its agent need not be active.
  const usable = located.session ? agent : requireActive(agent)
  return isRefusal(usable)
    ? unlessRepeated(usable, identity, { id: located.id })
    : { id: located.id, ...(located.born && { born: true }), input: { place: located.location } }
}

/**
 * Returns the session in the path. Refused with `not_found` when it does not exist or has ended.
 */
async function sessionOf(edge: Edge, call: Call): Promise<Session | Refusal> {
  const id = call.slots['session_id'] ?? ''
  if (!isId(id, 'agent_session')) return missingSession
  const known = await standingOf(edge, scopeId(edge, call), id)
  if (isRefusal(known)) return known
  const { session, gone } = known
  return session && !gone ? session : missingSession
}
async function definedIn(
  edge: Edge,
  call: Call,
  session: Session,
  wanted: DefinitionRequest,
): Promise<Defined | Refusal> {
  const agent = await findAgent(edge, scopeId(edge, call), { id: session.agent_id })
  return isRefusal(agent)
    ? agent
    : defineTurn(edge, { project: scopeId(edge, call), agent, session }, wanted)
}
/**
 * Creates the preparation of an operation that needs the definition of a turn in an existing
 * session.
 * @param more creates the other parts of the preparation.
 * @param starts whether the command starts a turn. With `or_joins`, the command may instead join
 * the turn in progress. Joining needs no definition, so the refusal of a definition is passed to
 * the actor. With `nothing`, no turn starts, and the resolver is not called.
 */
const turning =
  (
    more: (edge: Edge, call: Call) => Prepared,
    starts: 'turn' | 'or_joins' | 'nothing' = 'turn',
  ): Prepare =>
  async (edge, call, identity) => {
    const { seed } = identity
    const session = await sessionOf(edge, call)
    if (isRefusal(session)) {
      const { answer } = more(edge, call)
      return unlessRepeated(session, identity, { ...(answer && { answer }) })
    }
    const { operation, idempotency_key } = call.body as DefinitionRequest & Partial<Said>
    const found = await definedIn(edge, call, session, {
      ...(operation && { operation }),
      ...(starts !== 'nothing' && { trigger: 'turn' }),
    })
    const defined =
      starts === 'or_joins' && isRefusal(found)
        ? { unfit: found }
        : orRepeat(found, idempotency_key?.trim() || seed, {}, starts === 'turn')
    if (isRefusal(defined)) return defined
    const { input, ...rest } = more(edge, call)
    return { ...rest, input: { ...defined, ...input } }
  }
/**
 * Prepares an append. Appended messages may trigger a compaction if the definition of the session's
 * agent is valid. In this case, the call is answered after the compaction has ended.
 */
const append: Prepare = async (edge, call) => {
  const session = await sessionOf(edge, call)
  if (isRefusal(session)) return session
  const defined = await definedIn(edge, call, session, {})
  if (isRefusal(defined)) return defined.refused === 'not_found' ? defined : {}
  return {
    input: { ...defined },
    answer: async (reply) => {
      const { compacting, ...appended } = reply as Appended
      return compacting ? compacted(edge, call) : appended
    },
  }
}

/** Time between two checks of a compaction, in milliseconds. */
const POLL_EVERY_MS = 100
/**
 * Waits until no compaction is in progress, and returns the session. The session ends each
 * compaction no later than its deadline.
 */
async function compacted(edge: Edge, call: Call): Promise<Session | Refusal> {
  const { world } = edge
  const to = {
    project: scopeId(edge, call),
    kind: 'session',
    id: call.slots['session_id'] ?? '',
  } as const
  for (;;) {
    const answer = await world.ask(to, 'detail', {})
    if (isRefusal(answer)) return answer
    if (!answer.compaction.in_progress) break
    await sleep(world, POLL_EVERY_MS)
  }
  const known = await standingOf(edge, to.project, to.id)
  if (isRefusal(known)) return known
  return known.session ? publicSession(known.session) : missingSession
}

async function nudged(edge: Edge, call: Call, reply: unknown): Promise<NudgeAck | Refusal> {
  const ack = reply as NudgeAck
  if (!ack.deduped) return ack
  const turn = await turnNow(edge, call, ack.session.id, ack.turn.id)
  return isRefusal(turn) ? turn : { ...ack, turn }
}
/**
 * Returns the nudge that a call cancels, or the refusal `nudge_already_delivered` when it has
 * already been delivered.
 */
async function takenBack(edge: Edge, call: Call): Promise<SessionNudge | Refusal> {
  const { session_id = '', nudge_id = '' } = call.slots
  const nudge = await edge.world.view(scopeId(edge, call), 'session.get_nudge', {
    session_id,
    nudge_id,
  })
  return isRefusal(nudge) || nudge.status !== 'delivered'
    ? nudge
    : refuse('nudge_already_delivered', { nudge })
}

/** Preparations of the session commands, by operation name. */
export const sessionPreparations: Readonly<Record<string, Prepare>> = {
  'agent.invoke': invoke,
  'session.create': create,
  'session.start_turn': turning((edge, call) => ({
    answer: (reply) => acknowledged(edge, call, (call.body as unknown as Said).content, reply),
  })),
  // Hashes that are already stored were computed with `null` as the second item, so it must not be
  // removed.
  'session.nudge': turning(
    (edge, call) => ({
      input: { content_hash: edge.world.hash(JSON.stringify([call.body['content'], null])) },
      answer: (reply) => nudged(edge, call, reply),
    }),
    'or_joins',
  ),
  'session.append': append,
  'session.update': update,
  ...attachmentPreparations,
  'session.compact': turning((edge, call) => ({ answer: () => compacted(edge, call) }), 'nothing'),
  'session.cancel_turn': (edge, call) => ({
    answer: () => turnNow(edge, call, call.slots['session_id'] ?? '', call.slots['turn_id'] ?? ''),
  }),
  'session.cancel_nudge': (edge, call) => ({ answer: () => takenBack(edge, call) }),
}
