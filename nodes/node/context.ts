/** What the modules that open the parts of a node share. */
import type { Log } from '../../gateway/ports.ts'
import type { Config } from '../config.ts'
import type { Nats } from '../nats/server/connect.ts'
import type { Metrics } from '../observe/metrics.ts'

export interface NodeContext {
  readonly config: Config
  /** Id of the node. */
  readonly id: string
  readonly nats: Nats
  readonly log: Log
  readonly metrics: Metrics
  /** Adds a function that stops a part. The part that was added last is stopped first. */
  readonly onStop: (stop: () => Promise<void>) => void
  /**
   * Called when the node has to be stopped, because its release cannot read stored data, or because
   * another process has taken its id.
   */
  readonly doomed: (error: Error) => void
}
