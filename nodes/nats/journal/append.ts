/**
 * Appends envelopes: a compare-and-set on the last sequence of the shard's subject, which is
 * repeated while it is known that the envelope was not stored yet.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { InvalidArgumentError } from '@nats-io/transport-node'
import { names, subjects } from '../../../protocol/subjects.ts'
import type { Appended, Journal } from '../../host/ports.ts'
import { envelopeHeaders } from '../envelope.ts'
import {
  codeOf,
  codes,
  errorText,
  isNoResponders,
  isOutOfSpace,
  isWrongSequence,
} from '../failures.ts'
import { createLeaderStepDown } from '../leader-stepdown.ts'
import type { Nats } from '../server/connect.ts'

export interface AppendOptions {
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
const IN_PROCESS_PAUSES_MS = [10, 30, 100, 300]
/** Milliseconds before the repeat of an append to a stream that has no leader. */
const NO_LEADER_PAUSE_MS = 100

/**
 * Creates the function that appends.
 * @param last returns the last envelope of a shard.
 */
export function createAppend(
  nats: Nats,
  last: Journal['last'],
  { timeout = 3000, appended = () => {}, doubted = () => {}, refused = () => {} }: AppendOptions,
): Journal['append'] {
  const { space } = nats
  const stepDown = createLeaderStepDown(nats)
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
        stepDown(
          space.stream(names.journal(partition)),
          space.subject(subjects.journal(partition, shard)),
        )
      return stored?.message_id === message_id ? { sequence: stored.sequence } : 'conflict'
    } catch (error) {
      nats.log.warn(
        { event: 'append_conflict_unresolved', partition, shard, reason: errorText(error) },
        'append conflict unresolved; outcome unknown',
      )
      return 'unknown'
    }
  }
  /**
   * Returns the milliseconds before the append is repeated; undefined if it may have been stored.
   * A stream without a leader has not stored it. A leader may be elected before the timeout.
   */
  const pauseBeforeRepeat = (
    error: unknown,
    attempt: number,
    started: number,
  ): number | undefined => {
    if (isNoResponders(error) && performance.now() - started < timeout) return NO_LEADER_PAUSE_MS
    return codeOf(error) === codes.duplicateInProcess ? IN_PROCESS_PAUSES_MS[attempt] : undefined
  }
  return async (partition, shard, data, expected, message_id) => {
    const started = performance.now()
    for (let attempt = 0; ; attempt++) {
      try {
        const sequence = await nats.publish(
          space.subject(subjects.journal(partition, shard)),
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
        const pause = pauseBeforeRepeat(error, attempt, started)
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
}
