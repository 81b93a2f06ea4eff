/** Requests from gateways to hosts for logs of environments. */
import type { LogName } from './schema.ts'

export interface LogsRequest {
  readonly environment_id: string
  readonly log_name: LogName
  /** Maximum number of lines. The newest lines are returned. */
  readonly tail: number
  /** Maximum number of bytes. The newest bytes are returned. */
  readonly max_bytes: number
}
export interface LogsAnswer {
  /** Untrusted text, as the worker wrote it. */
  readonly content: string
  /** Whether older lines or bytes were omitted. */
  readonly truncated: boolean
}
