/**
 * The log: one JSON line per event. Fields whose names denote secrets are redacted, down to two
 * levels of nesting.
 */
import { type DestinationStream, pino } from 'pino'
import type { Log } from '../../gateway/ports.ts'

const secret = [
  'authorization',
  'Authorization',
  'key',
  'api_key',
  'root_key',
  'token',
  'lease_token',
  'worker_session_token',
  'secret',
  'password',
  'cookie',
]
const paths = secret.flatMap((field) => [field, `*.${field}`, `*.*.${field}`])

export interface LogOptions {
  /** Lowest level that is written; `silent` for none. */
  readonly level: string
  /** Id of the node, which is part of every line. */
  readonly node?: string
  /**
   * Destination of the lines. The default is standard error, so that standard output contains only
   * the output of the program.
   */
  readonly to?: DestinationStream
}

/** Creates a log. Errors in the `err` and `error` fields are serialized with their stacks. */
export function createLog({
  level,
  node,
  to = pino.destination({ dest: 2, sync: true }),
}: LogOptions): Log {
  const { err } = pino.stdSerializers
  return pino(
    {
      level,
      base: node === undefined ? {} : { node },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths, censor: '[secret]' },
      serializers: { err, error: err },
      formatters: { level: (label) => ({ level: label }) },
    },
    to,
  )
}
