/**
 * The journal over JetStream: one stream per partition and one subject per shard. An append is a
 * compare-and-set on the subject's last sequence. Reads on which a decision depends go to the
 * stream's leader.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { InvalidArgumentError } from '@nats-io/transport-node'
import { names, subjects } from '../../../protocol/subjects.ts'
import type { Appended, Journal, Stored } from '../../host/ports.ts'
import { DamagedEnvelope, envelopeHeaders, openEnvelope } from '../envelope.ts'
import {
  codeOf,
  codes,
  errorText,
  isNoResponders,
  isOutOfSpace,
  isWrongSequence,
} from '../failures.ts'
import { follow } from '../follow.ts'
import { createSuccession, wasLeader } from '../leader.ts'
import { createLeaderStepDown } from '../leader-stepdown.ts'
import { type Nats, REQUEST_TIMEOUT_MS } from '../server/connect.ts'
import { messageAt, newest } from './newest.ts'
import { type Pulling, pull } from './pull.ts'

export interface JournalOptions {
  /** Milliseconds until an append without acknowledgement counts as `unknown`; 3 s by default. */
  readonly timeout?: number
  /** Called with the duration in seconds and the size in bytes of every acknowledged append. */
  readonly appended?: (seconds: number, bytes: number) => void
  /** Called when an append stays unacknowledged and its outcome is unknown. */
  readonly doubted?: () => void
  /** Called with the server's reason when the servers do not store an append for lack of space. */
  readonly refused?: (reason: string) => void
}
/** Milliseconds before each repeat of an append whose first copy is still being stored. */
const IN_PROCESS = [10, 30, 100, 300]
/**
 * Maximum number of messages in the first fetch of a read. It is large, because a new owner of a
 * shard waits for the read, and every further fetch costs a request. With full envelopes of 512
 * KiB, this is 16 MiB.
 */
const FIRST_BATCH = 32
/** Milliseconds before the repeat of an append to a stream that has no leader. */
const NO_LEADER_PAUSE_MS = 100
/** Number of consecutive attempts without a message after which `read` fails. */
const READ_ATTEMPTS = 6

/** Creates the journal over a connection. */
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
  const stepDown = createLeaderStepDown(nats)
  const succession = createSuccession(() => performance.now())
  /**
   * Returns the outcome of an append that was rejected with a conflict. The server compares
   * sequences before it looks for duplicates. A repeat of an append that was stored is therefore
   * also rejected with a conflict.
   */
  const outcomeOfConflict = async (
    partition: number,
    shard: number,
    message_id: string,
    expected: number,
  ): Promise<Appended> => {
    try {
      const stored = await last(partition, shard)
      if ((stored?.sequence ?? 0) === expected)
        stepDown(streamOf(partition), subjectOf(partition, shard))
      return stored?.message_id === message_id ? { sequence: stored.sequence } : 'conflict'
    } catch (error) {
      nats.log.warn(
        { event: 'append_conflict_unresolved', partition, shard, reason: errorText(error) },
        'append conflict unresolved; outcome unknown',
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
          envelopeHeaders(data, message_id, expected),
          timeout,
        )
        appended((performance.now() - started) / 1000, data.length)
        return { sequence }
      } catch (error) {
        if (isWrongSequence(error))
          return await outcomeOfConflict(partition, shard, message_id, expected)
        if (isOutOfSpace(error)) {
          refused(errorText(error))
          return 'refused'
        }
        // The message is larger than the server accepts. A retry cannot help.
        if (error instanceof InvalidArgumentError) throw error
        // The stream has no leader, so the append was not stored. It is retried until a leader is
        // elected or the timeout has passed.
        const unled = isNoResponders(error) && performance.now() - started < timeout
        const pause = unled
          ? NO_LEADER_PAUSE_MS
          : codeOf(error) === codes.duplicateInProcess
            ? IN_PROCESS[attempt]
            : undefined
        if (pause === undefined) {
          doubted()
          nats.log.warn(
            { event: 'append_outcome_unknown', partition, shard, reason: errorText(error) },
            'append outcome unknown',
          )
          return 'unknown'
        }
        await sleep(pause)
      }
    }
  }

  const last = async (partition: number, shard: number): Promise<Stored | undefined> => {
    const stream = streamOf(partition)
    const found = await newest(nats, stream, subjectOf(partition, shard), REQUEST_TIMEOUT_MS)
    return found && openEnvelope(stream, found.sequence, found.data, found.headers)
  }

  const at = async (partition: number, sequence: number): Promise<Stored | undefined> => {
    const stream = streamOf(partition)
    const found = await messageAt(nats, stream, sequence, REQUEST_TIMEOUT_MS)
    return found && openEnvelope(stream, found.sequence, found.data, found.headers)
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
      let reason: unknown = 'no entries are delivered'
      let source: Pulling | undefined
      try {
        source = await pull(nats, stream, next, {
          subject: subjectOf(partition, shard),
          idle: 2000,
          first: Math.max(1, Math.min(end - next + 1, FIRST_BATCH)),
        })
        for await (const message of source.messages) {
          if (!message) break
          yield openEnvelope(stream, message.seq, message.data, message.headers)
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
      // A stopping node closes its connection. Further attempts to read would then be useless.
      if (failures >= READ_ATTEMPTS || nats.connection.isClosed())
        throw new Error(
          `shard ${shard} of ${stream} cannot be read from ${next} to ${end}: ${errorText(reason)}`,
        )
      if (failures > 0) await sleep(100 * 2 ** failures)
    }
  }

  return {
    append,
    last,
    at,
    read,
    position: async (partition) => {
      const asked = performance.now()
      const { state, cluster } = await nats.manager.streams.info(streamOf(partition))
      if (!wasLeader(cluster, performance.now() - asked) || !succession(partition, cluster))
        throw new Error(
          `the server that reported the end of ${streamOf(partition)} may no longer lead it`,
        )
      const { first_seq: first, last_seq: last, messages } = state
      return { first, last, missing: messages === 0 ? 0 : last - first + 1 - messages }
    },
    follow: (partition, from, on) => follow(nats, streamOf(partition), from, on),
  }
}
