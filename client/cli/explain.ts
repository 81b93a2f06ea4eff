/** Explains errors to the user and suggests the next step. */
import { BatonError } from '../errors.ts'
import { WorkerError } from '../worker/options.ts'
import { keyFiles } from './connection/connection.ts'
import { type Environment, isSystemError, Mistake } from './mistake.ts'

interface Field {
  readonly field?: unknown
  readonly message?: unknown
}

const FILE_CALLS: ReadonlySet<string | undefined> = new Set(['read', 'write'])

/** Returns one or more lines for the user, or undefined if the failure is unexpected. */
export function explain(error: unknown, env: Environment): string | undefined {
  if (error instanceof Mistake) return error.message
  // Errors with a path concern a file that the user named. Errors of open files have no path.
  if (isSystemError(error) && (error.path !== undefined || FILE_CALLS.has(error.syscall)))
    return error.message
  if (error instanceof WorkerError) {
    const next = workerAdvice(error, env)
    return `${error.message}.${next === '' ? '' : ` ${next}`}`.replace(/\.\./g, '.')
  }
  if (!(error instanceof BatonError)) return undefined
  const { code, status, message, details, request_id } = error
  if (code === 'unreachable')
    return (
      `${message}\nIs the server running? Start it with: npm start. ` +
      'Specify another address with --server, BATON_URL or BATON_PORT.'
    )
  const lines = [`${code}: ${message}`]
  const fields = Array.isArray(details?.['fields']) ? (details['fields'] as Field[]) : []
  for (const { field, message: fault } of fields) {
    const faultText = `${String(field)}: ${String(fault)}`
    if (faultText !== message) lines.push(`  ${faultText}`)
  }
  if (details && fields.length === 0) lines.push(`  ${JSON.stringify(details)}`)
  const next = status === 401 ? whereKeys(env) : message === NO_PATH ? noPath : (advice[code] ?? '')
  if (next !== '') lines.push(next)
  if (status >= 500 && request_id !== undefined) lines.push(`Request id: ${request_id}`)
  return lines.join('\n')
}

/** Returns the next step after the rejection of a worker's upgrade; otherwise an empty text. */
function workerAdvice({ status }: WorkerError, env: Environment): string {
  if (status === 401) return whereKeys(env)
  if (status === 404) return 'Check --project; `baton project list` shows the existing projects.'
  return status === 403 ? (advice['permission_denied'] ?? '') : ''
}
const whereKeys = (env: Environment): string =>
  'Pass a key with --key or BATON_KEY, or sign in again with `baton login` if the key is from a ' +
  'profile of yours. ' +
  `A server started here stores its owner key in ${keyFiles(env).join(', a cluster in ')}.`
/** The message of a service for a path that it does not serve. */
const NO_PATH = 'There is no such path.'
const noPath =
  'The server does not have this operation. It may be older than this command line, or the ' +
  'address in --server may have a wrong path.'
const advice: Readonly<Record<string, string>> = {
  permission_denied:
    'Use a key whose role has this permission; `baton permission list` shows what each role grants.',
  not_found: 'Check the id and --project; the list command of the resource shows the existing ids.',
  bad_request: 'Run the command with --help to list its fields.',
  rate_limit_exceeded: 'Wait a moment and try again.',
  unexpected_response: 'Specify another address with --server, BATON_URL or BATON_PORT.',
  service_unavailable:
    'The service is starting or has lost its storage; try again in a few seconds.',
}
