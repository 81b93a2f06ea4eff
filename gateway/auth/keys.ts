/**
 * Creates and parses the texts of credentials, which begin with `<prefix>_<40 hex digits>`. In
 * project keys and personal tokens, the last 8 characters of the project's id follow the digits, so
 * a gateway finds the project's directory without an index of all keys. The prefix of personal
 * tokens is the key prefix followed by `c`. Only the hash and the first 8 characters of the text
 * are stored. `authenticate.ts` finds the caller to which a credential belongs.
 */

import { hexOf } from '../http/hex.ts'
import type { World } from '../ports.ts'

/**
 * A new key: its text, which is shown once, and the hash and the first characters of this text,
 * which the project or organization stores.
 */
export interface NewKey {
  readonly key: string
  readonly hash: string
  readonly key_prefix: string
}
/**
 * A credential as it was presented: the key text to look up, and the project handle that followed
 * it, if any.
 */
export interface Presented {
  readonly text: string
  readonly handle?: string
}

/** Number of characters of the project tag in a key, and of the stored beginning of a key. */
const TAG_LENGTH = 8
/**
 * Returns the tag that the keys of a project contain. Two projects may share a tag, so a tag only
 * narrows the search.
 */
export const tagOf = (project: string): string => project.slice(-TAG_LENGTH)
/**
 * Returns the last characters of a key's text. In a project key, they are the project tag. In an
 * organization key, they are random. If they happen to equal the tag of a project, the search in
 * that project finds no key, so the match is harmless.
 */
export const tagIn = (text: string): string => text.slice(-TAG_LENGTH)

/** Returns the SHA-256 of a key as hex, which is stored and looked up instead of the key. */
export const keyHash = (world: Pick<World, 'hash'>, text: string): string => world.hash(text)

/**
 * Creates a key.
 * @param project id of the project that the key is pinned to; undefined for an organization key.
 * @param from text from which the key is derived, so that repeating the creation yields the same
 * key. Without it, the key is random.
 * @param kind `token` for a personal token, whose prefix differs.
 */
export function newKey(
  world: Pick<World, 'random' | 'seal' | 'hash' | 'settings'>,
  project: string | undefined,
  from?: string,
  kind: 'key' | 'token' = 'key',
): NewKey {
  const bytes =
    from === undefined
      ? world.random(20)
      : world.seal(`api key\n${project ?? ''}\n${from}`).subarray(0, 20)
  const prefix = `${world.settings.key_prefix}${kind === 'token' ? 'c' : ''}`
  const key = `${prefix}_${hexOf(bytes)}${project === undefined ? '' : tagOf(project)}`
  return { key, hash: keyHash(world, key), key_prefix: key.slice(0, TAG_LENGTH) }
}

/**
 * Splits a credential into the key and the project handle that may follow it after a dot. Returns
 * undefined when the text cannot be a credential.
 */
export function parseCredential(credential: string): Presented | undefined {
  const match = /^([^\s.]{1,512})(?:\.([a-z0-9]+(?:-[a-z0-9]+)*))?$/.exec(credential)
  if (!match) return undefined
  const [, text = '', handle] = match
  return { text, ...(handle !== undefined && { handle }) }
}
/**
 * Reads the credential of an `Authorization: Bearer` header. Returns undefined when the header is
 * absent or contains no credential.
 */
export function parseAuthorization(header: string | undefined): Presented | undefined {
  const match = /^Bearer +(\S+)$/i.exec(header?.trim() ?? '')
  return match?.[1] === undefined ? undefined : parseCredential(match[1])
}

/**
 * Maximum length of a cached header, in characters. It bounds the memory that headers with invalid
 * keys can occupy.
 */
const MAX_HEADER_LENGTH = 200
/** Maximum number of cached headers. */
const MAX_CACHED = 1000
/**
 * Creates a reader of Authorization headers that caches its latest results, because a client sends
 * the same header with every request and hashing is expensive.
 * @param make computes the result, which must depend only on the credential.
 */
export function createReader<T>(
  make: (presented: Presented) => T,
): (header: string | undefined) => T | undefined {
  const known = new Map<string, T>()
  return (header = '') => {
    const before = known.get(header)
    if (before !== undefined) return before
    const presented = parseAuthorization(header)
    if (!presented) return undefined
    const made = make(presented)
    if (header.length > MAX_HEADER_LENGTH) return made
    if (known.size >= MAX_CACHED) known.delete(known.keys().next().value ?? '')
    known.set(header, made)
    return made
  }
}
