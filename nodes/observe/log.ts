/** The log: one JSON line per event. Secrets are cut out wherever a field is called like one, two levels deep. */
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
  /** Least important level that is written; `silent` for none. */
  readonly level: string
  /** Id of the node, on every line. */
  readonly node?: string
  /** Where lines go; standard error by default, so that a program's output stays its own. */
  readonly to?: DestinationStream
}

/** A log. Errors go into the field `error`. */
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
