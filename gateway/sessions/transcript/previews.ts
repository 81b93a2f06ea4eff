/**
 * Publishes model output while it is generated, in the gateway of the worker that runs the
 * generation, or in the executor that runs it. Nothing is stored, and no decision depends on the
 * output.
 *
 * Each attempt of a generation has one publisher. The first chunk is sent immediately. A chunk that
 * follows a message within `COLLECT_MS` waits, and is sent in one message with the other chunks of
 * that time. Chunks that arrive in the same turn of the event loop are also sent in one message.
 */
import type { JsonObject } from '../../../protocol/common.ts'
import { COLLECT_MS, type Generation, Publisher, type PublisherParts } from './publisher.ts'

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

/** Creates the `Previews` of a process. Its publishers are created as generations begin. */
export function openPreviews(world: PublisherParts['world']): Previews {
  /** The publishers by the id of the job, one for each attempt. */
  const publishers = new Map<string, Publisher[]>()
  const drop = (publisher: Publisher): void => {
    const { job_id } = publisher.generation
    const others = publishers.get(job_id)?.filter((other) => other !== publisher) ?? []
    if (others.length > 0) publishers.set(job_id, others)
    else publishers.delete(job_id)
    publisher.end()
  }
  const parts: PublisherParts = {
    world,
    sendAfterTurn: createOutbox(world, 0),
    sendAfterDelay: createOutbox(world, COLLECT_MS),
    drop,
  }
  const publisherOf = (generation: Generation): Publisher => {
    const { job_id, attempt } = generation
    const attempts = publishers.get(job_id)
    const known = attempts?.find((one) => one.generation.attempt === attempt)
    if (known) return known
    const publisher = new Publisher(parts, generation)
    if (attempts) attempts.push(publisher)
    else publishers.set(job_id, [publisher])
    return publisher
  }
  return {
    publish: (generation, delta, sequence) => publisherOf(generation).publish(delta, sequence),
    end(job_id, attempt) {
      for (const publisher of [...(publishers.get(job_id) ?? [])])
        if (attempt === undefined || publisher.generation.attempt === attempt) drop(publisher)
    },
    stop() {
      for (const publisher of [...publishers.values()].flat()) drop(publisher)
    },
  }
}

/** Creates a set of publishers whose chunks are sent some milliseconds after the first was added. */
function createOutbox(world: PublisherParts['world'], ms: number): (publisher: Publisher) => void {
  let waiting: Publisher[] = []
  return (publisher) => {
    waiting.push(publisher)
    if (waiting.length > 1) return
    world.later(ms, () => {
      const all = waiting
      waiting = []
      for (const one of all) one.sendCollected()
    })
  }
}
