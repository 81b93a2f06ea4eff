/** What the edge needs of the world. `nodes/` implements it, tests fake it. */
import type { Models } from '../protocol/agents/models.ts'
import type { Address, Command, FollowedKind, Placed } from '../protocol/entry.ts'
import type { Code, Refusal } from '../protocol/errors.ts'
import type { Prefix } from '../protocol/ids.ts'
import type { Preview, Previewed } from '../protocol/sessions/transcript/previews.ts'
import type { GatewayMessage, Offer, Taking } from '../protocol/workers/messages.ts'
import type { WorkerTiming } from '../protocol/workers/timing.ts'
import type { MaybePromise } from './maybe-promise.ts'

/** Answer of a command: the actor's reply, or its refusal. */
export type Outcome = { readonly reply: unknown } | Refusal

export interface World {
  /** Id of this gateway: its mailbox. */
  readonly node: string
  readonly settings: GatewaySettings
  /** Unix milliseconds. */
  now(): number
  /** Run something later; the returned function cancels it. */
  later(ms: number, run: () => void): () => void
  /** Random bytes, as hex or as id material. */
  random(bytes: number): Uint8Array
  /** SHA-256 as hex. */
  hash(text: string): string
  /** HMAC-SHA-256 under the installation's sealing secret, for cursors, derived ids and derived keys. */
  seal(text: string): Uint8Array
  /** What is wrong with sending something to an address, as the end of a sentence; undefined: nothing that is known now. Absent: nobody can say. */
  unreachable?(url: string): Promise<string | undefined>
  /** Files. Absent: none can be kept. */
  readonly files?: Files
  /** Bytes under the installation's key, for what must be kept but not read (AES-256-GCM); `context` must be given again to open them. */
  lock(bytes: Uint8Array, context: string): string
  /** What was locked, or undefined when it was not locked here, for this context. */
  unlock(text: string, context: string): Uint8Array | undefined
  /** A new id; with `from`, the same text gives the same id (idempotency keys, worker instances). `slot`: where it lives, by chance otherwise. */
  id(prefix: Prefix, from?: string, slot?: number): string
  /** Id of the organization, once known. */
  organization(): string

  /**
   * Have a command decided. Retried under the same command id (no owner, not the owner, unknown outcome) until
   * `settings.deadline` has passed; then refused with `service_unavailable`.
   */
  command(command: Command): Promise<Outcome>
  /** A read of an actor's committed state at its owner, with the same retries. */
  ask(to: Address, name: string, input?: unknown): Promise<unknown>
  /**
   * Ask the view of the project's partition. `fresh`: wait until it has applied all that was committed before the
   * question (default), or at least this cursor; with `within`, for so many milliseconds: then it gives what it has, and says
   * that it is `late`. `everywhere`: one answer of each partition.
   */
  view(
    project: string,
    name: string,
    input: unknown,
    fresh?: number,
    within?: number,
  ): Promise<unknown>
  everywhere(name: string, input: unknown): Promise<unknown[]>
  /** Committed entries of one actor as they happen. Best effort: gaps are the follower's to detect. */
  live(project: string, kind: FollowedKind, id: string, on: (placed: Placed) => void): () => void
  /** Cursors up to which something is committed that the feed of the project may tell of. Best effort. */
  moved(project: string, on: (cursor: number) => void): () => void
  /** Send pieces of what models say to whoever follows their session, or their run. Best effort, not stored. */
  preview(project: string, followed: string, pieces: readonly Preview[]): void
  onPreview(project: string, followed: string, on: (pieces: readonly Preview[]) => void): () => void
  /** Everything that a row has shown so far, from whoever publishes it; undefined when nobody does. */
  previewed(project: string, message: string): Promise<Previewed | undefined>
  onPreviewed(project: string, message: string, answer: () => Previewed | undefined): () => void
  /** Have every live gateway forget cached configuration of a project or the organization; resolves when all have. */
  forget(project: string): Promise<void>

