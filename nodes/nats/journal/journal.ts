/**
 * The journal over JetStream: a stream per partition, a subject per shard. An append is a compare-and-set on the subject's
 * last sequence. What is read for a decision comes from the stream's leader.
 */
import { InvalidArgumentError } from '@nats-io/transport-node'
import { setTimeout as sleep } from 'node:timers/promises'
import { names, subjects } from '../../../protocol/subjects.ts'
import type { Appended, Journal, Stored } from '../../host/ports.ts'
import { QUESTION, type Nats } from '../server/connect.ts'
import { DamagedEnvelope, opened, sealed } from '../envelope.ts'
import {
  codeOf,
  codes,
  isNoResponders,
  isOutOfSpace,
  isWrongSequence,
  sentence,
} from '../failures.ts'
import { follow } from '../follow.ts'
import { createSuccession, leads } from '../leader.ts'
import { newest } from './newest.ts'
import { pull, type Pulling } from './pull.ts'
import { createLeaderStepDown } from '../leader-stepdown.ts'

export interface JournalOptions {
  /** Milliseconds until an append without acknowledgement counts as `unknown`; 3 s by default. */
  readonly timeout?: number
  /** Told the duration of every acknowledged append, in seconds, and its size in bytes. */
  readonly appended?: (seconds: number, bytes: number) => void
  /** Told of every append whose outcome is unknown. */
  readonly doubted?: () => void
  /** Told the server's reason when the storage did not take an append. */
  readonly refused?: (reason: string) => void
}
/** Pauses before an append is repeated whose first sending is still being stored, in milliseconds. */
const IN_PROCESS = [10, 30, 100, 300]
/** Messages that are read first: every further portion costs a question, and a new owner is waited for. Of the largest envelopes they are 16 MB. */
const AT_FIRST = 32
/** Pause before an append is repeated that no leader took, in milliseconds. */
const UNLED = 100
/** Attempts to go on reading without anything arriving, before `read` gives up. */
const READ_ATTEMPTS = 6

/** The journal of a connection. */
export function createJournal(
  nats: Nats,
  {
    timeout = 3000,
    appended = () => {},
    doubted = () => {},
    refused = () => {},
  }: JournalOptions = {},
): Journal {
  const { space } = nats
  const streamOf = (partition: number) => space.stream(names.journal(partition))
  const subjectOf = (partition: number, shard: number) =>
    space.subject(subjects.journal(partition, shard))
  const relief = createLeaderStepDown(nats)
  const succession = createSuccession(() => performance.now())
  /** The server compares before it looks for duplicates: a repeat of what was stored looks like a conflict with oneself. */
  const outcomeOfConflict = async (
    partition: number,
    shard: number,
    message_id: string,
    expected: number,
  ): Promise<Appended> => {
    try {
      const stored = await last(partition, shard)
      if ((stored?.sequence ?? 0) === expected)
        relief(streamOf(partition), subjectOf(partition, shard))
      return stored?.message_id === message_id ? { sequence: stored.sequence } : 'conflict'
    } catch (error) {
      nats.log.warn(
        { partition, shard, reason: sentence(error) },
        'a conflicting append has an unknown outcome',
      )
      return 'unknown'
    }
  }
  const append = async (
    partition: number,
    shard: number,
    data: Uint8Array,
    expected: number,
    message_id: string,
  ): Promise<Appended> => {
    const started = performance.now()
    for (let attempt = 0; ; attempt++) {
      try {
        const sequence = await nats.publish(
          subjectOf(partition, shard),
          data,
          sealed(data, message_id, expected),
          timeout,
        )
        appended((performance.now() - started) / 1000, data.length)
        return { sequence }
      } catch (error) {
        if (isWrongSequence(error))
          return await outcomeOfConflict(partition, shard, message_id, expected)
        if (isOutOfSpace(error)) {
          refused(sentence(error))
          return 'refused'
        }
        // Larger than the server accepts: sending it again cannot help.
        if (error instanceof InvalidArgumentError) throw error
        // Nobody leads the stream: then nobody has it, and whoever is elected is to have it at once.
        const unled = isNoResponders(error) && performance.now() - started < timeout
        const pause = unled
          ? UNLED
          : codeOf(error) === codes.duplicateInProcess
            ? IN_PROCESS[attempt]
            : undefined
        if (pause === undefined) {
          doubted()
          nats.log.warn(
            { partition, shard, reason: sentence(error) },
            'an append has an unknown outcome',
          )
          return 'unknown'
        }
        await sleep(pause)
      }
    }
  }

  const last = async (partition: number, shard: number): Promise<Stored | undefined> => {
    const stream = streamOf(partition)
    const found = await newest(nats, stream, subjectOf(partition, shard), QUESTION)
    return found && opened(stream, found.sequence, found.data, found.headers)
  }

  async function* read(
    partition: number,
    shard: number,
    from: number,
  ): AsyncGenerator<Stored, void> {
    const stream = streamOf(partition)
    const end = (await last(partition, shard))?.sequence ?? 0
    let next = from
    for (let failures = 0; next <= end; ) {
      const before = next
      let reason: unknown = 'nothing is delivered'
      let source: Pulling | undefined
      try {
        source = await pull(nats, stream, next, {
          subject: subjectOf(partition, shard),
          idle: 2000,
          first: Math.max(1, Math.min(end - next + 1, AT_FIRST)),
        })
        for await (const message of source.messages) {
          if (!message) break
          yield opened(stream, message.seq, message.data, message.headers)
          next = message.seq + 1
          if (next > end) return
        }
      } catch (error) {
        if (error instanceof DamagedEnvelope) throw error
        reason = error
      } finally {
        source?.close()
      }
      failures = next > before ? 0 : failures + 1
      if (failures >= READ_ATTEMPTS)
        throw new Error(
          `shard ${shard} of ${stream} cannot be read from ${next} to ${end}: ${sentence(reason)}`,
        )
      if (failures > 0) await sleep(100 * 2 ** failures)
    }
  }

  return {
    append,
    last,
    read,
    position: async (partition) => {
      const asked = performance.now()
      const { state, cluster } = await nats.manager.streams.info(streamOf(partition))
      if (!leads(cluster, performance.now() - asked) || !succession(partition, cluster))
        throw new Error(`who told the end of ${streamOf(partition)} may not lead it any more`)
      const { first_seq: first, last_seq: last, messages } = state
      return { first, last, missing: messages === 0 ? 0 : last - first + 1 - messages }
    },
    follow: (partition, from, on) => follow(nats, streamOf(partition), from, on),
  }
}
