/**
 * The rows for sessions of agents: invocation, turns, messages and nudges. The bodies of commands
 * are in `requests.ts`, and the records in `schema.ts`. The published contract leaves these points
 * open, and this service decides them as follows:
 * - Unknown fields of a request are refused.
 * - A message with a block of type `file` is dropped. A request with any other unknown type of
 *   block is refused.
 * - Readers of the project may read its sessions, except private sessions (`visibility.ts`) and
 *   sessions of channels that they may not read.
 */
import { type Static, Type } from 'typebox'
import { AgentName } from '../agents/schema.ts'
import { bodyKey, Closed, Id, pageOf, paging, Timestamp, valuesOf } from '../common.ts'
import { command, query } from '../contract.ts'
import {
  Append,
  CreateSession,
  checkAppend,
  checkInvoke,
  checkNudge,
  checkSeed,
  checkStart,
  checkUpdate,
  Invoke,
  Nudge,
  SessionKey,
  StartTurn,
  UpdateSession,
} from './requests.ts'
import {
  AgentTurn,
  MessagePage,
  NudgeAck,
  NudgeStatus,
  Session,
  SessionNudge,
  sessionDetail,
  sessionStatuses,
  TurnAck,
  TurnDetail,
  turnDetail,
  turnInclude,
} from './schema.ts'

const Order = Type.Optional(Type.Enum(['asc', 'desc'], { default: 'asc' }))
const Include = Type.Optional(valuesOf(Type.Enum(['context'])))
const After = Type.Optional(Type.Integer({ minimum: 0 }))
const P = '/projects/:project'
const S = `${P}/sessions/:session_id`
const tag = 'sessions'
const self = { kind: 'session', slot: 'session_id', prefix: 'agent_session' } as const
/** Maximum body size, in bytes, of a request with input for a session. */
const LIMIT = 2_097_152
const act = { tag, permission: 'agent.invoke', to: self } as const
const read = { tag, permission: 'project.view', errors: ['not_found'] } as const
const unresolved = ['unknown_agent', 'definition_resolver_unavailable'] as const
const nudging = ['not_found', 'conflict', 'agent_inactive', ...unresolved] as const
const starting = [...nudging, 'session_turn_active'] as const

const cancelTurn = {
  ...act,
  summary: 'Cancel a turn; its committed messages stay',
  selfAccess: true,
  body: Closed({}),
  bodyOptional: true,
  reply: AgentTurn,
  errors: ['not_found', 'turn_owned_by_run'],
} as const
const cancelSession = {
  ...act,
  summary: 'Cancel the active turns of a session; turns of runs only with force',
  selfAccess: true,
  body: Closed({}),
  bodyOptional: true,
  query: Closed({ force: Type.Optional(Type.Boolean()) }),
  reply: Session,
  errors: ['not_found'],
} as const
const cancelNudge = {
  ...act,
  summary: 'Cancel a nudge that has not been delivered',
  body: Closed({}),
  bodyOptional: true,
  reply: SessionNudge,
  errors: ['not_found', 'nudge_already_delivered'],
} as const

