/**
 * Identifiers of the form `<prefix>_<26 characters of Crockford base32>`. They have the layout of a
 * ULID (48 bits of time, then randomness; https://github.com/ulid/spec), except that the last two
 * characters encode the SLOT, 0 to 1023. The slot determines the shard, so a gateway finds the
 * shard of an id without a lookup. Records that must change in one commit have ids with the same
 * slot.
 */
import { kindPrefixes } from './entry.ts'

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Number of slots. The shard of an id is its slot modulo the number of shards. */
export const SLOTS = 1024

/**
 * Id prefixes of all kinds of records. The prefixes of actors are defined with their kinds in
 * `entry.ts`.
 */
export const prefixes = {
  ...kindPrefixes,
  key: 'key',
  token: 'tok',
  principal: 'svc',
  user: 'user',
  role: 'role',
  assignment: 'asg',
  workflow: 'wfd',
  job: 'job',
  source_event: 'sevt',
  audit: 'aud',
  wait: 'wait',
  lease: 'lt',
  environment_lease: 'elease',
  session: 'wst',
  response: 'iresp',
  message: 'cmsg',
  exchange: 'cex',
  loop_version: 'lver',
  trigger: 'trig',
  agent: 'agt',
  toolkit: 'kit',
  skill: 'skill',
  memory_entry: 'mem',
  memory_change: 'mchg',
  binding: 'amb',
  action: 'act',
  invocation: 'ainv',
  agent_session: 'ses',
  turn: 'turn',
  session_message: 'sesmsg',
  nudge: 'nudge',
  webhook: 'wbh',
  saved_view: 'svw',
  row: 'row',
  console_session: 'csn',
} as const
export type Prefix = keyof typeof prefixes

const encode = (value: number, length: number): string => {
  let text = ''
  for (let rest = value, i = 0; i < length; i++) {
    text = ALPHABET[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  return text
}

/** Returns the two characters that encode a slot. */
export const slotText = (slot: number): string => encode(slot % SLOTS, 2)

/**
 * Builds an id.
 * @param at Unix milliseconds. Ids sort by this time.
 * @param bytes at least 9 random bytes, or bytes of a hash for an id that is derived from an
 *   idempotency key.
 * @param slot 0 to 1023; derived from `bytes` when absent.
 */
export function makeId(prefix: Prefix, at: number, bytes: Uint8Array, slot?: number): string {
  let random = ''
  for (let i = 0; i < 14; i++) {
    const bit = i * 5
    const pair = ((bytes[bit >> 3] ?? 0) << 8) | (bytes[(bit >> 3) + 1] ?? 0)
    random += ALPHABET[(pair >> (11 - (bit & 7))) & 31]
  }
  const tail = slot ?? (((bytes[0] ?? 0) << 8) | (bytes[8] ?? 0)) % SLOTS
  return `${prefixes[prefix]}_${encode(at, 10)}${random}${slotText(tail)}`
}

/**
 * Returns the slot of an id, or undefined when the text does not end with two characters of the
 * alphabet.
 */
export function slotOf(id: string): number | undefined {
  if (id.length < 2) return undefined
  const high = ALPHABET.indexOf(id[id.length - 2] ?? '')
  const low = ALPHABET.indexOf(id[id.length - 1] ?? '')
  return high < 0 || low < 0 ? undefined : high * 32 + low
}

/**
 * Returns an id without its slot. Ids that are derived from the same text and differ only in their
 * slots have the same stem.
 */
export const stemOf = (id: string): string => id.slice(0, -2)

const SHAPE = /^[a-z]+_[0-9A-HJKMNP-TV-Z]{26}$/
/**
 * Whether a text has the form of an id with this prefix; without `prefix`, of any id. Every id that
 * `makeId` builds has this form, so a lookup can answer `not_found` to any other text immediately.
 */
export const isId = (text: string, prefix?: Prefix): boolean =>
  SHAPE.test(text) && (prefix === undefined || text.startsWith(`${prefixes[prefix]}_`))
