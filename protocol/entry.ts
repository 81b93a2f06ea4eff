/**
 * What is stored. One command that changed something is one ENTRY; the entries of one commit are one ENVELOPE, one
 * message of a shard's journal subject. The position of an event, its CURSOR, is an ordinary integer that orders a
 * whole partition: stream sequence × 1000 + index of the event in its envelope.
 */

/** Kinds of actors: each is one boundary of consistency. */
const kinds = [
  'organization',
  'project',
  'run',
  'queue',
  'worker',
  'interaction',
  'channel',
  'channel_name',
  'events',
  'loop',
  'trigger_handle',
  'memory',
  'session',
  'delivery',
  'plan',
] as const
export type Kind = (typeof kinds)[number]
/** Kinds whose entries are told live to who follows one actor of them. */
export const followedKinds = [
  'run',
  'session',
  'channel',
  'delivery',
] as const satisfies readonly Kind[]
export type FollowedKind = (typeof followedKinds)[number]
/** Kinds that the feed of a project tells of. */
export const feedKinds = ['run', 'queue'] as const satisfies readonly Kind[]

/** At most this many events in one envelope, so that a cursor stays unique. */
export const EVENTS_PER_ENVELOPE = 1000

/** The cursor of an event. Safe while the stream has fewer than 9 × 10^12 messages. */
export const cursorOf = (sequence: number, index: number): number =>
  sequence * EVENTS_PER_ENVELOPE + index
/** The stream sequence that a cursor lies in. */
export const sequenceOf = (cursor: number): number => Math.floor(cursor / EVENTS_PER_ENVELOPE)

/** Who acts. `type` as the audit log names it. */
export interface Principal {
  readonly type: 'user' | 'service_account' | 'agent' | 'system'
  readonly id: string
  /** Display name, for `initiated_by`. */
  readonly name?: string
}

/** The credential used; never its material. */
export interface Credential {
  readonly type: 'api_key' | 'cli_token' | 'worker_lease' | 'internal'
  readonly id: string
  readonly name?: string
}

/** Why something happened: time, identity and origin, as plain data. `at` is Unix milliseconds. */
export interface Origin {
  readonly at: number
  readonly principal: Principal
  readonly credential?: Credential
  readonly request_id?: string
  readonly ip?: string
  readonly user_agent?: string
}

/** An event: a type in the past tense and the fields its kind declares. */
export interface Event {
  readonly type: string
}

/** Address of an actor. `project` is the organization's id for organization-level actors. */
export interface Address {
  readonly project: string
  readonly kind: Kind
  readonly id: string
}

/** A command on its way to an actor. `command_id` makes it idempotent; `fingerprint` tells a key reused with another body. */
export interface Command extends Address {
  readonly command_id: string
  readonly name: string
  readonly input: unknown
  readonly origin: Origin
  readonly fingerprint?: string
  /**
   * The id was made at random for this command, which is sent for the first time: nothing can be stored of the actor, and
   * nobody need look. A repeat of the command does not say so.
   */
  readonly born?: true
}

/**
 * What one command did to one actor. `prev` is the cursor of this actor's previous event: 0 when there is none; negative
 * when it lies in the same envelope, whose sequence was not yet known: −1 − its index. `placed` resolves it.
 */
export interface Entry extends Address {
  readonly command: { readonly id: string; readonly name: string; readonly fingerprint?: string }
  readonly origin: Origin
  readonly events: readonly Event[]
  /** What was answered; kept so that a repeat of the command answers the same. Absent for commands nobody repeats. */
  readonly reply?: unknown
  readonly prev: number
}

/** One commit. `prev` is the sequence of the shard's previous envelope (0: none): a hole is seen on replay. */
export interface Envelope {
  readonly v: 1
  readonly epoch: number
  readonly prev: number
  readonly entries: readonly Entry[]
}

/** An entry with its place: what live feeds and views consume. `cursor` is that of its first event. */
export interface Placed {
  readonly cursor: number
  readonly entry: Entry
  /** Live feeds only: an event that is too large to be sent around is here with its type only; views have it whole. */
  readonly stripped?: true
}

/** Entries of the envelope of this sequence with their cursors. */
export function placed(sequence: number, { entries }: Pick<Envelope, 'entries'>): Placed[] {
  let index = 0
  return entries.map((entry) => {
    const place = placedAt(sequence, index, entry)
    index += entry.events.length
    return place
  })
}
/** One entry whose first event has this index in the envelope of this sequence; its `prev` becomes a cursor. */
const placedAt = (sequence: number, index: number, entry: Entry): Placed => ({
  cursor: cursorOf(sequence, index),
  entry: entry.prev < 0 ? { ...entry, prev: cursorOf(sequence, -1 - entry.prev) } : entry,
})
/** The cursor of an entry's last event. */
export const lastCursor = ({ cursor, entry }: Placed): number =>
  cursor + Math.max(0, entry.events.length - 1)
