/**
 * The storage format of the journal. A command that changes something results in one ENTRY. The
 * entries of one commit are one ENVELOPE, which is one message on the journal subject of the shard.
 * The CURSOR of an event is its position, an ordinary integer that orders all events of a
 * partition: stream sequence × 1000 + index of the event in its envelope.
 */

interface KindFacts {
  /** Id prefix of this kind of actor. Absent if the id is a name or the id of another record. */
  readonly prefix?: string
  /** The entries of actors of this kind are published live to their followers. */
  readonly followed?: true
  /** The feed of the project contains the events of actors of this kind. */
  readonly fed?: true
}
const facts = {
  organization: { prefix: 'org' },
  project: { prefix: 'prj' },
  run: { prefix: 'run', followed: true, fed: true },
  bulk_request: { prefix: 'bulk' },
  queue: { fed: true },
  worker: { prefix: 'wrk' },
  interaction: { prefix: 'iact' },
  channel: { prefix: 'chan', followed: true },
  channel_name: { prefix: 'chn' },
  events: {},
  loop: { prefix: 'loop' },
  trigger_handle: { prefix: 'trgh' },
  memory: {},
  table: { prefix: 'tbl' },
  table_name: { prefix: 'tbn' },
  // The id prefix of agent sessions is defined in `ids.ts` as `agent_session`, because `session` is
  // the prefix of worker sessions there.
  session: { followed: true },
  delivery: { prefix: 'whd', followed: true },
  plan: {},
  artifact: { prefix: 'art' },
  artifact_key: { prefix: 'artk' },
  environment: { prefix: 'env' },
  environment_name: { prefix: 'evn' },
  blueprint: { prefix: 'bpr' },
  // The id is the id of the principal.
  preferences: {},
  saved_views: {},
} as const satisfies Readonly<Record<string, KindFacts>>
type Facts = typeof facts
export type Kind = keyof Facts
type KindsWith<F extends KindFacts> = {
  [K in Kind]: Facts[K] extends F ? K : never
}[Kind]
export type FollowedKind = KindsWith<{ readonly followed: true }>

export const kinds = Object.keys(facts) as readonly Kind[]
const factsOf: (kind: Kind) => KindFacts = (kind) => facts[kind]
/** The kinds whose entries are published live to followers. */
export const followedKinds = kinds.filter(
  (kind): kind is FollowedKind => factsOf(kind).followed === true,
)
/** The kinds whose events are in the feed of a project. */
export const feedKinds = kinds.filter(
  (kind): kind is KindsWith<{ readonly fed: true }> => factsOf(kind).fed === true,
)
/** Id prefixes by kind, for the kinds that have one. */
export const kindPrefixes = Object.fromEntries(
  kinds.flatMap((kind) => {
    const { prefix } = factsOf(kind)
    return prefix === undefined ? [] : [[kind, prefix]]
  }),
) as { readonly [K in KindsWith<{ readonly prefix: string }>]: Facts[K]['prefix'] }

/** Maximum number of events in one envelope. Cursors are unique only if no envelope exceeds it. */
export const EVENTS_PER_ENVELOPE = 1000

/**
 * Returns the cursor of an event. It is a safe integer while the stream has fewer than 9 × 10^12
 * messages.
 */
export const cursorOf = (sequence: number, index: number): number =>
  sequence * EVENTS_PER_ENVELOPE + index
/** Returns the sequence of the stream message that contains the event with this cursor. */
export const sequenceOf = (cursor: number): number => Math.floor(cursor / EVENTS_PER_ENVELOPE)

/** An acting principal. `type` is the type that the audit log shows. */
export interface Principal {
  readonly type: 'user' | 'service_account' | 'agent' | 'system'
  readonly id: string
  /** Display name, shown as `initiated_by`. */
  readonly name?: string
}

/** The credential that a principal uses, without its secret text. */
export interface Credential {
  readonly type: 'api_key' | 'cli_token' | 'console_session' | 'worker_lease' | 'internal'
  readonly id: string
  readonly name?: string
}

/** The origin of a change: time, identity and request data. `at` is Unix milliseconds. */
export interface Origin {
  readonly at: number
  readonly principal: Principal
  readonly credential?: Credential
  readonly request_id?: string
  readonly ip?: string
  readonly user_agent?: string
}

/** An event. `type` is in the past tense. The other fields depend on the type. */
export interface Event {
  readonly type: string
}

/**
 * The address of an actor. For actors of the organization, `project` is the id of the organization.
 */
export interface Address {
  readonly project: string
  readonly kind: Kind
  readonly id: string
}

/**
 * A command to an actor. `command_id` makes it idempotent. `fingerprint` is derived from the
 * request, so that a different request under the same idempotency key is detected.
 */
export interface Command extends Address {
  readonly command_id: string
  readonly name: string
  readonly input: unknown
  readonly origin: Origin
  readonly fingerprint?: string
  /**
   * The condition of a conditional command: a list of entity tags, one of which the record must
   * have (`conditional.ts`). An owner that runs a release without conditional commands ignores this
   * field.
   */
  readonly if_match?: readonly string[]
  /**
   * The id of the actor was generated at random for this command, and the command is sent for the
   * first time. The actor therefore has no stored state, and none is looked up. A retry omits this
   * flag.
   */
  readonly born?: true
}

/**
 * The result of one command on one actor. `prev` is the cursor of the previous event of this actor,
 * or 0 if the actor has no previous event. When the previous event is in the same envelope, whose
 * sequence is not known before the append, `prev` is −1 − i, where i is the index of that event;
 * `placeEntries` converts this value to a cursor.
 */
export interface Entry extends Address {
  readonly command: { readonly id: string; readonly name: string; readonly fingerprint?: string }
  readonly origin: Origin
  readonly events: readonly Event[]
  /**
   * The reply to the command, stored so that a repeat of the command gets the same reply. Absent
   * when there is no reply, and for kinds that store none.
   */
  readonly reply?: unknown
  readonly prev: number
}

/**
 * One commit. `prev` is the sequence of the previous envelope of the shard, or 0 for the first, so
 * that a replay detects a gap.
 */
export interface Envelope {
  readonly v: 1
  readonly epoch: number
  readonly prev: number
  readonly entries: readonly Entry[]
}

/**
 * An entry with its position, as followers and views receive it. `cursor` is the cursor of its
 * first event.
 */
export interface PlacedEntry {
  readonly cursor: number
  readonly entry: Entry
  /**
   * Only in live entries: the event of this entry was too large to be published, so only its type
   * is included. Views have the complete event.
   */
  readonly stripped?: true
}

/** Returns the entries of the envelope with this sequence, with their cursors. */
export function placeEntries(
  sequence: number,
  { entries }: Pick<Envelope, 'entries'>,
): PlacedEntry[] {
  let index = 0
  return entries.map((entry) => {
    const place = placedAt(sequence, index, entry)
    index += entry.events.length
    return place
  })
}
/**
 * Returns an entry with its position. `index` is the index of its first event in the envelope with
 * this sequence. A `prev` that refers to an event in the same envelope is converted to a cursor.
 */
const placedAt = (sequence: number, index: number, entry: Entry): PlacedEntry => ({
  cursor: cursorOf(sequence, index),
  entry: entry.prev < 0 ? { ...entry, prev: cursorOf(sequence, -1 - entry.prev) } : entry,
})
/** Returns the cursor of the last event of an entry. */
export const lastCursor = ({ cursor, entry }: PlacedEntry): number =>
  cursor + Math.max(0, entry.events.length - 1)
