/** The page's calls to the service, authenticated with the user's key. */

import type { PrincipalRecord } from '../../protocol/access/rows.ts'
import type { Invoke, InvokeResult } from '../../protocol/actions/rows.ts'
import type { Agent } from '../../protocol/agents/schema.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import type { Attached } from '../../protocol/sessions/attachments.ts'
import type {
  AgentTurn,
  NudgeAck,
  Session,
  SessionDetail,
  SessionMessage,
  SessionNudge,
  TurnAck,
} from '../../protocol/sessions/schema.ts'
import type { Block } from '../../protocol/sessions/turns/blocks.ts'
import { isTemporary } from '../http.ts'
import type { SenderReads } from './people/senders.ts'

/**
 * The API key or token with which the page calls the service, and the handle or id of the project.
 */
export interface Account {
  readonly key: string
  readonly project: string
}
/** Thrown when the service rejects a request or does not respond (status 0). */
export class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}
/**
 * The operations of the service for one user. Each throws `Refused` if the service rejects the
 * request or does not respond.
 */
export type Service = ReturnType<typeof createService>

/**
 * Maximum number of attempts per request. All attempts of a request with a body have the same
 * idempotency key, so the request takes effect at most once.
 */
const MAX_ATTEMPTS = 4

/**
 * Creates an idempotency key. `randomUUID` is not used, because browsers provide it only in secure
 * contexts.
 */
const newKey = (): string =>
  `chat-${[...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`

/** Creates the functions with which the chat page calls the service for one account. */
export function createService({ key, project }: Account) {
  /**
   * Sends a request, with retries.
   * @param body JSON, or a form with a file.
   * @throws Refused if the request fails; the abort reason if the signal aborts.
   */
  const request = async (
    method: string,
    path: string,
    body?: object,
    signal?: AbortSignal,
  ): Promise<Response> => {
    const isForm = body instanceof FormData
    const headers = {
      authorization: `Bearer ${key}`,
      ...(body && !isForm && { 'content-type': 'application/json' }),
      ...(body && { 'idempotency-key': newKey() }),
    }
    for (let attempt = 1; ; attempt++) {
      const answer = await fetch(`/v1/projects/${encodeURIComponent(project)}${path}`, {
        method,
        headers,
        ...(body && { body: isForm ? body : JSON.stringify(body) }),
        ...(signal && { signal }),
      }).catch(() => undefined)
      signal?.throwIfAborted()
      if (answer?.ok) return answer
      const refused = answer
        ? await refusalOf(answer)
        : new Refused(0, 'The service does not respond.')
      if (!isTemporary(refused.status) || attempt === MAX_ATTEMPTS) throw refused
      await new Promise((again) => setTimeout(again, 300 * 2 ** attempt))
    }
  }
  const call = async <T>(
    method: string,
    path: string,
    body?: object,
    signal?: AbortSignal,
  ): Promise<T> => (await (await request(method, path, body, signal)).json()) as T
  const at = (session: string): string => `/sessions/${encodeURIComponent(session)}`
  const fileAt = (session: string, artifact: string): string =>
    `${at(session)}/attachments/${encodeURIComponent(artifact)}`
  const list = async <T>(path: string): Promise<readonly T[]> =>
    (await call<{ items: readonly T[] }>('GET', path)).items
  return {
    agents: () => list<Agent>('/agents?limit=100'),
    agent: (id: string) => call<Agent>('GET', `/agents/${encodeURIComponent(id)}`),
    sessions: (agent: string) =>
      list<Session>(`/sessions?agent_id=${encodeURIComponent(agent)}&limit=50`),
    session: (id: string) => call<SessionDetail>('GET', `${at(id)}?include=environment`),
    open: (agent: string) => call<Session>('POST', '/sessions', { agent_id: agent, mode: 'new' }),
    /** Returns the newest messages before the given sequence number. */
    earlier: (id: string, before: number) =>
      list<SessionMessage>(`${at(id)}/messages?before_sequence=${before}&order=desc&limit=50`),
    say: (id: string, content: readonly Block[]) =>
      call<TurnAck>('POST', `${at(id)}/turns`, {
        content,
        idempotency_key: newKey(),
      }),
    /** Sends text to the turn in progress. */
    nudge: (id: string, content: string) =>
      call<NudgeAck>('POST', `${at(id)}/nudges`, { content, idempotency_key: newKey() }),
    /** Returns the reads that find the senders of a session's messages. */
    senders: (id: string): SenderReads => ({
      me: async () => (await call<{ principal: { id: string } }>('GET', '/me')).principal.id,
      askers: async (turns) => {
        const ids = encodeURIComponent(turns.join(','))
        const found = await list<{ readonly id: string; readonly asked_by?: string }>(
          `${at(id)}/turns?include=asked_by&limit=${turns.length}&ids=${ids}`,
        )
        return new Map(
          found.flatMap(({ id: turn, asked_by }) =>
            asked_by === undefined ? [] : [[turn, asked_by] as const],
          ),
        )
      },
      nudgeSender: async (nudge) =>
        (await call<SessionNudge>('GET', `${at(id)}/nudges/${encodeURIComponent(nudge)}`))
          .sender_principal_id,
      nameOf: async (principal) =>
        (await call<PrincipalRecord>('GET', `/principals/${encodeURIComponent(principal)}`)).name,
    }),
    attach: (id: string, file: File, signal: AbortSignal) => {
      const form = new FormData()
      form.append('file', file)
      return call<Attached>('POST', `${at(id)}/attachments`, form, signal)
    },
    detach: (id: string, artifact: string) => request('DELETE', fileAt(id, artifact)),
    file: async (id: string, artifact: string) =>
      (await request('GET', `${fileAt(id, artifact)}/content`)).blob(),
    artifact: async (artifact: string) =>
      (await request('GET', `/artifacts/${encodeURIComponent(artifact)}/content`)).blob(),
    /** Calls an action and waits for its result. */
    invoke: (name: string, body: Invoke, signal: AbortSignal) =>
      call<InvokeResult>('POST', `/actions/${encodeURIComponent(name)}/invoke`, body, signal),
    cancel: (id: string, turn: string) =>
      call<AgentTurn>('POST', `${at(id)}/turns/${encodeURIComponent(turn)}/cancel`, {}),
    answer: (interaction: string, value: unknown, comment: string) =>
      call<Interaction>('POST', `/interactions/${encodeURIComponent(interaction)}/respond`, {
        value,
        ...(comment !== '' && { comment }),
      }),
  }
}

async function refusalOf(answer: Response): Promise<Refused> {
  const { error } = (await answer.json().catch(() => ({}))) as { error?: { message?: string } }
  return new Refused(answer.status, error?.message ?? `The service returned ${answer.status}.`)
}
