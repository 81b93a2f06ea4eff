/** The I/O that the HTTP edge of a gateway needs. `nodes/` implements it, tests provide a fake. */
import type { Models } from '../protocol/agents/models.ts'
import type { Command, FollowedKind, Kind, Placed } from '../protocol/entry.ts'
import type { Code, Refusal } from '../protocol/errors.ts'
import type { Prefix } from '../protocol/ids.ts'
import type { CommandName, CommandReply, NamedCommand } from '../protocol/queries/commands.ts'
import type { AddressOf, OwnerKind, OwnerQueries, OwnerQuery } from '../protocol/queries/owners.ts'
import type { ViewQueries, ViewQueryName } from '../protocol/queries/views.ts'
import type { Preview, Previewed } from '../protocol/sessions/transcript/previews.ts'
import type { GatewayMessage, Offer, Taking } from '../protocol/workers/messages.ts'
import type { WorkerTiming } from '../protocol/workers/timing.ts'
import type { MaybePromise } from './maybe-promise.ts'

/** Answer of a command: the actor's reply, or its refusal. */
export type Outcome<R = unknown> = { readonly reply: R } | Refusal

export interface World {
  /** Id of this gateway, which also addresses its mailbox. */
  readonly node: string
  readonly settings: GatewaySettings
  /** Unix milliseconds. */
  now(): number
  /** Runs a function later; the returned function cancels it. */
  later(ms: number, run: () => void): () => void
  /** Random bytes, for generated texts and ids. */
  random(bytes: number): Uint8Array
  /** SHA-256 as hex. */
  hash(text: string): string
  /**
   * HMAC-SHA-256 under the installation's sealing secret, for cursors and for derived ids and keys.
   */
  seal(text: string): Uint8Array
  /**
   * Why a URL cannot be a destination, as the end of a sentence; undefined when no reason is known
   * now. Absent when destinations cannot be checked.
   */
  unreachable?(url: string): Promise<string | undefined>
  /** Files. Absent when files cannot be stored. */
  readonly files?: Files
  /**
   * Encrypts bytes under the installation's key (AES-256-GCM), for values that must be stored
   * unreadable. Decryption needs the same `context`.
   */
  lock(bytes: Uint8Array, context: string): string
  /**
   * The decrypted bytes, or undefined when the text was not encrypted by this installation for this
   * context.
   */
  unlock(text: string, context: string): Uint8Array | undefined
  /**
   * A new id. The same `from` gives the same id (idempotency keys, worker instances). `slot` is the
   * hash slot of the id, random by default.
   */
  id(prefix: Prefix, from?: string, slot?: number): string
  /** Id of the organization, once known. */
  organization(): string

  /**
   * Sends a command to the actor that decides it. Retried under the same command id (no owner, not
   * the owner, unknown outcome) until `settings.deadline` has passed; then refused with
   * `service_unavailable`.
   */
  command<K extends Kind, N extends CommandName<K>>(
    command: NamedCommand<K, N>,
  ): Promise<Outcome<CommandReply<K, N>>>
  /** The same for a row whose name and input come from a validated request. */
  commandRow(command: Command): Promise<Outcome>
  /** Reads an actor's committed state from its owner, with the same retries. */
  ask<K extends OwnerKind, N extends keyof OwnerQueries[K] & string>(
    to: AddressOf<K>,
    name: N,
    input: OwnerQuery<K, N>['input'],
  ): Promise<OwnerQuery<K, N>['reply'] | Refusal>
  /**
   * Queries the view of the project's partition. `fresh` is the cursor that the view must have
   * applied before it answers; by default, everything committed before the query. `within` bounds
   * that wait in milliseconds; after it the view answers from what it has and marks the answer as
   * `late`.
   */
  view<N extends ViewQueryName>(
    project: string,
    name: N,
    input: ViewQueries[N]['input'],
    fresh?: number,
    within?: number,
  ): Promise<ViewQueries[N]['reply'] | Refusal>
  /** The same for a row whose name and input come from a validated request. */
  viewRow(project: string, name: string, input: Readonly<Record<string, unknown>>): Promise<unknown>
  /** Queries the views of all partitions; one answer for each. */
  everywhere<N extends ViewQueryName>(
    name: N,
    input: ViewQueries[N]['input'],
  ): Promise<readonly (ViewQueries[N]['reply'] | Refusal)[]>
  /**
   * Calls `on` with the committed entries of one actor as they happen. Best effort: the follower
   * must detect gaps.
   */
  live(project: string, kind: FollowedKind, id: string, on: (placed: Placed) => void): () => void
  /**
   * Calls `on` with a cursor when something up to it is committed that the project's feed may
   * report. Best effort.
   */
  moved(project: string, on: (cursor: number) => void): () => void
  /** Sends chunks of model output to the followers of a session or run. Best effort, not stored. */
  preview(project: string, followed: string, previews: readonly Preview[]): void
  onPreview(
    project: string,
    followed: string,
    on: (previews: readonly Preview[]) => void,
  ): () => void
  /**
   * The preview of a message so far, from the node that publishes it; undefined when no node does.
   */
  previewed(project: string, message: string): Promise<Previewed | undefined>
  onPreviewed(project: string, message: string, answer: () => Previewed | undefined): () => void
  /**
   * Makes every live gateway drop its cached configuration of a project or the organization;
   * resolves when all have done so.
   */
  forget(project: string): Promise<void>

