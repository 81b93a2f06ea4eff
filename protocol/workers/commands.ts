/** Internal commands of worker instances, sent by gateways and by the actor itself. */
import type { Registration } from './socket.ts'

export type WorkerCommands = {
  /**
   * Starts a worker session, or resumes the session whose token hash is `given_token_hash`.
   * `session` and `token_hash` are for a new session. Refused with `conflict` while the instance
   * has another session that may still be alive.
   */
  'worker.register': {
    input: Omit<Registration, 'generation' | 'connected_at'> & { given_token_hash?: string }
    reply: {
      registration: Registration
      resumed: boolean
      draining: boolean
      replaced?: { session: string; gateway: string }
    }
  }
  /**
   * Reports that a connection is alive. Sent at each heartbeat interval in which the gateway
   * received something from the worker, and when the worker's filters change. `leases`: number of
   * leases that the session has. `takes`: the new filters, if they have changed. `current` is false
   * when another connection has replaced this one.
   */
  'worker.seen': {
    input: {
      session: string
      generation: number
      leases: number
      takes?: Pick<Registration, 'queues' | 'action_names' | 'models'>
    }
    reply: { current: boolean }
  }
  /**
   * Reports that a connection has ended, and the number of leases that its session still has. Sent
   * again when the last of these leases has ended. A repeat with no fewer leases changes nothing.
   */
  'worker.closed': {
    input: { session: string; generation: number; leases: number }
    reply: undefined
  }
  /**
   * Attaches an environment, whose jobs the session accepts from now on. Refused with `not_found`
   * when the session is not connected or is stale, and with `conflict` when it serves another
   * environment. `replaces`: the id of a destroyed environment, which the session may still serve.
   */
  'worker.attach': {
    input: { session: string; environment_id: string; replaces?: string }
    reply: undefined
  }
  /** Marks the session as draining, because the worker has announced that it is draining. */
  'worker.drained': { input: { session: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