  /** This gateway's mailbox. */
  onMessage(handler: (message: GatewayMessage) => Promise<{ ok: boolean }> | { ok: boolean }): void
  /** Listen to offers of work with a filter: `queue` and `capability` undefined mean any. Returns a function that stops listening. */
  onOffer(
    project: string,
    queue: string | undefined,
    capability: string | undefined,
    handler: (offer: Offer) => MaybePromise<Taking | undefined>,
  ): () => void
  /** Announce that a worker of the project gained slots. */
  demand(project: string): void
  /** Whether this gateway's knowledge can be trusted now: its own lease is fresh. While it is not, the edge answers 503. */
  fresh(): boolean
  /** How many gateways were seen to end so far; one that was in the middle of a change told nobody of it. Absent: there are no others. */
  ended?(): number
  /** What is not usable, empty when ready. */
  unready(): Promise<readonly string[]>
  /** Whether changes can be stored; absent: nothing is known against it. */
  storage?(): StorageReport
  /** Prometheus text. */
  metrics(): Promise<string>
  readonly log: Log
  readonly count: Counters
}
/** Why nothing can be changed now, and what will lead to that before long, as short texts. */
export interface StorageReport {
  readonly stops: readonly string[]
  readonly warnings: readonly string[]
}
/** Bytes under names that the service makes. Everything throws when the store cannot be reached. */
export interface Files {
  put(name: string, bytes: Uint8Array): Promise<void>
  get(name: string): Promise<Uint8Array | undefined>
  /** Unknown names are no error. */
  delete(name: string): Promise<void>
}
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
/** Numbers the edge reports. */
export interface Counters {
  request(operation: string, status: number, seconds: number): void
  /** Change of the number of open things. */
  open(what: 'sse' | 'worker_sockets' | 'followers', change: 1 | -1): void
  /** A request was refused with this code. */
  refused?(code: Code): void
  /** @param by 1 when absent. */
  inc(
    name: 'frames_in' | 'frames_out' | 'events_sent' | 'stream_fallbacks' | 'rate_limited',
    by?: number,
  ): void
}
/** Names under which a run list has its array. */
export type RunListNames = 'both' | 'items' | 'data'
export interface GatewaySettings {
  /** `both` when absent. */
  readonly run_list?: RunListNames
  /** Header brand, such as `Service`; lower-cased for permissions. */
  readonly brand: string
  /** Prefix of API keys without underscore: `bat`. */
  readonly key_prefix: string
  readonly shards: number
  /** Milliseconds a request may take before it is answered 503. */
  readonly deadline: number
  /** Requests per window; 0 switches a limit off. */
  readonly rate: {
    readonly key: number
    readonly organization: number
    readonly window_seconds: number
  }
  readonly timing: WorkerTiming
  /** Milliseconds between comment frames on a quiet stream. */
  readonly keepalive: number
  /** Milliseconds after which a stream of a session is asked to come back, and for which an idle session is followed. */
  readonly sessions: { readonly age: number; readonly idle: number }
  /** Origins allowed to call from a browser; `*` for any. */
  readonly cors: readonly string[]
  /** Whether this gateway answers `/metrics`, and the token that it asks for. Absent: it answers everybody. */
  readonly metrics?: { readonly status_only: boolean; readonly token?: string }
  /** Principal id for anonymous worker sockets from loopback; absent: refused. */
  readonly anonymous_worker?: string
  /** Address under which people reach the gateways, without a slash at its end; absent: links are paths. */
  readonly public_url?: string
  readonly version: string
  /** Models that the service itself speaks to. */
  readonly models: Models
  /** Domain of the addresses of agents; absent: they have none. */
  readonly inbox_domain?: string
  /** Whether e-mail for these addresses is taken, so that `email.received` happens. */
  readonly inbound_mail?: boolean
}
