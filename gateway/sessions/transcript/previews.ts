/**
 * Publishes model output while it is generated. The publisher is the gateway of the worker that
 * runs the generation, or the executor that runs it.
 *
 * Each attempt of a generation has one publisher. The publisher looks up once which row the
 * generation writes, numbers the chunks, and keeps the output in memory (up to `limits.preview`)
 * for followers that join later. Nothing is stored, and no decision depends on the output.
 *
 * The first chunk is sent immediately, because people wait for it. A chunk that follows a message
 * within `COLLECT_MS` waits, and is sent in one message with the other chunks of that time. Chunks
 * that arrive in the same turn of the event loop are also sent in one message. Output for a step of
 * a run is also sent to the followers of the run.
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
  readonly worker_id?: string | undefined
  readonly model?: string | undefined
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
type Ports = Pick<World, 'ask' | 'now' | 'monotonic' | 'later' | 'preview' | 'onPreviewed'>

/** Time without a chunk after which the output of a generation is discarded, in milliseconds. */
const IDLE_TIMEOUT_MS = 300_000
/**
 * Time in milliseconds for which chunks are collected after a message. A display with 50 frames per
 * second shows no difference. Models that generate faster need fewer messages and writes.
 */
const COLLECT_MS = 20
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
  row: PreviewOf | undefined
  run_id: string | undefined
  /** The output so far, and its number of chunks. */
  content: Previewed['content']
  n: number
  /** The chunks of the next message. */
  collected: Preview[]
  /** The time at which the last message was sent, in Unix milliseconds. */
  sent: number
  size: number
  /** The number that the worker assigned to the last chunk. */
  last: number
  /** The time at which the last chunk arrived, in Unix milliseconds. */
  touched: number
  unsubscribe: () => void
  forget: () => void
}

/** Returns the approximate number of characters of a chunk. Most chunks contain only text. */
function sizeOf(delta: JsonObject): number {
  const { text } = delta
  const length =
    typeof text === 'string' && Object.keys(delta).length === 1
      ? text.length
      : JSON.stringify(delta).length
  return CHUNK_LENGTH + length
}

/** Creates the `Previews` of a process. Its publishers are created as generations begin. */
export function openPreviews(world: Ports): Previews {
  /** The publishers by the id of the job, one for each attempt. */
  const publishers = new Map<string, Publisher[]>()
  /** Publishers whose chunks are sent after this turn of the event loop. */
  const due = createOutbox(0)
  /** Publishers that collect chunks. */
  const collecting = createOutbox(COLLECT_MS)

  /** Creates a set of publishers whose chunks are sent some milliseconds after the first was added. */
  function createOutbox(ms: number): (publisher: Publisher) => void {
    let waiting: Publisher[] = []
    return (publisher) => {
      waiting.push(publisher)
      if (waiting.length > 1) return
      world.later(ms, () => {
        const all = waiting
        waiting = []
        for (const one of all) sendCollected(one)
      })
    }
  }
  function sendCollected(publisher: Publisher): void {
    const { collected, run_id, generation } = publisher
    if (collected.length === 0) return
    publisher.collected = []
    publisher.sent = world.monotonic()
    world.preview(generation.project, generation.session_id, collected)
    if (run_id !== undefined) world.preview(generation.project, run_id, collected)
  }

  const drop = (publisher: Publisher): void => {
    const { job_id } = publisher.generation
    const others = publishers.get(job_id)?.filter((other) => other !== publisher) ?? []
    if (others.length > 0) publishers.set(job_id, others)
    else publishers.delete(job_id)
    sendCollected(publisher)
    publisher.state = 'mute'
    publisher.forget()
    publisher.unsubscribe()
  }
  const watch = (publisher: Publisher): void => {
    publisher.forget = world.later(IDLE_TIMEOUT_MS, () => {
      if (world.monotonic() - publisher.touched >= IDLE_TIMEOUT_MS) drop(publisher)
      else watch(publisher)
    })
  }
  const send = (publisher: Publisher, { delta, sequence, at }: PreviewChunk): void => {
    const { row, run_id, generation, collected } = publisher
    if (!row) return
    publisher.size += sizeOf(delta)
    if (publisher.size > limits.preview) return
    publisher.content = appendDelta(publisher.content, delta)?.content ?? publisher.content
    const n = ++publisher.n
    const { session_id, turn_id, message_id, base, born } = row
    const { job_id, worker_id, model } = generation
    // Properties without a value are absent from JSON.
    collected.push({
      session_id,
      turn_id,
      message_id,
      base,
      born,
      n,
      delta,
      job_id,
      run_id,
      at,
      worker_id,
      model,
      sequence,
    })
    if (n === 1) sendCollected(publisher)
    else if (collected.length === 1) {
      if (world.monotonic() - publisher.sent >= COLLECT_MS) due(publisher)
      else collecting(publisher)
    }
  }
  const begin = async (publisher: Publisher): Promise<void> => {
    const { project, session_id, job_id } = publisher.generation
    const answer = await world
      .ask({ project, kind: 'session', id: session_id }, 'generation', { job_id })
      .catch(() => undefined)
    if (publisher.state !== 'asking') return
    if (answer === undefined || isRefusal(answer)) return drop(publisher)
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
    const row = { session_id, turn_id, message_id, base: revision, born: world.now() }
    publisher.row = row
    publisher.unsubscribe = world.onPreviewed(project, message_id, () => ({
      ...row,
      n: publisher.n,
      content: publisher.content,
    }))
    for (const chunk of publisher.waiting.splice(0)) send(publisher, chunk)
  }
  const open = (generation: Generation): Publisher => {
    const publisher: Publisher = {
      generation,
      waiting: [],
      state: 'asking',
      row: undefined,
      run_id: undefined,
      content: [],
      n: 0,
      collected: [],
      sent: 0,
      size: 0,
      last: -1,
      touched: world.monotonic(),
      unsubscribe: () => {},
      forget: () => {},
    }
    const attempts = publishers.get(generation.job_id)
    if (attempts) attempts.push(publisher)
    else publishers.set(generation.job_id, [publisher])
    watch(publisher)
    void begin(publisher)
    return publisher
  }

  return {
    publish(generation, delta, sequence) {
      const publisher =
        publishers
          .get(generation.job_id)
          ?.find(({ generation: { attempt } }) => attempt === generation.attempt) ??
        open(generation)
      const chunk: PreviewChunk = { delta, sequence, at: world.now() }
      publisher.touched = world.monotonic()
      // A chunk whose number does not exceed the last one is a repeat, or arrived too late to be
      // published.
      if (sequence !== undefined && sequence <= publisher.last) return
      publisher.last = sequence ?? publisher.last
      if (publisher.state === 'open') send(publisher, chunk)
      else if (publisher.state === 'asking') publisher.waiting.push(chunk)
    },
    end(job_id, attempt) {
      for (const publisher of [...(publishers.get(job_id) ?? [])])
        if (attempt === undefined || publisher.generation.attempt === attempt) drop(publisher)
    },
    stop() {
      for (const publisher of [...publishers.values()].flat()) drop(publisher)
    },
  }
}
