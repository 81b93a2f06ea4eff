/**
 * Publishes model output while it is generated. The publisher is the gateway of the worker that
 * runs the generation, or the executor that runs it.
 *
 * Each attempt of a generation has one publisher. The publisher looks up once which row the
 * generation writes, numbers the chunks, and keeps the output in memory (up to `limits.preview`)
 * for followers that join later. Nothing is stored, and no decision depends on the output. Chunks
 * of a session that arrive in the same turn of the event loop are batched into one message, to
 * reduce the load on lagging processes. The first chunk is sent immediately, because people wait
 * for it. Output for a step of a run is also sent to the followers of the run.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import {
  appendDelta,
  type Preview,
  type Previewed,
  type PreviewOf,
} from '../../../protocol/sessions/transcript/previews.ts'
import type { World } from '../../ports.ts'

/**
 * A generation in progress. `attempt` identifies the attempt of the job, for example by the lease
 * token.
 */
interface Generation {
  readonly project: string
  readonly session_id: string
  readonly job_id: string
  readonly attempt: string
  readonly worker_id?: string
  readonly model?: string
}
/** Publishes the previews of all generations in this process. */
export interface Previews {
  /**
   * Publishes a chunk.
   * @param delta `{text}` or `{type: 'thinking', thinking}`. Other shapes are not sent to clients
   * of the transcript stream.
   * @param sequence the number of the chunk. A chunk whose number does not exceed the previous one
   * is dropped.
   */
  publish(generation: Generation, delta: JsonObject, sequence?: number): void
  /**
   * Discards the output of an attempt that has ended, or of all attempts of the job if `attempt` is
   * absent.
   */
  end(job_id: string, attempt?: string): void
  /** Discards the output of all generations. */
  stop(): void
}
type Ports = Pick<World, 'ask' | 'now' | 'later' | 'preview' | 'onPreviewed'>

/** Time without a chunk after which the output of a generation is discarded, in milliseconds. */
const IDLE_TIMEOUT_MS = 300_000
/** Number of characters that are counted for a chunk in addition to its content. */
const CHUNK_LENGTH = 8
interface PreviewChunk {
  readonly delta: JsonObject
  readonly sequence: number | undefined
  readonly at: number
}
interface Publisher {
  readonly generation: Generation
  /** The chunks that wait while the generation's row is being looked up. */
  readonly waiting: PreviewChunk[]
  state: 'asking' | 'open' | 'mute'
  whole: Previewed | undefined
  run_id: string | undefined
  size: number
  /** The number of the last chunk. */
  last: number
  /** The time at which the last chunk arrived, in Unix milliseconds. */
  touched: number
  unsubscribe: () => void
  forget: () => void
}

/** Returns the approximate number of characters of a chunk. Most chunks contain only text. */
const sizeOf = ({ text, ...more }: JsonObject): number =>
  CHUNK_LENGTH +
  (typeof text === 'string' ? text.length : 0) +
  (Object.keys(more).length > 0 ? JSON.stringify(more).length : 0)

/** Creates the `Previews` of a process. Its publishers are created as generations begin. */
export function openPreviews(world: Ports): Previews {
  const publishers = new Map<string, Publisher>()
  /**
   * The chunks to send after this turn of the event loop, grouped by project and by session or run.
   */
  let gathered = new Map<
    string,
    { readonly project: string; readonly followed: string; readonly chunks: Preview[] }
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
    publisher.forget = world.later(IDLE_TIMEOUT_MS, () => {
      if (world.now() - publisher.touched >= IDLE_TIMEOUT_MS) drop(key)
      else watch(key, publisher)
    })
  }
  const send = (publisher: Publisher, { delta, sequence, at }: PreviewChunk): void => {
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
  const spread = (project: string, followed: string, chunk: Preview): void => {
    const key = `${project} ${followed}`
    const before = gathered.get(key)
    if (before) before.chunks.push(chunk)
    else if (chunk.n === 1) world.preview(project, followed, [chunk])
    else {
      if (gathered.size === 0) world.later(0, flush)
      gathered.set(key, { project, followed, chunks: [chunk] })
    }
  }
  const flush = (): void => {
    const all = gathered
    gathered = new Map()
    for (const { project, followed, chunks } of all.values())
      world.preview(project, followed, chunks)
  }
  const begin = async (key: string, publisher: Publisher): Promise<void> => {
    const { project, session_id, job_id } = publisher.generation
    const answer = await world
      .ask({ project, kind: 'session', id: session_id }, 'generation', { job_id })
      .catch(() => undefined)
    if (publisher.state !== 'asking') return
    if (answer === undefined || isRefusal(answer)) return drop(key)
    if (answer === null) {
      // No row shows this output: it belongs to a compaction, or to a generation that is no longer
      // needed.
      publisher.state = 'mute'
      publisher.waiting.length = 0
      return
    }
    const { turn_id, message_id, run_id, revision } = answer
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
    for (const chunk of publisher.waiting.splice(0)) send(publisher, chunk)
  }

  return {
    publish(generation, delta, sequence) {
      const key = keyOf(generation)
      const chunk: PreviewChunk = { delta, sequence, at: world.now() }
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
            touched: chunk.at,
            unsubscribe: () => {},
            forget: () => {},
          }),
        )
        watch(key, publisher)
        void begin(key, publisher)
      }
      publisher.touched = chunk.at
      // A chunk whose number does not exceed the last one is a repeat, or arrived too late to be
      // published.
      if (sequence !== undefined && sequence <= publisher.last) return
      publisher.last = sequence ?? publisher.last
      if (publisher.state === 'open') send(publisher, chunk)
      else if (publisher.state === 'asking') publisher.waiting.push(chunk)
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
