/**
 * Shared logic for the configuration records of the organization and its projects: changes to
 * records, expiry, and API keys. Rules for one kind of record are in `projects/`.
 */

import type { ActionSketch } from '../protocol/access/directory.ts'
import type { ApiKey, KeyEvent, KeyMaterial } from '../protocol/access/rows.ts'
import type { NewSecret } from '../protocol/actions/rows.ts'
import { type JsonObject, parseTimestamp, timestamp } from '../protocol/common.ts'
import { isRefusal, type Refusal, refuse, refuseFields } from '../protocol/errors.ts'
import { getOwn } from '../protocol/lookup.ts'
import { type Patch, patch } from '../protocol/patch.ts'
import { canonicalJson } from '../protocol/rules/canonical-json.ts'
import { isEmpty } from '../protocol/rules/json-object.ts'
import type { Changes } from '../protocol/workflows/rows.ts'
import type { Cause, Decided, Decision } from './actor.ts'

/** A key as its owner stores it. Revoked keys are removed. The journal still has their events. */
interface ApiKeyWithHash {
  readonly key: ApiKey
  /** SHA-256 of the raw key, in hexadecimal. */
  readonly hash: string
  /**
   * True if the text of the key is derived from the request, so that a repeat of the request
   * produces the same text.
   */
  readonly derived?: true
}
/** Keys by id. */
export type Keys = Record<string, ApiKeyWithHash>
/** The keys in the state of the organization or of a project. */
export interface KeyHolder {
  keys: Keys
  /** Hashes of revoked keys whose text could be derived again, the most recently revoked last. */
  spent?: readonly string[]
}
/** Maximum number of hashes in `spent`. The oldest are dropped. */
const MAX_SPENT_KEYS = 10_000

/**
 * Limits on the access records of an owner (the organization or a project), because gateways and
 * executors hold all these records in memory.
 */
export interface AccessLimits {
  /**
   * Maximum number of keys and tokens that are not revoked, whether expired or not; 10,000 by
   * default.
   */
  readonly max_keys?: number
  /**
   * Maximum number of people and services of a project; 10,000 by default. Agents have a separate
   * limit.
   */
  readonly max_principals?: number
}
/** Default maximum number of keys, and of principals, of a project. */
const DEFAULT_LIMIT = 10_000
/** Maximum number of keys of one principal, whether expired or not. */
const MAX_KEYS_OF_PRINCIPAL = 100

/** Refuses another key or token for an owner or a principal that has reached its limit. */
export function keyLimit(
  { max_keys = DEFAULT_LIMIT }: AccessLimits,
  { keys }: Pick<KeyHolder, 'keys'>,
  principal_id?: string,
): Refusal | undefined {
  const all = Object.values(keys)
  if (all.length >= max_keys)
    return refuse(
      'conflict',
      { limit: max_keys },
      `At most ${max_keys} keys and tokens can exist, including expired ones; revoke some first.`,
    )
  const own_keys = all.filter(({ key }) => key.principal_id === principal_id)
  return principal_id !== undefined && own_keys.length >= MAX_KEYS_OF_PRINCIPAL
    ? refuse(
        'conflict',
        { limit: MAX_KEYS_OF_PRINCIPAL, principal_id },
        `A principal has at most ${MAX_KEYS_OF_PRINCIPAL} keys, including expired ones; revoke some first.`,
      )
    : undefined
}
/** Refuses another person or service for a project that has reached its limit. */
export function principalLimit(
  { max_principals = DEFAULT_LIMIT }: AccessLimits,
  principals: Readonly<Record<string, { readonly kind: string }>>,
): Refusal | undefined {
  const count = Object.values(principals).filter(({ kind }) => kind !== 'agent').length
  return count >= max_principals
    ? refuse(
        'conflict',
        { limit: max_principals },
        `A project has at most ${max_principals} people and services; delete some first.`,
      )
    : undefined
}

const same = (a: unknown, b: unknown): boolean => a === b || canonicalJson(a) === canonicalJson(b)

/**
 * The outcome of a requested change to a record: the patch, the changed fields for the audit log,
 * and the record after the change.
 */
