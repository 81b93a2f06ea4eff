/**
 * Publishing what models say while they say it, for whoever holds the generation: the gateway of its worker, or the executor.
 * Each generation has one publisher per attempt; it learns once which row it writes, numbers the pieces, and keeps the whole for
 * those who come later. Nothing here is stored, and nothing waits for it. Pieces of a session that come together are sent
 * together, except for the first, which people wait for: so a process that is late catches up in few messages and writes. What
 * a step of a run has asked for is sent to those who follow the run as well.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import {
  appendDelta,
  type Generating,
  type Preview,
  type PreviewOf,
  type Previewed,
} from '../../../protocol/sessions/transcript/previews.ts'
import type { World } from '../../ports.ts'

/**
 * A generation under way. `attempt` tells a later attempt at the same job apart, such as its lease token.
 */
interface Generation {
  readonly project: string
  readonly session_id: string
  readonly job_id: string
  readonly attempt: string
  readonly worker_id?: string
  readonly model?: string
}
export interface Previews {
  /** Show a piece: `{text}` or `{type: 'thinking', thinking}`; other shapes reach only clients of the older stream. @param sequence the worker's own count; what is not above the last one is dropped. */
  publish(generation: Generation, delta: JsonObject, sequence?: number): void
  /** The attempt is over, however: what it showed is forgotten. */
  end(job_id: string, attempt?: string): void
  /** Forget everything. */
  stop(): void
}
type Ports = Pick<World, 'ask' | 'now' | 'later' | 'preview' | 'onPreviewed'>

/** Milliseconds without a piece after which a generation is forgotten. */
const SILENCE = 300_000
/** Characters that a piece counts for besides its own. */
const PIECE = 8
interface Piece {
  readonly delta: JsonObject
  readonly sequence: number | undefined
  readonly at: number
}
interface Publisher {
  readonly generation: Generation
  /** Pieces that wait until it is known which row is written. */
  readonly waiting: Piece[]
  state: 'asking' | 'open' | 'mute'
  whole: Previewed | undefined
  run_id: string | undefined
  size: number
  /** The worker's count of its last piece. */
  last: number
  /** When its last piece came. */
  touched: number
  unsubscribe: () => void
  forget: () => void
}

/** Characters of a piece, nearly: most are one text. */
const sizeOf = ({ text, ...more }: JsonObject): number =>
  PIECE +
  (typeof text === 'string' ? text.length : 0) +
  (Object.keys(more).length > 0 ? JSON.stringify(more).length : 0)

/** No generations yet. */
export function openPreviews(world: Ports): Previews {
  const publishers = new Map<string, Publisher>()
  /** Pieces that are sent at the end of this turn, by project and session or run. */
  let gathered = new Map<
    string,
    { readonly project: string; readonly followed: string; readonly pieces: Preview[] }
  >()
  const keyOf = ({ job_id, attempt }: Generation): string => `${job_id} ${attempt}`

  const drop = (key: string): void => {
    const publisher = publishers.get(key)
    if (!publisher) return
    publishers.delete(key)
    publisher.state = 'mute'
    publisher.forget()
    publisher.unsubscribe()
  }
  const watch = (key: string, publisher: Publisher): void => {
    publisher.forget = world.later(SILENCE, () => {
      if (world.now() - publisher.touched >= SILENCE) drop(key)
      else watch(key, publisher)
    })
  }
  const send = (publisher: Publisher, { delta, sequence, at }: Piece): void => {
    const {
      whole,
      run_id,
      generation: { project, job_id, worker_id, model },
    } = publisher
    if (!whole) return
    publisher.size += sizeOf(delta)
    if (publisher.size > limits.preview) return
    const n = whole.n + 1
    publisher.whole = {
      ...whole,
      n,
      content: appendDelta(whole.content, delta)?.content ?? whole.content,
    }
    const { session_id, turn_id, message_id, base, born }: PreviewOf = whole
    const preview: Preview = {
      session_id,
      turn_id,
      message_id,
      base,
      born,
      n,
      delta,
      job_id,
      ...(run_id !== undefined && { run_id }),
      at,
      ...(worker_id !== undefined && { worker_id }),
      ...(model !== undefined && { model }),
      ...(sequence !== undefined && { sequence }),
    }
    spread(project, session_id, preview)
    if (run_id !== undefined) spread(project, run_id, preview)
  }
  const spread = (project: string, followed: string, piece: Preview): void => {
    const key = `${project} ${followed}`
    const before = gathered.get(key)
    if (before) before.pieces.push(piece)
    else if (piece.n === 1) world.preview(project, followed, [piece])
    else {
      if (gathered.size === 0) world.later(0, flush)
      gathered.set(key, { project, followed, pieces: [piece] })
    }
  }
  const flush = (): void => {
    const all = gathered
    gathered = new Map()
    for (const { project, followed, pieces } of all.values())
      world.preview(project, followed, pieces)
  }
  const begin = async (key: string, publisher: Publisher): Promise<void> => {
    const { project, session_id, job_id } = publisher.generation
    const answer = await world
      .ask({ project, kind: 'session', id: session_id }, 'generation', { job_id })
      .catch(() => undefined)
    if (publisher.state !== 'asking') return
    if (answer === undefined || isRefusal(answer)) return drop(key)
    if (answer === null) {
      // Nobody is shown this one: a compaction, or one that nobody waits for any more.
      publisher.state = 'mute'
      publisher.waiting.length = 0
      return
    }
    const { turn_id, message_id, run_id, revision } = answer as Generating
    publisher.state = 'open'
    publisher.run_id = run_id
    publisher.whole = {
      session_id,
      turn_id,
      message_id,
      base: revision,
      born: world.now(),
      n: 0,
      content: [],
    }
    publisher.unsubscribe = world.onPreviewed(project, message_id, () => publisher.whole)
    for (const piece of publisher.waiting.splice(0)) send(publisher, piece)
  }

  return {
    publish(generation, delta, sequence) {
      const key = keyOf(generation)
      const piece: Piece = { delta, sequence, at: world.now() }
      let publisher = publishers.get(key)
      if (!publisher) {
        publishers.set(
          key,
          (publisher = {
            generation,
            waiting: [],
            state: 'asking',
            whole: undefined,
            run_id: undefined,
            size: 0,
            last: -1,
            touched: piece.at,
            unsubscribe: () => {},
            forget: () => {},
          }),
        )
        watch(key, publisher)
        void begin(key, publisher)
      }
      publisher.touched = piece.at
      // A piece that comes again, or late, was shown already or is missed for good.
      if (sequence !== undefined && sequence <= publisher.last) return
      publisher.last = sequence ?? publisher.last
      if (publisher.state === 'open') send(publisher, piece)
      else if (publisher.state === 'asking') publisher.waiting.push(piece)
    },
    end(job_id, attempt) {
      for (const [key, { generation }] of [...publishers])
        if (
          generation.job_id === job_id &&
          (attempt === undefined || generation.attempt === attempt)
        )
          drop(key)
    },
    stop() {
      for (const key of [...publishers.keys()]) drop(key)
    },
  }
}
