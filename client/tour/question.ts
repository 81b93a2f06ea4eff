/**
 * The third part of the tour: an agent answers a question about the folder. A worker executes its
 * tools, and calls to one tool need the approval of a user. The tour approves them. The tour
 * follows the transcript and finally compares it with the stored one. Afterwards, even after a
 * failure, it deletes the agent and its actions. The session is retained for inspection.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { settledTurns } from '../../protocol/sessions/settled.ts'
import type { Client } from '../client.ts'
import { followTranscript, readTranscript, Transcript } from '../transcript.ts'
import { watchdog } from '../watchdog.ts'
import { Worker } from '../worker.ts'
import {
  actionsOf,
  agentActions,
  commonEnding,
  deleteLeftoverAgents,
  instructionsOf,
  largestOf,
  questionOf,
  scriptOf,
  toolsOf,
} from './agent.ts'
import { listFiles } from './files.ts'
import { TAGS } from './loop.ts'
import type { Show } from './show.ts'
import { Lines } from './spoken.ts'
import { fromTools } from './verify.ts'
import { unequal } from './watch.ts'

export interface Question {
  readonly at: Client
  readonly url: readonly string[]
  readonly key: string
  readonly folder: string
  readonly shown: Show
  readonly signal: AbortSignal
}
/** Milliseconds within which the agent must answer. A model may be slow. */
const TIMEOUT_MS = 300_000
interface Expected {
  readonly path: string
  readonly lines: number
}

/**
 * Runs this part of the tour. Returns whether all checks passed.
 * @throws BatonError or TranscriptRefused if the service refuses a request; Error on a timeout.
 */
export async function tourOfQuestion(tour: Question): Promise<boolean> {
  const { at, url, key, folder, shown } = tour
  const name = randomUUID().slice(0, 6)
  const files = await listFiles(folder)
  const ending = commonEnding(files)
  const { path } = largestOf(files, ending) ?? { path: '' }
  const { default_model } = await at.catalog.models()
  const scripted = /\/scripted$/.test(default_model)
  await deleteLeftoverAgents(at, Date.now())
  const notes = await mkdtemp(join(tmpdir(), 'baton-notes-'))
  const used: string[] = []
  const worker = new Worker({
    url,
    key,
    project: at.transport.project,
    instance: `tour-${name}`,
    name: 'tour',
    concurrency: 2,
    actions: agentActions(name, folder, notes, (one) => used.push(one)),
  })
  const made: (() => Promise<unknown>)[] = [
    () => worker.stop(),
    () => rm(notes, { recursive: true, force: true }),
  ]
  try {
    await worker.start()
    for (const action of actionsOf(name)) {
      await at.action.create(action)
      made.push(() => at.action.delete({ action_name: action.name }))
    }
    const agent = await at.agent.create({
      name: `Tour ${name}`,
      description: 'Created by the tour and deleted at its end',
      tags: TAGS,
      tool_presentation: 'flat',
      system_prompt: scripted ? scriptOf(name) : instructionsOf(name),
    })
    made.push(() => at.agent.delete({ id: agent.id }))
    const ack = await at.agent.invoke({
      agent_ref: { id: agent.id },
      session: { mode: 'new', title: `Tour ${name}` },
      config: { toolkits: [{ name: 'tour', actions: Object.values(toolsOf(name)) }] },
      input: {
        content: [{ type: 'text', text: questionOf(ending) }],
        idempotency_key: `tour-${name}`,
      },
    })
    const session_id = ack.session.id
    made.push(() => at.session.cancel({ session_id }))
    shown.line(
      `\nNow an agent: ${agent.id} answers a question in ${session_id}, ` +
        `with ${scripted ? 'a script as its model' : `the model ${default_model}`}.\n`,
    )
    const followed = await follow(tour, session_id, ack.turn.id, ack.resume_cursor)
    shown.line('')
    const { lines } = await fromTools(folder, [path])
    const written = await readFile(join(notes, 'answer.txt'), 'utf8').catch(() => '')
    const checked = [
      checkEnd(tour, followed),
      checkAnswer(tour, followed, { path, lines }, written),
      checkTools(tour, name, used, followed.allowed),
      await checkTranscript(tour, session_id, ack.resume_cursor, followed),
    ]
    shown.line(`    open it at ${url[0]}/chat#session=${session_id}`)
    return checked.every(Boolean)
  } finally {
    for (const undo of made.reverse()) await undo().catch(() => {})
  }
}

interface Followed {
  readonly transcript: Transcript
  readonly turn: string
  /** Sequence numbers of final rows in order of arrival, including repeats. */
  readonly heard: readonly number[]
  /** Ids of the interactions that the tour approved. */
  readonly allowed: ReadonlySet<string>
  readonly interruptions: number
}

