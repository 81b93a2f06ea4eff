/** A model provider over HTTP in this process, and functions that request answers from it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { generations } from '../../../nodes/executor/generation.ts'
import type { Handler, Outcome } from '../../../nodes/executor/handler.ts'
import { remoteModel } from '../../../nodes/executor/models/remote.ts'
import type { ProviderAccess } from '../../../nodes/models.ts'
import type { ModelMessage } from '../../../protocol/sessions/turns/request.ts'

type Kind = 'openai-compatible' | 'openai' | 'anthropic'
/** The answer to a request: the events of the stream, or the HTTP status of an error. */
type Answering = (body: string) => readonly object[] | number

/** Returns the chunk of a chat completion. */
export const chunk = (delta: object, finish_reason: string | null = null): object => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})
/** Returns the chunk that contains a call of a tool. */
export const called = (id: string, name: string, args: string, index = 0): object =>
  chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] })

interface Stub {
  /** The bodies of the received requests. */
  readonly seen: string[]
  /** Requests the answer to a message. `before`: the messages before it. */
  generate(
    content: ModelMessage['content'],
    tools?: readonly string[],
    before?: readonly ModelMessage[],
  ): Promise<Outcome>
}
/** Starts a provider. It ends with the test. */
export async function stubProvider(
  t: { teardown(run: () => void): void },
  answering: Answering,
  kind: Kind = 'openai-compatible',
): Promise<Stub> {
  const seen: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (part) => {
      body += part
    })
    request.on('end', () => {
      seen.push(body)
      const answer = answering(body)
      if (typeof answer === 'number') {
        response.writeHead(answer, { 'content-type': 'application/json' })
        return void response.end(JSON.stringify({ error: { message: 'no', type: 'stub' } }))
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const event of answer) {
        if (kind === 'anthropic') response.write(`event: ${Reflect.get(event, 'type')}\n`)
        response.write(`data: ${JSON.stringify(event)}\n\n`)
      }
      response.end(kind === 'openai-compatible' ? 'data: [DONE]\n\n' : '')
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(() => void server.close())
  const access: ProviderAccess = {
    provider: 'stub',
    kind,
    key: 'env:KEY',
    base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  }
  const handler = handlerOf(access)
  return {
    seen,
    generate: async (content, tools = [], before = []) =>
      (await handler.perform({
        project: 'prj_1',
        signal: new AbortController().signal,
        job: {
          id: 'job_1',
          provider: 'stub',
          model: 'm',
          claim_attempt: 1,
          spec: {
            request: {
              model: 'm',
              messages: [...before, { role: 'user', content }],
              tools: tools.map((name) => ({ name, input_schema: { type: 'object' } })),
            },
          },
        },
      } as never)) as Outcome,
  }
}
const handlerOf = (access: ProviderAccess): Handler =>
  generations({
    models: {
      default_model: 'stub/m',
      providers: [
        {
          provider: 'stub',
          display_name: 'stub',
          source: 'platform',
          models: [{ id: 'm', provider: 'stub', label: 'm', context_window_tokens: 8000 }],
        },
      ],
    },
    speakers: {
      stub: remoteModel({
        access,
        env: { KEY: 'key' },
        silence: 60_000,
        now: () => 0,
        spread: () => 0,
      }),
    },
    preview: () => ({ show: () => {}, end: () => {} }),
    files: undefined,
    conversions: () => async () => undefined,
    log: { debug() {}, info() {}, warn() {}, error() {} } as never,
    now: () => 0,
  })
