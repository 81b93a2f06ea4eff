/**
 * A stub of a model provider over HTTP, run as a separate process: chat completions as server-sent
 * events. The argument of the program is the path of a file to which it writes its address. `/seen`
 * returns the received requests.
 *
 * The newest user message that contains a play, as JSON `{"play": [...], "id": ...}`, defines the
 * answers. A play is a list of answers, one for each request with the same `id`. The last one is
 * repeated. The fields of an answer are those of `Answer`. Without a play, the answer is `hello`.
 */

import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Open = Record<string, unknown>
interface Answer {
  readonly say?: string
  /** The number of characters in each chunk of the text and of the thinking; 10 if absent. */
  readonly size?: number
  readonly think?: string
  readonly calls?: readonly {
    readonly id: string
    readonly name: string
    readonly pieces: readonly string[]
  }[]
  readonly usage?: Open
  /** The HTTP status of an error, which is sent instead of the stream. */
  readonly status?: number
  readonly headers?: Record<string, string>
  /** The number of events after which the connection is destroyed. */
  readonly cut?: number
  /** The number of events after which the response ends early, without a finish reason. */
  readonly stop?: number
  /** The number of events after which a line of invalid JSON is sent. */
  readonly garbage?: number
  /** The number of events after which nothing more is sent while the connection stays open. */
  readonly silent?: number
  readonly finish?: string
}
const seen: Open[] = []
const counts = new Map<string, number>()

const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : Array.isArray(content)
      ? content.map((part) => String((part as Open)['text'] ?? '')).join('')
      : ''
/** Returns the next answer of the newest play in the messages. */
function playOf(messages: readonly Open[]): Answer {
  for (const message of [...messages].reverse()) {
    // The service merges consecutive messages of one role, so a play may follow other text.
    const whole = textOf(message['content'])
    const text = whole.slice(Math.max(0, whole.lastIndexOf('{"play"')))
    if (message['role'] !== 'user' || !text.startsWith('{"play"')) continue
    const { play, id = text } = JSON.parse(text) as { play: Answer[]; id?: string }
    const n = counts.get(id) ?? 0
    counts.set(id, n + 1)
    return play[Math.min(n, play.length - 1)] ?? {}
  }
  return { say: 'hello' }
}
function eventsOf(
  {
    say = '',
    size = 10,
    think = '',
    calls = [],
    usage = { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27 },
    finish,
  }: Answer,
  model: unknown,
): string[] {
  const chunk = (delta: Open, more: Open = {}) =>
    JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model,
      choices: [{ index: 0, delta, finish_reason: null, ...more }],
    })
  const pieces = (text: string) => text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces(think).map((reasoning_content) => chunk({ reasoning_content })),
    ...pieces(say).map((content) => chunk({ content })),
    ...calls.flatMap(({ id, name, pieces: parts }, index) => [
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
      ...parts.map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
    ]),
    chunk({}, { finish_reason: finish ?? (calls.length > 0 ? 'tool_calls' : 'stop') }),
    JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model,
      choices: [],
      usage,
    }),
    '[DONE]',
  ]
}
async function answer(answer: Answer, model: unknown, res: ServerResponse): Promise<void> {
  const { status, headers = {}, cut, stop, garbage, silent } = answer
  if (status !== undefined) {
    res.writeHead(status, { 'content-type': 'application/json', ...headers })
    res.end(JSON.stringify({ error: { message: `no: ${status}`, type: 'stub', code: null } }))
    return
  }
  res.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  for (const [index, event] of eventsOf(answer, model).entries()) {
    if (index === cut) return void res.destroy()
    if (index === stop) return void res.end()
    if (index === silent) return
    if (index === garbage) res.write('data: {"choices": [{]\n\n')
    res.write(`data: ${event}\n\n`)
    await new Promise((soon) => setImmediate(soon))
  }
  res.end()
}

const server = createServer((req, res) => {
  let text = ''
  req.on('data', (part) => {
    text += part
  })
  req.on('end', () => {
    if (req.url === '/seen') return void res.end(JSON.stringify(seen))
    const body = JSON.parse(text) as Open
    seen.push({ path: req.url, authorization: req.headers.authorization, body })
    void answer(playOf(body['messages'] as Open[]), body['model'], res)
  })
})
// Standard input ends when the parent process exits.
process.stdin.on('end', () => process.exit()).resume()
server.listen(0, '127.0.0.1', () =>
  writeFileSync(
    process.argv[2] ?? '',
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  ),
)