/** Follows a turn to its end. Approves every approval request, and cancels every other question. */
export async function follow(
  { at, url, key, shown, signal }: Question,
  session_id: string,
  turn: string,
  cursor: string,
): Promise<Followed> {
  const transcript = new Transcript(cursor)
  const lines = new Lines((line) => shown.line(`  ${line}`))
  const heard: number[] = []
  const allowed = new Set<string>()
  const refused = new Set<string>()
  let interruptions = 0
  const onReconnect = (reason: string) => {
    interruptions++
    shown.line(`  (${reason}; resuming the session from here)`)
  }
  const limit = watchdog(TIMEOUT_MS, signal)
  try {
    for await (const { frame } of followTranscript({
      url,
      key,
      project: at.transport.project,
      session_id,
      transcript,
      signal: limit.signal,
      forever: true,
      onReconnect,
    })) {
      // A step without a frame means that pages were read. They contain each row once.
      if (!frame)
        for (const { sequence } of transcript.messages())
          if (sequence !== null) heard.push(sequence)
      if (frame?.event_type === 'message.upsert' && typeof frame['sequence'] === 'number')
        heard.push(frame['sequence'])
      lines.show(transcript)
      for (const { id, kind, status } of transcript.pending()) {
        if (status !== 'pending' || allowed.has(id) || refused.has(id)) continue
        if (kind === 'request_approval') {
          allowed.add(id)
          await at.interaction.respond({ id, value: true, comment: 'Approved by the tour.' })
        } else {
          refused.add(id)
          await at.interaction.cancel({
            id,
            reason: 'No other person is available; continue with what you know.',
          })
        }
      }
      if (settledTurns.has(transcript.turns.get(turn)?.status ?? '')) break
    }
  } finally {
    limit.stop()
  }
  signal.throwIfAborted()
  if (limit.silent()) throw new Error(`the agent did not answer within ${TIMEOUT_MS / 1000} s`)
  return { transcript, turn, heard, allowed, interruptions }
}

export function checkEnd({ shown }: Question, { transcript, turn }: Followed): boolean {
  const { status = 'unknown', error_type, error_message } = transcript.turns.get(turn) ?? {}
  if (status !== 'completed')
    shown.line(
      `FAILED: the turn is ${status}${error_type === undefined ? '' : `, ${error_type}`}` +
        (error_message === undefined ? '' : `: ${error_message}`),
    )
  return status === 'completed'
}
/** Returns the text of the agent's last message. */
export const answerOf = ({ transcript }: Pick<Followed, 'transcript'>): string =>
  transcript
    .messages()
    .filter(({ role }) => role === 'assistant')
    .at(-1)
    ?.content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
    .join('') ?? ''
/** Removes thousands separators, which a model may write: 1,234 or 1 234. */
export const plain = (text: string): string =>
  text.replaceAll(/(\d)[,.\u00a0\u202f ](?=\d{3}\b)/g, '$1')
function checkAnswer(
  { shown }: Question,
  { transcript }: Followed,
  { path, lines }: Expected,
  written: string,
): boolean {
  const answer = answerOf({ transcript })
  const says = (text: string): boolean =>
    text.includes(basename(path)) && new RegExp(`\\b${lines}\\b`).test(plain(text))
  const right = says(answer) && says(written)
  shown.line(
    right
      ? `ok  the answer and the recorded text contain ${path} and its ${lines} lines, as counted by wc -l`
      : `MISMATCH: wc -l counts ${lines} lines in ${path}; ` +
          `the answer is ${JSON.stringify(answer)}, ` +
          `and the recorded text is ${JSON.stringify(written.trim())}`,
  )
  return right
}
function checkTools(
  { shown }: Question,
  name: string,
  used: readonly string[],
  allowed: ReadonlySet<string>,
): boolean {
  const { find, lines, note } = toolsOf(name)
  const times = (tool: string): number => used.filter((one) => one === tool).length
  const right =
    times(find) > 0 && times(lines) > 0 && times(note) > 0 && times(note) === allowed.size
  const said = [find, lines, note].map((tool) => `${tool} ${times(tool)}`).join(', ')
  shown.line(
    right
      ? `ok  a worker executed the tools, and those that change something only after approval by a person: ${said}`
      : `FAILED: ${said}; ${allowed.size} were approved`,
  )
  return right
}
/** Compares the followed transcript with the transcript that the server stores now. */
export async function checkTranscript(
  { at, url, key, shown }: Question,
  session_id: string,
  cursor: string,
  { transcript, heard, interruptions }: Followed,
): Promise<boolean> {
  const { items } = await at.session.messages({ session_id, limit: 100 })
  const fault = unequal(
    session_id,
    heard,
    items.map(({ sequence }) => sequence),
  )
  const stored = await readTranscript(
    { url, key, project: at.transport.project, session_id },
    new Transcript(cursor),
  )
  const same =
    isDeepStrictEqual(transcript.messages(), stored.messages()) &&
    isDeepStrictEqual(new Map(transcript.turns), new Map(stored.turns))
  if (!fault && same)
    shown.line(
      `ok  a transcript of ${items.length} messages was followed without a gap or a duplicate` +
        `${interruptions > 0 ? `, over ${interruptions} interruptions` : ''}, ` +
        'and equals the stored transcript',
    )
  else
    shown.line(
      `MISMATCH: the transcript of ${session_id}: ` +
        `missed ${fault?.missed.join(', ') || 'nothing'}, ` +
        `repeated ${fault?.repeated.join(', ') || 'nothing'}${fault?.disordered ? ', out of order' : ''}` +
        (same ? '' : ', different from the stored transcript'),
    )
  return !fault && same
}