export const sessions = {
  'agent.invoke': command(`POST ${P}/agents/invoke`, {
    summary: 'Send a message to an agent: finds or creates the session and starts a turn',
    selfAccess: true,
    tag,
    permission: 'agent.invoke',
    to: { kind: 'session', found: 'agent_session' },
    body: Invoke,
    check: checkInvoke,
    // An idempotency key is scoped to a session. It therefore has no effect if each request creates
    // a new session.
    key: ({ input, session = {} }: Static<typeof Invoke>) =>
      session.mode === 'new' && !(session.session_key ?? session.scope_name)?.trim()
        ? undefined
        : bodyKey(input),
    reply: TurnAck,
    status: 202,
    stream: 'accept',
    limit: LIMIT,
    errors: starting,
  }),
  'session.create': command(`POST ${P}/sessions`, {
    summary: 'Find or create a session',
    tag,
    permission: 'agent.invoke',
    to: { kind: 'session', found: 'agent_session' },
    body: CreateSession,
    check: checkSeed,
    reply: Session,
    errors: ['not_found', 'conflict', 'agent_inactive'],
  }),
  'session.list': query(`GET ${P}/sessions`, {
    ...read,
    summary: 'Sessions, latest activity first; `query` finds text in the title or the key',
    reply: pageOf(Session),
    errors: ['session_agent_ref_conflict', 'session_key_scope_required', 'not_found'],
    query: Closed({
      agent_id: Type.Optional(Id),
      agent_name: Type.Optional(AgentName),
      session_key: Type.Optional(SessionKey),
      scope_name: Type.Optional(SessionKey),
      status: Type.Optional(valuesOf(Type.Enum([...sessionStatuses]))),
      scope: Type.Optional(Type.Enum(['agent', 'loop'])),
      provider: Type.Optional(Id),
      integration_id: Type.Optional(Id),
      since: Type.Optional(Timestamp),
      query: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
      ...paging,
    }),
  }),
  'session.get': query(`GET ${S}`, { ...read, ...sessionDetail, summary: 'One session' }),
  'session.update': command(`PATCH ${S}`, {
    ...act,
    summary: 'Change, archive or restore a session',
    untagged: true,
    body: UpdateSession,
    check: checkUpdate,
    reply: Session,
    errors: ['not_found', 'conflict'],
  }),
  'session.delete': command(`DELETE ${S}`, {
    ...act,
    permission: 'project.edit',
    summary: 'Delete a session; its session key can then be used again',
    status: 204,
    errors: ['not_found', 'conflict'],
  }),
  'session.cancel': command(`POST ${S}/cancel`, cancelSession),
  'session.compact': command(`POST ${S}/compact`, {
    ...act,
    summary: 'Summarize the messages since the last compaction, and wait for the summary',
    body: Closed({}),
    bodyOptional: true,
    reply: Session,
    errors: ['not_found', 'conflict', 'agent_inactive'],
  }),
  'session.messages': query(`GET ${S}/messages`, {
    ...read,
    summary: 'Messages of a session, ordered by number',
    reply: MessagePage,
    query: Closed({
      after_sequence: After,
      before_sequence: Type.Optional(Type.Integer({ minimum: 1 })),
      order: Order,
      limit: paging.limit,
      include: Include,
    }),
  }),
  'session.append': command(`POST ${S}/messages`, {
    ...act,
    summary: 'Add messages without starting a turn',
    body: Append,
    check: checkAppend,
    reply: Session,
    limit: LIMIT,
    errors: ['not_found', 'conflict'],
  }),
  'session.turns': query(`GET ${S}/turns`, {
    ...read,
    summary: 'Turns of a session, ordered by creation',
    ...turnDetail,
    reply: pageOf(TurnDetail),
    query: Closed({ ids: Type.Optional(valuesOf(Id)), order: Order, ...turnInclude, ...paging }),
    exact: 'ids',
  }),
  'session.start_turn': command(`POST ${S}/turns`, {
    ...act,
    summary: 'Start a turn',
    selfAccess: true,
    body: StartTurn,
    check: checkStart,
    key: bodyKey,
    reply: TurnAck,
    status: 202,
    stream: 'accept',
    limit: LIMIT,
    errors: starting,
  }),
  'session.turn': query(`GET ${S}/turns/:turn_id`, { ...read, ...turnDetail, summary: 'One turn' }),
  'session.cancel_turn': command(`POST ${S}/turns/:turn_id/cancel`, cancelTurn),
  'session.turn_messages': query(`GET ${P}/turns/:turn_id/messages`, {
    ...read,
    summary: 'Messages of a turn, ordered by number',
    reply: MessagePage,
    query: Closed({ after_sequence: After, limit: paging.limit, include: Include }),
  }),
  'session.nudges': query(`GET ${S}/nudges`, {
    ...read,
    summary: 'Nudges of a session, ordered by creation',
    reply: pageOf(SessionNudge),
    query: Closed({ status: Type.Optional(valuesOf(NudgeStatus)), order: Order, ...paging }),
  }),
  'session.nudge': command(`POST ${S}/nudges`, {
    ...act,
    summary: 'Send a nudge to the active turn; if no turn is active, start one',
    selfAccess: true,
    body: Nudge,
    check: checkNudge,
    key: bodyKey,
    reply: NudgeAck,
    status: 202,
    errors: nudging,
  }),
  'session.get_nudge': query(`GET ${S}/nudges/:nudge_id`, {
    ...read,
    summary: 'One nudge',
    reply: SessionNudge,
  }),
  'session.cancel_nudge': command(`POST ${S}/nudges/:nudge_id/cancel`, cancelNudge),

  'session.cancellations': command(`POST ${S}/cancellations`, {
    ...cancelSession,
    tag: 'compat',
    alias: 'session.cancel',
    as: 'session.cancel',
  }),
  'session.turn_cancellations': command(`POST ${S}/turns/:turn_id/cancellations`, {
    ...cancelTurn,
    tag: 'compat',
    alias: 'session.cancel_turn',
    as: 'session.cancel_turn',
  }),
  'session.nudge_cancellations': command(`POST ${S}/nudges/:nudge_id/cancellations`, {
    ...cancelNudge,
    tag: 'compat',
    alias: 'session.cancel_nudge',
    as: 'session.cancel_nudge',
  }),
} as const
