/** Calls of the page to the service, signed with the key of the visitor. */
import type { Agent } from '../../protocol/agents/schema.ts'
import type { Interaction } from '../../protocol/interactions/schema.ts'
import type { Attached } from '../../protocol/sessions/attachments.ts'
import type { Block } from '../../protocol/sessions/turns/blocks.ts'
import type {
  AgentTurn,
  NudgeAck,
  Session,
  SessionMessage,
  TurnAck,
} from '../../protocol/sessions/schema.ts'

/** Who the visitor is, and in which project. */
export interface Account {
  readonly key: string
  readonly project: string
}
/** The service refused, or did not answer (status 0). */
export class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}
/** What the service does for one visitor. Everything throws `Refused`. */
export type Service = ReturnType<typeof service>

/** Attempts of one request. A repeat has the same idempotency key, so it acts once. */
const TRIES = 4
const retryable: ReadonlySet<number> = new Set([0, 429, 502, 503, 504])

/** An idempotency key. Made without `randomUUID`, which browsers have only where there is TLS. */
const newKey = (): string =>
  `chat-${[...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`

/** The service as a visitor uses it. */
export function service({ key, project }: Account) {
  /** @param body JSON, or a form with a file. @throws Refused; the reason of the signal when it aborts. */
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
        : new Refused(0, 'The service does not answer.')
      if (!retryable.has(refused.status) || attempt === TRIES) throw refused
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
    session: (id: string) => call<Session>('GET', at(id)),
    open: (agent: string) => call<Session>('POST', '/sessions', { agent_id: agent, mode: 'new' }),
    /** Messages before a number, the newest of them. */
    earlier: (id: string, before: number) =>
      list<SessionMessage>(`${at(id)}/messages?before_sequence=${before}&order=desc&limit=50`),
    say: (id: string, content: readonly Block[]) =>
      call<TurnAck>('POST', `${at(id)}/turns`, {
        content,
        idempotency_key: newKey(),
      }),
    /** Send text to the running turn. */
    nudge: (id: string, content: string) =>
      call<NudgeAck>('POST', `${at(id)}/nudges`, { content, idempotency_key: newKey() }),
    attach: (id: string, file: File, signal: AbortSignal) => {
      const form = new FormData()
      form.append('file', file)
      return call<Attached>('POST', `${at(id)}/attachments`, form, signal)
    },
    /** Erase a file. */
    detach: (id: string, artifact: string) => request('DELETE', fileAt(id, artifact)),
    /** The bytes of a file. */
    file: async (id: string, artifact: string) =>
      (await request('GET', `${fileAt(id, artifact)}/content`)).blob(),
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
  return new Refused(answer.status, error?.message ?? `The service answers ${answer.status}.`)
}
