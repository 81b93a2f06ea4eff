/** The port to the store of log lines. The store is not the journal: stored lines may be lost. */
import type { LogBatch, NumberedBatch } from '../../protocol/jobs/logs.ts'

/**
 * Consecutive batches, oldest first. `more` is true if further batches follow in the direction of
 * the read.
 */
export interface LogPart {
  readonly batches: readonly NumberedBatch[]
  readonly more: boolean
}
/**
 * Stores the log lines of each target in numbered batches. A target is a run, or a turn of a
 * session. The returned promises reject when the store does not answer.
 */
export interface LogStore {
  /**
   * Appends a batch to the stored batches of the target, and announces it. A batch is sent only
   * once. If the promise rejects, the batch may have been stored nevertheless.
   */
  append(project: string, target: string, batch: LogBatch): Promise<void>
  /** Returns the first batches whose sequence is at least `sequence`. */
  from(project: string, target: string, sequence: number): Promise<LogPart>
  /**
   * Returns the last batches whose sequence is less than `sequence`; without it, the newest ones.
   */
  before(project: string, target: string, sequence?: number): Promise<LogPart>
  /**
   * Calls `on` with the position of the last line of each newly stored batch, until the returned
   * function is called. Delivery is not guaranteed.
   */
  onStored(project: string, target: string, on: (position: number) => void): () => void
  /** Deletes all lines of a project. */
  forget(project: string): Promise<void>
}
