/**
 * The storage format. One command that changed something is one ENTRY; the entries of one commit
 * are one ENVELOPE, one message of a shard's journal subject. The position of an event, its CURSOR,
 * is an ordinary integer that orders a whole partition: stream sequence × 1000 + index of the event
 * in its envelope.
 */

/** The facts of a kind of actors. */
interface KindFacts {
  /** Prefix of the ids of these actors; absent where the id is that of another record or a name. */
  readonly prefix?: string
  /** Entries are published live to the followers of one actor. */
  readonly followed?: true
  /** The feed of a project contains the events. */
  readonly fed?: true
}
/** Kinds of actors. Each actor is one consistency boundary. */
const facts = {
  organization: { prefix: 'org' },
  project: { prefix: 'prj' },
  run: { prefix: 'run', followed: true, fed: true },
  queue: { fed: true },
  worker: { prefix: 'wrk' },
  interaction: { prefix: 'iact' },
  channel: { prefix: 'chan', followed: true },
  channel_name: { prefix: 'chn' },
  events: {},
  loop: { prefix: 'loop' },
  trigger_handle: { prefix: 'trgh' },
  memory: {},
  // The prefix is `agent_session` in `ids.ts`, where `session` is the session of a worker.
  session: { followed: true },
  delivery: { prefix: 'whd', followed: true },
  plan: {},
} as const satisfies Readonly<Record<string, KindFacts>>
type Facts = typeof facts
export type Kind = keyof Facts
type KindsWith<F extends KindFacts> = {
  [K in Kind]: Facts[K] extends F ? K : never
}[Kind]
export type FollowedKind = KindsWith<{ readonly followed: true }>

export const kinds = Object.keys(facts) as readonly Kind[]
const factsOf: (kind: Kind) => KindFacts = (kind) => facts[kind]
/** Kinds whose entries are published live to the followers of one actor. */
export const followedKinds = kinds.filter(
  (kind): kind is FollowedKind => factsOf(kind).followed === true,
)
/** Kinds whose events the feed of a project contains. */
export const feedKinds = kinds.filter(
  (kind): kind is KindsWith<{ readonly fed: true }> => factsOf(kind).fed === true,
)
/** The prefix of each kind whose actors have ids of their own. */
export const kindPrefixes = Object.fromEntries(
  kinds.flatMap((kind) => {
    const { prefix } = factsOf(kind)
    return prefix === undefined ? [] : [[kind, prefix]]
  }),
) as { readonly [K in KindsWith<{ readonly prefix: string }>]: Facts[K]['prefix'] }

/** Maximum events in one envelope, so that every cursor is unique. */
export const EVENTS_PER_ENVELOPE = 1000

/** The cursor of an event. Safe while the stream has fewer than 9 × 10^12 messages. */
export const cursorOf = (sequence: number, index: number): number =>
  sequence * EVENTS_PER_ENVELOPE + index
/** The sequence of the stream message that contains the event of a cursor. */
export const sequenceOf = (cursor: number): number => Math.floor(cursor / EVENTS_PER_ENVELOPE)

/** The principal that acts; `type` is its type in the audit log. */
export interface Principal {
  readonly type: 'user' | 'service_account' | 'agent' | 'system'
  readonly id: string
  /** Display name, for `initiated_by`. */
  readonly name?: string
}

/** The credential used; never contains its secret. */
export interface Credential {
  readonly type: 'api_key' | 'cli_token' | 'worker_lease' | 'internal'
  readonly id: string
  readonly name?: string
}

/**
 * The origin of a change: time, identity and request data, as plain data. `at` is Unix
 * milliseconds.
 */
export interface Origin {
  readonly at: number
  readonly principal: Principal
  readonly credential?: Credential
  readonly request_id?: string
  readonly ip?: string
  readonly user_agent?: string
}

/** An event: a type in the past tense and the fields that its actor kind declares. */
export interface Event {
  readonly type: string
}

/** Address of an actor. `project` is the organization's id for organization-level actors. */
export interface Address {
  readonly project: string
  readonly kind: Kind
  readonly id: string
}

/**
 * A command on its way to an actor. `command_id` makes it idempotent; `fingerprint` reveals that
 * the key was reused with another body.
 */
export interface Command extends Address {
  readonly command_id: string
  readonly name: string
  readonly input: unknown
  readonly origin: Origin
  readonly fingerprint?: string
  /**
   * The actor's id was generated at random for this command, and this is the first time the command
   * is sent: the actor cannot have stored state, so none is looked up. A retry omits this flag.
   */
  readonly born?: true
}

/**
 * The effect of one command on one actor. `prev` is the cursor of this actor's previous event. It
 * is 0 when there is none. It is −1 − the event's index when that event lies in the same envelope,
 * whose sequence was not yet known; `placed` resolves it.
 */
export interface Entry extends Address {
  readonly command: { readonly id: string; readonly name: string; readonly fingerprint?: string }
  readonly origin: Origin
  readonly events: readonly Event[]
  /**
   * The reply to the command, stored so that a repeat of the command gets the same reply. Absent
   * for commands that are never repeated.
   */
  readonly reply?: unknown
  readonly prev: number
}

/**
 * One commit. `prev` is the sequence of the shard's previous envelope (0: none), so that replay
 * detects a gap.
 */
export interface Envelope {
  readonly v: 1
  readonly epoch: number
  readonly prev: number
  readonly entries: readonly Entry[]
}

/**
 * An entry with its position, as live feeds and views consume it. `cursor` is that of its first
 * event.
 */
export interface Placed {
  readonly cursor: number
  readonly entry: Entry
  /**
   * Live feeds only: an event too large to be published has only its type here; views have the
   * complete event.
   */
  readonly stripped?: true
}

/** The entries of the envelope with this sequence, with their cursors. */
export function placed(sequence: number, { entries }: Pick<Envelope, 'entries'>): Placed[] {
  let index = 0
  return entries.map((entry) => {
    const place = placedAt(sequence, index, entry)
    index += entry.events.length
    return place
  })
}
/**
 * The entry whose first event has this index in the envelope with this sequence; its `prev` becomes
 * a cursor.
 */
const placedAt = (sequence: number, index: number, entry: Entry): Placed => ({
  cursor: cursorOf(sequence, index),
  entry: entry.prev < 0 ? { ...entry, prev: cursorOf(sequence, -1 - entry.prev) } : entry,
})
/** The cursor of an entry's last event. */
export const lastCursor = ({ cursor, entry }: Placed): number =>
  cursor + Math.max(0, entry.events.length - 1)
