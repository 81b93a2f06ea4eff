/**
 * Reads the logs of an environment's worker through a host of the environment's place. The text
 * comes from users' programs, so credentials in it are redacted first.
 */
import { timestamp } from '../../protocol/common.ts'
import type { Environment, LogName, WorkerLogs } from '../../protocol/environments/schema.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { type LocalQuery, localQuery } from '../listing.ts'
import type { World } from '../ports.ts'
import { redactionOf } from './redact.ts'

/** The default number of lines, and the default maximum number of bytes. */
const DEFAULT = { tail: 200, max_bytes: 64_000 } as const
/**
 * Number of additional bytes that are read before the returned part, so that a credential that
 * begins before this part is recognized and redacted.
 */
const MARGIN_BYTES = 2048

/**
 * The query `environment.worker_logs`. It is refused with `environment_worker_unavailable` when the
 * environment has no place yet, or when no host of its place answers.
 */
export const environmentLogQueries: Readonly<Record<'environment.worker_logs', LocalQuery>> = {
  'environment.worker_logs': localQuery<'environment.worker_logs'>(
    ({ world, project = '' }, query) => readWorkerLogs(world, project, query),
  ),
}

interface LogsQuery {
  readonly log_name?: LogName
  readonly tail?: number
  readonly max_bytes?: number
}
/** Reads the end of a log of an environment's worker. Refused for the same reasons as the query. */
export async function readWorkerLogs(
  world: World,
  project: string,
  { environment_id: id, ...query }: LogsQuery & { readonly environment_id: string },
): Promise<WorkerLogs | Refusal> {
  if (!isId(id, 'environment')) return refuse('not_found')
  const environment = await world.ask({ project, kind: 'environment', id }, 'get', {})
  if (isRefusal(environment)) return environment
  return environment ? readLogs(world, environment, query) : refuse('not_found')
}
async function readLogs(
  world: World,
  environment: Environment,
  { log_name = 'worker', tail = DEFAULT.tail, max_bytes = DEFAULT.max_bytes }: LogsQuery,
): Promise<WorkerLogs | Refusal> {
  const { id, place } = environment
  const found =
    place === undefined
      ? undefined
      : await world.environmentLogs(place, {
          environment_id: id,
          log_name,
          tail,
          max_bytes: max_bytes + MARGIN_BYTES,
        })
  if (!found) return refuse('environment_worker_unavailable')
  const redact = redactionOf(world.settings.key_prefix)
  // The first word of a truncated text may be the end of a credential. A part of a credential is
  // not recognized, so the word is dropped.
  const whole = found.truncated ? found.content.replace(/^\S{1,1024}/, '') : found.content
  const { text, cut } = newest(redact(whole), max_bytes)
  return {
    environment_id: id,
    log_name,
    content: text,
    truncated: found.truncated || cut,
    fetched_at: timestamp(world.now()),
  }
}

/** Returns the last `max` bytes of a text, without splitting a character. */
function newest(text: string, max: number): { readonly text: string; readonly cut: boolean } {
  const bytes = Buffer.from(text)
  if (bytes.length <= max) return { text, cut: false }
  let from = bytes.length - max
  // In UTF-8, bytes of the form 10xxxxxx continue a character.
  while (from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from++
  return { text: bytes.subarray(from).toString(), cut: true }
}
