/**
 * What makes a request repeatable: the same key gives the same command and the same ids, so a repeat reaches the actor that
 * decided it the first time, which answers what it answered then.
 */
import { isRefusal, refuseFields, type Refusal } from '../../protocol/errors.ts'
import { scopeId, operationOf, queryOf, type Call, type Edge } from '../call.ts'
import { hexOf } from './hex.ts'

/** Under what names a call is performed. */
export interface Identity {
  readonly command_id: string
  /** What minted ids and other made-up values are derived from; absent: they are new. */
  readonly seed?: string
  /** Tells a key that is used again with another request. */
  readonly fingerprint?: string
}

/** Rows whose key names the run itself, for the whole project and for as long as the run exists. */
const starts: ReadonlySet<string> = new Set(['run.start', 'workflow.run', 'loop.start'])
/** Rows whose actor remembers the header itself. */
const byActor: ReadonlySet<string> = new Set(['session.attach'])
const MAX_KEY_LENGTH = 255

/** The key of a call: the Idempotency-Key header, unless one came another way; blank is none. */
export function keyOf({
  incoming,
  key: given,
}: Pick<Call, 'incoming' | 'key'>): string | undefined | Refusal {
  if (given !== undefined) return given
  const key = incoming.method === 'POST' ? incoming.header('idempotency-key') : undefined
  return key === undefined || key.length <= MAX_KEY_LENGTH
    ? key
    : refuseFields({
        field: 'Idempotency-Key',
        message: `must have at most ${MAX_KEY_LENGTH} characters`,
        expected: { maxLength: MAX_KEY_LENGTH },
        actual: key.length,
      })
}

/**
 * The identity of a call. A key in the body counts alone: it names the run that is started, or the record remembers it. Without
 * one the header makes the request repeatable, whatever its row.
 */
export function identify(edge: Edge, call: Call): Identity | Refusal {
  const { world } = edge
  const { caller, incoming, row, body } = call
  const fresh = { command_id: hexOf(world.random(16)) }
  const header = keyOf(call)
  if (isRefusal(header)) return header
  const inBody = row.shape.key as ((body: Call['body']) => string | undefined) | undefined
  const key = inBody?.(body)
  if (key !== undefined && starts.has(operationOf(call)))
    return { ...fresh, seed: JSON.stringify(['run', scopeId(edge, call), key]) }
  const repeatedByBody = key !== undefined && call.key === undefined
  if (header === undefined || repeatedByBody || byActor.has(operationOf(call))) return fresh
  const { method, path } = incoming
  const seed = JSON.stringify([
    'request',
    scopeId(edge, call),
    caller.principal.id,
    method,
    path,
    header,
  ])
  return {
    command_id: world.hash(seed).slice(0, 40),
    seed,
    fingerprint: world.hash(JSON.stringify([method, path, queryOf(call), body])).slice(0, 40),
  }
}
