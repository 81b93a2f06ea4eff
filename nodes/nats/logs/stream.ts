/**
 * The stream of log lines. When a configured limit is reached, the oldest lines are deleted. Lines
 * are acknowledged before they are on disk, so that they do not slow down the journal.
 */
import {
  DiscardPolicy,
  PersistMode,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream'
import { nanos } from '@nats-io/transport-node'
import { names, subjects } from '../../../protocol/subjects.ts'
import { isOutOfSpace } from '../failures.ts'
import type { Nats } from '../server/connect.ts'
import { compressionOf, ensureStream } from '../server/provision.ts'

/** Limits of the stored lines: age, total size, and number of batches per run. */
export interface LogRetention {
  readonly age_ms: number
  readonly bytes: number
  readonly batches: number
}
/** The limit on the total size is never halved to less than this number of bytes. */
const MIN_BYTES = 16 * 1_048_576

/**
 * Creates the stream when it is absent. Otherwise adapts its limits and its number of replicas.
 * When the account has less free space than `bytes`, the limit on the total size is halved until it
 * fits, because the servers reserve the whole size of a stream that has such a limit.
 */
export async function ensureLogs(
  nats: Nats,
  { age_ms, bytes, batches }: LogRetention,
  replicas: number,
): Promise<void> {
  const config = (max_bytes: number): Partial<StreamConfig> & { readonly name: string } => ({
    name: nats.space.stream(names.logs),
    subjects: [nats.space.subject(subjects.logsAll)],
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.Old,
    num_replicas: replicas,
    max_age: nanos(age_ms),
    max_bytes,
    max_msgs: -1,
    max_msgs_per_subject: batches,
    compression: compressionOf(replicas),
    allow_direct: true,
    ...(replicas === 1 && { persist_mode: PersistMode.Async }),
  })
  for (let most = bytes; ; most = Math.floor(most / 2))
    try {
      await ensureStream(nats, config(most))
      if (most < bytes)
        nats.log.warn(
          { event: 'log_stream_reduced', wanted: bytes, bytes: most },
          'fewer log lines are stored than BATON_LOGS_MAX permits, for lack of space',
        )
      return
    } catch (error) {
      if (!isOutOfSpace(error) || most / 2 < MIN_BYTES) throw error
    }
}
