/**
 * Publishes the output of one attempt of a generation. The publisher numbers the chunks, and keeps
 * the output in memory (up to `limits.preview`) for followers that join later.
 *
 *     asking → open     chunks are sent
 *        ↓       ↓
 *        mute ←──┘      chunks are ignored
 *
 * While it is `asking` which row the generation writes, chunks wait.
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
export interface Generation {
  readonly project: string
  readonly session_id: string
  readonly job_id: string
  readonly attempt: string
  readonly worker_id?: string | undefined
  readonly model?: string | undefined
}
/** What the publishers of a process share. */
export interface PublisherParts {
  readonly world: Pick<World, 'ask' | 'now' | 'monotonic' | 'later' | 'preview' | 'onPreviewed'>
  /** Sends the collected chunks of a publisher after this turn of the event loop. */
  readonly sendAfterTurn: (publisher: Publisher) => void
  /** Sends the collected chunks of a publisher after `COLLECT_MS`. */
  readonly sendAfterDelay: (publisher: Publisher) => void
  /** Ends a publisher whose output is no longer needed. */
  readonly drop: (publisher: Publisher) => void
}

/**
 * Time in milliseconds for which chunks are collected after a message. A display with 50 frames per
 * second shows no difference. Models that generate faster need fewer messages and writes.
 */
export const COLLECT_MS = 20
/** Time without a chunk after which the output of a generation is discarded, in milliseconds. */
const IDLE_TIMEOUT_MS = 300_000
/** Number of characters that are counted for a chunk in addition to its content. */
const CHUNK_LENGTH = 8

interface PreviewChunk {
  readonly delta: JsonObject
  readonly sequence: number | undefined
  readonly at: number
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

export class Publisher {
  readonly generation: Generation
  readonly #parts: PublisherParts
  #state: 'asking' | 'open' | 'mute' = 'asking'
  /** The chunks that wait while the generation's row is being looked up. */
  readonly #waiting: PreviewChunk[] = []
  #row: PreviewOf | undefined
  #run_id: string | undefined
  /** The output so far, with its number of chunks and its approximate number of characters. */
  #content: Previewed['content'] = []
  #n = 0
  #size = 0
  /** The chunks of the next message. */
  #collected: Preview[] = []
  /** The monotonic time of the last message, and of the arrival of the last chunk. */
  #sentAt = 0
  #touchedAt: number
  /** The number that the worker assigned to the last chunk. */
  #lastSequence = -1
  #unsubscribe = () => {}
  #cancelTimeout = () => {}

  constructor(parts: PublisherParts, generation: Generation) {
    this.#parts = parts
    this.generation = generation
    this.#touchedAt = parts.world.monotonic()
    this.#watchIdle()
    void this.#begin()
  }

  /** Publishes a chunk. */
  publish(delta: JsonObject, sequence: number | undefined): void {
    const { world } = this.#parts
    const chunk: PreviewChunk = { delta, sequence, at: world.now() }
    this.#touchedAt = world.monotonic()
    // A chunk whose number does not exceed the last one is a repeat, or arrived too late to be
    // published.
    if (sequence !== undefined && sequence <= this.#lastSequence) return
    this.#lastSequence = sequence ?? this.#lastSequence
    if (this.#state === 'open') this.#collect(chunk)
    else if (this.#state === 'asking') this.#waiting.push(chunk)
  }

  /** Sends the collected chunks. Output for a step of a run is also sent to the run's followers. */
  sendCollected(): void {
    const { world } = this.#parts
    const { project, session_id } = this.generation
    const collected = this.#collected
    if (collected.length === 0) return
    this.#collected = []
    this.#sentAt = world.monotonic()
    world.preview(project, session_id, collected)
    if (this.#run_id !== undefined) world.preview(project, this.#run_id, collected)
  }

  /** Sends the collected chunks, and discards the output. */
  end(): void {
    this.sendCollected()
    this.#state = 'mute'
    this.#cancelTimeout()
    this.#unsubscribe()
  }

  #collect({ delta, sequence, at }: PreviewChunk): void {
    const row = this.#row
    if (!row) return
    this.#size += sizeOf(delta)
    if (this.#size > limits.preview) return
    this.#content = appendDelta(this.#content, delta)?.content ?? this.#content
    const n = ++this.#n
    const { session_id, turn_id, message_id, base, born } = row
    const { job_id, worker_id, model } = this.generation
    const collected = this.#collected
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
      run_id: this.#run_id,
      at,
      worker_id,
      model,
      sequence,
    })
    const { world, sendAfterTurn, sendAfterDelay } = this.#parts
    // People wait for the first chunk.
    if (n === 1) this.sendCollected()
    else if (collected.length === 1) {
      if (world.monotonic() - this.#sentAt >= COLLECT_MS) sendAfterTurn(this)
      else sendAfterDelay(this)
    }
  }

  /** Looks up which row the generation writes, and sends the chunks that waited for it. */
  async #begin(): Promise<void> {
    const { world, drop } = this.#parts
    const { project, session_id, job_id } = this.generation
    const answer = await world
      .ask({ project, kind: 'session', id: session_id }, 'generation', { job_id })
      .catch(() => undefined)
    if (this.#state !== 'asking') return
    if (answer === undefined || isRefusal(answer)) return drop(this)
    if (answer === null) {
      // No row shows this output: it belongs to a compaction, or to a generation that is no longer
      // needed.
      this.#state = 'mute'
      this.#waiting.length = 0
      return
    }
    const { turn_id, message_id, run_id, revision } = answer
    const row = { session_id, turn_id, message_id, base: revision, born: world.now() }
    this.#state = 'open'
    this.#run_id = run_id
    this.#row = row
    this.#unsubscribe = world.onPreviewed(project, message_id, () => ({
      ...row,
      n: this.#n,
      content: this.#content,
    }))
    for (const chunk of this.#waiting.splice(0)) this.#collect(chunk)
  }

  #watchIdle(): void {
    const { world, drop } = this.#parts
    this.#cancelTimeout = world.later(IDLE_TIMEOUT_MS, () => {
      if (world.monotonic() - this.#touchedAt >= IDLE_TIMEOUT_MS) drop(this)
      else this.#watchIdle()
    })
  }
}
