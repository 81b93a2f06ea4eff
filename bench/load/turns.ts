/** Turns of agents for load tests, and workers that generate the answers. */
import type { Target } from '../support/baton.ts'
import type { Http } from './http.ts'
import { openSocket, type Socket } from './socket.ts'
import { follow } from './sse.ts'

const INVOKE = '/v1/projects/default/agents/invoke'
/** Milliseconds for which a rejected turn is retried. */
const RETRY_TIMEOUT_MS = 30_000
/** Milliseconds between two attempts. */
const RETRY_EVERY_MS = 200
/** A script that sends its whole answer at once. */
export const quick = 'script:\n  - say: All hosts are green.\n'
/** A script that sends its first chunk immediately and the others slowly. */
export const slow =
  'script:\n  - say: All hosts are green and everybody is happy about it.\n    pace: 20ms\n'

interface Seen {
  readonly preview: number
  readonly done: number
}
/**
 * Invokes an agent in a new session and follows the turn. Returns the milliseconds from the request
 * until the first preview (NaN if there was none) and until the end of the turn.
 */
export function turn({ port, key }: Target, agent: string): Promise<Seen> {
  const from = performance.now()
  const body = JSON.stringify({
    agent_ref: { id: agent },
    session: { mode: 'new' },
    input: { content: [{ type: 'text', text: 'How are the hosts?' }] },
  })
  return new Promise((done, failed) => {
    let preview = Number.NaN
    const begin = (): unknown =>
      follow(
        port,
        key,
        INVOKE,
        (text) => {
          // A follower that joins during the generation receives the text so far in one event.
          if (
            Number.isNaN(preview) &&
            /event: (?:generation\.delta|session\.message\.preview)\n/.test(text)
          )
            preview = performance.now() - from
          if (text.includes('event: turn.failed\n')) failed(new Error(`a turn failed: ${text}`))
          if (text.includes('event: turn.completed\n'))
            done({ preview, done: performance.now() - from })
        },
        () => failed(new Error('the stream of a turn ended before the turn')),
        body,
      ).catch((error: Error & { status?: number }) => {
        // A turn that is rejected with 503 is retried, as other clients do. The measured time
        // includes the retries.
        if (error.status === 503 && performance.now() - from < RETRY_TIMEOUT_MS)
          setTimeout(begin, RETRY_EVERY_MS)
        else failed(error)
      })
    begin()
  })
}
/**
 * Creates an agent, by default with the scripted model, and returns its id.
 * @param more additional fields of the request.
 */
export async function agentOf(http: Http, name: string, more: object): Promise<string> {
  const { status, body } = await http.post(
    '/v1/projects/default/agents',
    JSON.stringify({ name, memory_context: { mode: 'off' }, ...more }),
  )
  const id = status === 201 ? /"id":"(\w+)"/.exec(body)?.[1] : undefined
  if (id === undefined) throw new Error(`an agent was answered ${status}: ${body}`)
  return id
}

/** Concurrent generations per worker connection. */
export const SLOTS = 50

/** A generation whose chunks this process sends. */
export interface Speaking {
  readonly socket: Socket
  readonly job: string
  readonly token: string
  said: number
  sequence: number
}
interface Given {
  readonly id: string
  readonly lease_token: string
}

/**
 * Connects a worker that claims generations, up to `SLOTS` at a time.
 * @param given called for each claimed generation. The caller streams its chunks and ends it.
 */
export async function speaker(
  { port, key }: Target,
  name: string,
  given: (one: Speaking) => void,
): Promise<Socket> {
  let registered = () => {}
  const ready = new Promise<void>((done) => {
    registered = done
  })
  let held = 0
  let claiming = false
  const claim = () => {
    if (claiming || held >= SLOTS) return
    claiming = true
    socket.send(`{"type":"jobs.claim","available_slots":${SLOTS - held}}`)
  }
  const socket = await openSocket(port, key, '/v1/projects/default/workers/socket', (text) => {
    if (text.startsWith('{"type":"job.report.ack"')) {
      held--
      return claim()
    }
    const frame = JSON.parse(text) as { type: string; jobs?: Given[]; error?: { code: string } }
    if (frame.type === 'error') throw new Error(`a worker was told ${frame.error?.code}`)
    for (const { id, lease_token } of frame.jobs ?? []) {
      held++
      given({ socket, job: id, token: lease_token, said: 0, sequence: 0 })
    }
    if (frame.type === 'jobs.claimed') claiming = false
    if (frame.type === 'jobs.claimed' || frame.type === 'work.available') claim()
    if (frame.type !== 'worker.registered') return
    claim()
    registered()
  })
  socket.send(
    `{"type":"worker.register","worker_instance_id":"${name}","concurrency_limit":${SLOTS},` +
      '"action_names":["none"],"models":[{"provider":"local","model":"talker"}]}',
  )
  await ready
  return socket
}
/** Sends the next chunk of a generation. */
export function say(one: Speaking, text: string): void {
  one.said++
  one.socket.send(
    `{"type":"generation.delta","job_id":"${one.job}","lease_token":"${one.token}",` +
      `"sequence":${++one.sequence},"delta":{"text":"${text}"}}`,
  )
}
/** Ends a generation. */
export const finish = ({ socket, job, token }: Speaking): void =>
  socket.send(
    `{"type":"job.report","job_id":"${job}","lease_token":"${token}","status":"completed",` +
      '"result":{"llm_response":{"id":"m","type":"message","role":"assistant","model":"talker",' +
      '"content":[{"type":"text","text":"done"}],"stop_reason":"end_turn",' +
      '"usage":{"input_tokens":1,"output_tokens":1}}}}',
  )
