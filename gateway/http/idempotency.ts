/**
 * Makes requests idempotent: requests with the same idempotency key have the same command id and
 * the same generated ids. A repeat therefore reaches the actor that decided the first request,
 * which returns its first response. The shard host, not the gateway, remembers commands.
 */
import { isRefusal, isServiceFault, type Refusal, refuseFields } from '../../protocol/errors.ts'
import { type Call, type Edge, factsOf, queryOf, scopeId } from '../call.ts'
import type { Prepared } from '../prepare.ts'

/** Identifies a call, so that a repeat can be recognized. */
export interface Identity {
  readonly command_id: string
  /**
   * The seed of generated ids and other generated values. Without a seed, these values are random.
   */
  readonly seed?: string
  /**
   * A hash of the request. The actor uses the hash to detect a key that is reused for a different
   * request.
   */
  readonly fingerprint?: string
}

/** Maximum length of an idempotency key in characters. */
const MAX_KEY_LENGTH = 255
/** The methods that clients retry only with an idempotency key. */
const KEYED_METHODS: ReadonlySet<string> = new Set(['POST', 'PATCH'])

/**
 * Returns the idempotency key of a call: `call.key` if it is present, otherwise the
 * `Idempotency-Key` header of a POST or PATCH request. The header is ignored if it is blank, and
 * for a part of a call. A header of more than `MAX_KEY_LENGTH` characters is refused.
 */
export function keyOf({
  incoming,
  key: given,
  part,
}: Pick<Call, 'incoming' | 'key' | 'part'>): string | undefined | Refusal {
  if (given !== undefined || part) return given
  const key = KEYED_METHODS.has(incoming.method) ? incoming.header('idempotency-key') : undefined
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
 * Returns the identity of a call. If the body contains a key, the header is not used: the id of the
 * started run is derived from the key in the body, or the actor deduplicates by it. Otherwise, the
 * header or `call.key` makes requests idempotent, except for rows whose actor stores the keys
 * (`keyScope: 'actor'`).
 */
export function identify(edge: Edge, call: Call): Identity | Refusal {
  const { world } = edge
  const { caller, incoming, row, body } = call
  const fresh = { command_id: world.newCommandId() }
  const header = keyOf(call)
  if (isRefusal(header)) return header
  const inBody = row.shape.key as ((body: Call['body']) => string | undefined) | undefined
  const key = inBody?.(body)
  const { keyScope } = factsOf(call)
  if (key !== undefined && keyScope === 'run')
    return { ...fresh, seed: JSON.stringify(['run', scopeId(edge, call), key]) }
  const repeatedByBody = key !== undefined && call.key === undefined
  if (header === undefined || repeatedByBody || keyScope === 'actor') return fresh
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

/**
 * Returns the refusal of a preparation in the form that does not apply to a repeat
 * (`Prepared.unlessRepeated`). A request without a key, and a temporary refusal, are refused.
 * @param more the other parts of the preparation, which complete the answer to a repeat.
 */
export const unlessRepeated = (
  refusal: Refusal,
  { fingerprint }: Pick<Identity, 'fingerprint'>,
  more: Prepared = {},
): Prepared | Refusal =>
  fingerprint !== undefined && !isServiceFault(refusal)
    ? { ...more, unlessRepeated: refusal }
    : refusal