export interface Change<T> {
  readonly patch: Patch<T>
  readonly changes: Changes
  readonly next: T
}
/**
 * Computes the change to a record that results from the requested values (`wish`). Undefined fields
 * and equal values are ignored. Empty strings, maps and lists remove the field. Returns undefined
 * if nothing would change, so a repeated PATCH appends nothing.
 */
export function changeOf<T extends { updated_at: string }>(
  record: T,
  wish: { readonly [K in keyof T]?: T[K] | undefined },
  at: number,
): Change<T> | undefined {
  const set: Record<string, unknown> = {}
  const changes: Record<string, { from?: unknown; to?: unknown }> = {}
  for (const [field, value] of Object.entries(wish)) {
    const from = record[field as keyof T]
    const to = isEmpty(value) ? undefined : value
    if (value === undefined || same(from, to)) continue
    set[field] = to === undefined ? null : to
    changes[field] = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  }
  if (Object.keys(set).length === 0) return undefined
  const change = { ...set, updated_at: timestamp(at) } as Patch<T>
  return { patch: change, changes, next: patch(record, change) }
}

/**
 * Returns the fields that differ between a record and its full replacement. Unlike `changeOf`, this
 * function treats an empty value as a value.
 */
export function differences(before: object, after: object): Changes {
  const [old, next] = [
    before as Readonly<Record<string, unknown>>,
    after as Readonly<Record<string, unknown>>,
  ]
  const fields = [...new Set([...Object.keys(old), ...Object.keys(next)])].filter(
    (field) => !same(old[field], next[field]),
  )
  return Object.fromEntries(
    fields.map((field) => [
      field,
      { ...(field in old && { from: old[field] }), ...(field in next && { to: next[field] }) },
    ]),
  )
}

/**
 * Returns the expiry of a new key in its stored form, or a refusal if it is not a timestamp or is
 * in the past.
 * @param now Unix milliseconds.
 */
export function expiryOf(
  expires_at: string | undefined,
  now: number,
): { expires_at?: string } | Refusal {
  if (expires_at === undefined) return {}
  const at = parseTimestamp(expires_at)
  if (at === undefined)
    return refuseFields({
      field: 'expires_at',
      message: 'must be an RFC 3339 time',
      actual: expires_at,
    })
  return at > now
    ? { expires_at: timestamp(at) }
    : refuseFields({ field: 'expires_at', message: 'must be in the future', actual: expires_at })
}
/** Whether a key has not expired at the given time in Unix milliseconds. */
export const isUnexpired = (key: ApiKey, at: number): boolean =>
  key.expires_at === undefined || (parseTimestamp(key.expires_at) ?? 0) > at
/** Whether a key with this name exists among the keys for which `counts` returns true. */
export const hasName = (
  keys: Keys,
  name: string,
  counts: (key: ApiKey) => boolean = () => true,
): boolean => Object.values(keys).some(({ key }) => key.name === name && counts(key))
/** Returns the event that creates a key. */
export const madeOf = (
  key: ApiKey,
  { hash, derived }: KeyMaterial,
): Extract<KeyEvent, { type: 'key.created' }> => ({
  type: 'key.created',
  id: key.id,
  key,
  hash,
  ...(derived && { derived }),
})
/**
 * Refuses a key text that is in use, or that belonged to a revoked key in `spent`. Otherwise, a
 * holder of the revoked text could sign in again.
 */
export const refuseUsedKey = (
  { keys, spent = [] }: KeyHolder,
  { hash }: KeyMaterial,
): Refusal | undefined =>
  spent.includes(hash) || Object.values(keys).some((stored) => stored.hash === hash)
    ? refuse(
        'idempotency_key_conflict',
        undefined,
        'A key was already created with this idempotency key, and its text is returned only once. ' +
          'Use a new idempotency key.',
      )
    : undefined

/** Indexes keys by the hash of their text, because gateways look them up by this hash. */
export const byHash = (keys: Keys): Record<string, ApiKey> =>
  Object.fromEntries(Object.values(keys).map(({ key, hash }) => [hash, key]))

