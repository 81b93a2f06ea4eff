/**
 * Supports tests of agents whose model is a worker of the test: the worker receives generations as
 * jobs and reports the answers that the scenario defines.
 */
import type { RowName } from '../../../protocol/api.ts'
import type { Service, TestWorker } from '../../support/service.ts'
import { type Found, until } from './given.ts'

type Open = Record<string, unknown>
export const text = (said: string): Open => ({ type: 'text', text: said })
export const use = (id: string, name: string, input: Open = {}): Open => ({
  type: 'tool_use',
  id,
  name,
  input,
})

export const agentOf = (s: Service, name: string, more: Open = {}): Promise<Found> =>
  s.ok('agent.create', {
    name,
    model_route: { mode: 'worker', provider: 'local', model: name },
    system_prompt: `You are ${name}.`,
    tool_presentation: 'flat',
    ...more,
  })
/** Connects a worker that serves the model and the given actions. */
export const modelOf = (
  s: Service,
  name: string,
  action_names: readonly string[] = [],
): Promise<TestWorker> =>
  s.worker({
    models: [{ provider: 'local', model: name }],
    action_names: action_names.length > 0 ? action_names : ['nothing'],
  })

let answers = 0
/** Returns the result of a completed generation, as a worker reports it. */
export const answer = (content: readonly Open[], more: Open = {}): Open => ({
  result: {
    llm_response: {
      id: `m${++answers}`,
      type: 'message',
      role: 'assistant',
      model: 'small-1',
      content,
      stop_reason: content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn',
      usage: { input_tokens: 10, output_tokens: 5 },
      ...more,
    },
  },
})
/** Claims the next generation and reports an answer with this content. Returns the job. */
export async function says(
  worker: TestWorker,
  content: readonly Open[],
  more: Open = {},
): Promise<Found> {
  const job = await worker.job()
  await worker.report(job, { status: 'completed', ...answer(content, more) })
  return job
}
/** Returns the messages of a generation request, as `role: text`. */
export const shown = (job: Found): string[] =>
  (
    job['spec'] as unknown as { request: { messages: { role: string; content: Open[] }[] } }
  ).request.messages.map(
    ({ role, content }) =>
      `${role}: ${content.map((block) => block['text'] ?? block['name'] ?? block['content']).join(' ')}`,
  )

export const invoke = (
  s: Service,
  agent: Found,
  said: string,
  more: Open = {},
  input: Open = {},
): Promise<Found> =>
  s.ok('agent.invoke', {
    agent_ref: { id: agent['id'] },
    input: { content: [text(said)], ...input },
    ...more,
  })
export const placeOf = (ack: Found): { session_id: string; turn_id: string } => {
  const { session, turn } = ack as unknown as Record<'session' | 'turn', Open>
  return { session_id: String(session['id']), turn_id: String(turn['id']) }
}
/** Returns the turn once it has one of the given statuses. */
export const turnIn = (s: Service, ack: Found, ...statuses: string[]): Promise<Found> =>
  until(
    () => s.ok('session.turn', placeOf(ack)),
    (turn) => statuses.includes(String(turn['status'])),
  )
/** Returns the first 200 messages of a session, as `role: text`. */
export async function said(
  s: Service,
  ack: Found,
  row: RowName = 'session.messages',
): Promise<string[]> {
  const { items } = (await s.ok(row, {
    session_id: placeOf(ack).session_id,
    limit: 200,
  })) as unknown as { items: { role: string; content: Open[] }[] }
  return items.map(
    ({ role, content }) =>
      `${role}: ${content.map((block) => block['text'] ?? block['name'] ?? block['content']).join(' ')}`,
  )
}