  /** Sets the handler of messages to this gateway's mailbox. */
  onMessage(handler: (message: GatewayMessage) => Promise<{ ok: boolean }> | { ok: boolean }): void
  /**
   * Listens to offers of work that match a filter; an undefined `queue` or `capability` matches
   * any. Returns a function that stops listening.
   */
  onOffer(
    project: string,
    queue: string | undefined,
    capability: string | undefined,
    handler: (offer: Offer) => MaybePromise<Taking | undefined>,
  ): () => void
  /** Announce that a worker of the project gained slots. */
  demand(project: string): void
  /**
   * Whether this gateway's own lease is fresh, so that its cached configuration can be trusted.
   * While it is not, the edge answers 503.
   */
  fresh(): boolean
  /**
   * The number of gateways that were seen to end so far. A gateway that ended in the middle of a
   * change did not announce it. Absent when there are no other gateways.
   */
  ended?(): number
  /** The reasons why the gateway is not ready; empty when it is. */
  unready(): Promise<readonly string[]>
  /** Whether changes can be stored; absent when storage is not monitored. */
  storage?(): StorageReport
  /** Prometheus text. */
  metrics(): Promise<string>
  readonly log: Log
  readonly count: Counters
}
/**
 * Why changes cannot be stored now (`stops`), and conditions that will soon prevent it
 * (`warnings`), as short texts.
 */
export interface StorageReport {
  readonly stops: readonly string[]
  readonly warnings: readonly string[]
}
/**
 * A store of bytes under names that the service generates. Every method throws when the store is
 * unreachable.
 */
export interface Files {
  put(name: string, bytes: Uint8Array): Promise<void>
  get(name: string): Promise<Uint8Array | undefined>
  /** Deleting an unknown name is not an error. */
  delete(name: string): Promise<void>
}
/** Fields of a log line. `event` is its stable name, for alerts. */
interface LogFields {
  readonly event: string
  readonly [field: string]: unknown
}
export interface Log {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}
/** Metrics that the edge reports. */
export interface Counters {
  request(operation: string, status: number, seconds: number): void
  /** Adjusts the number of open streams, sockets or followers. */
  open(what: 'sse' | 'worker_sockets' | 'followers', change: 1 | -1): void
  /** Counts a request that was refused with this code. */
  refused?(code: Code): void
  /** @param by the increment, 1 by default. */
  inc(
    name: 'frames_in' | 'frames_out' | 'events_sent' | 'stream_fallbacks' | 'rate_limited',
    by?: number,
  ): void
}
/** The name, or names, of the array in a run list. */
export type RunListNames = 'both' | 'items' | 'data'
export interface GatewaySettings {
  /** `both` when absent. */
  readonly run_list?: RunListNames
  /** Brand in header names, such as `Service`; lower-cased for permissions. */
  readonly brand: string
  /** Prefix of API keys without underscore: `bat`. */
  readonly key_prefix: string
  readonly shards: number
  /** Milliseconds that a request may take before it is answered 503. */
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
  /**
   * Milliseconds after which a session's stream ends so that its client reconnects (`age`), and for
   * which an idle session is still followed (`idle`).
   */
  readonly sessions: { readonly age: number; readonly idle: number }
  /** Origins allowed to call from a browser; `*` for any. */
  readonly cors: readonly string[]
  /**
   * `status_only`: the API port does not serve `/metrics`. `token`: the bearer token that a reader
   * must send. Absent: the API port serves it without a token.
   */
  readonly metrics?: { readonly status_only: boolean; readonly token?: string }
  /** Principal id of anonymous worker sockets from loopback; absent: such sockets are refused. */
  readonly anonymous_worker?: string
  /** Public base URL of the gateways, without a trailing slash; absent: links are paths. */
  readonly public_url?: string
  readonly version: string
  /** Models that the service itself calls. */
  readonly models: Models
  /** Domain of the agents' e-mail addresses; absent: agents have no address. */
  readonly inbox_domain?: string
  /**
   * Whether the installation receives e-mail for these addresses, so that `email.received` events
   * occur.
   */
  readonly inbound_mail?: boolean
}