/**
 * Returns the facts about an action that gateways and executors cache: whether the service or a
 * worker executes it, and whether it is safe to repeat.
 */
export function sketchOf({
  endpoint_kind = 'http',
  annotations = {},
}: {
  readonly endpoint_kind?: ActionSketch['kind']
  readonly annotations?: JsonObject
}): ActionSketch {
  return {
    kind: endpoint_kind,
    ...((annotations['idempotent'] === true || annotations['read_only'] === true) && {
      repeatable: true,
    }),
  }
}

/** Minimum time in milliseconds between two updates of a key's `last_used_at`. */
const TOUCH_INTERVAL_MS = 60_000
/**
 * Records the last use of keys. If several gateways report the same key within a minute, only the
 * first report is recorded.
 */
export function keysLastUsed(
  { keys }: { readonly keys: Keys },
  { ids }: { ids: readonly string[] },
  { at }: Cause,
): Decided<KeyEvent, undefined> {
  const due = ids.filter((id) => {
    const stored = getOwn(keys, id)
    return (
      stored !== undefined &&
      (parseTimestamp(stored.key.last_used_at ?? '') ?? -TOUCH_INTERVAL_MS) + TOUCH_INTERVAL_MS <=
        at
    )
  })
  return { events: [...new Set(due)].map((id) => ({ type: 'key.used', id, at })), reply: undefined }
}

/** Reducers for the events of keys. */
export const evolveKeys = {
  'key.created': <S extends KeyHolder>(
    state: S,
    { id, key, hash, derived }: Extract<KeyEvent, { type: 'key.created' }>,
  ): S => {
    state.keys[id] = { key, hash, ...(derived && { derived }) }
    return state
  },
  'key.revoked': <S extends KeyHolder>(
    state: S,
    { id }: Extract<KeyEvent, { type: 'key.revoked' }>,
  ): S => {
    const known = getOwn(state.keys, id)
    if (known?.derived) state.spent = [...(state.spent ?? []), known.hash].slice(-MAX_SPENT_KEYS)
    delete state.keys[id]
    return state
  },
  'key.used': <S extends { keys: Keys }>(
    state: S,
    { id, at }: Extract<KeyEvent, { type: 'key.used' }>,
  ): S => {
    const stored = getOwn(state.keys, id)
    if (stored) state.keys[id] = { ...stored, key: { ...stored.key, last_used_at: timestamp(at) } }
    return state
  },
}

/**
 * Wraps a decision that creates a secret, so that its reply contains the sealed secret if the
 * gateway requests it (`returned`). As long as the reply is stored, a repeated request gets the
 * same secret. After that, it counts as a new request.
 */
export const returningSecret =
  <S, I extends NewSecret, E, R extends object>(
    decide: (state: S, input: I, cause: Cause) => Decision<E, R>,
  ) =>
  (state: S, input: I, cause: Cause): Decision<E, R> => {
    const decision = decide(state, input, cause)
    return isRefusal(decision) || !input.returned || decision.events.length === 0
      ? decision
      : { ...decision, reply: { ...decision.reply, sealed: input.sealed } as R }
  }

type Maps<M extends string, T> = { readonly [_ in M]: Record<string, T> }
type Carries<F extends string, T> = { readonly id: string } & { readonly [_ in F]: T }
/**
 * Returns the reducers for the events of one kind of record.
 * @param map field of the state that contains the records.
 * @param field field of the events that contains the record or its patch.
 */
export const evolveRecord = <M extends string, F extends string>(map: M, field: F) => ({
  created: <T, S extends Maps<M, T>>(state: S, event: Carries<F, T>): S => {
    const records: Record<string, T> = state[map]
    records[event.id] = event[field]
    return state
  },
  updated: <T extends object, S extends Maps<M, T>>(state: S, event: Carries<F, Patch<T>>): S => {
    const records: Record<string, T> = state[map]
    const record = getOwn(records, event.id)
    if (record) records[event.id] = patch(record, event[field])
    return state
  },
  deleted: <S extends Maps<M, unknown>>(state: S, { id }: { readonly id: string }): S => {
    const records: Record<string, unknown> = state[map]
    delete records[id]
    return state
  },
})
