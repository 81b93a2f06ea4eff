/**
 * The ports of a gateway: the I/O that it needs, and its settings. `nodes/` implements the ports,
 * and tests provide a fake.
 */
import type { Models } from '../protocol/agents/models.ts'
import type { Cluster } from '../protocol/cluster/rows.ts'
import type { Command, FollowedKind, Kind, PlacedEntry } from '../protocol/entry.ts'
import type { LogsAnswer, LogsRequest } from '../protocol/environments/logs.ts'
import type { Code, Refusal } from '../protocol/errors.ts'
import type { Prefix } from '../protocol/ids.ts'
import type { CommandName, CommandReply, NamedCommand } from '../protocol/queries/commands.ts'
import type { AddressOf, OwnerKind, OwnerQueries, OwnerQuery } from '../protocol/queries/owners.ts'
import type { ViewQueries, ViewQueryName } from '../protocol/queries/views.ts'
import type { IssuedToken, TokenFailure, TokenRequest } from '../protocol/repositories/token.ts'
import type { KnownDefinition, TriggerKind } from '../protocol/resolver/callout.ts'
import type { ResolverConfiguration } from '../protocol/resolver/schema.ts'
import type { Preview, Previewed } from '../protocol/sessions/transcript/previews.ts'
import type { EmbeddingAnswer } from '../protocol/tables/semantic.ts'
import type { GatewayMessage, Offer, OfferReply } from '../protocol/workers/messages.ts'
import type { WorkerTiming } from '../protocol/workers/timing.ts'
import type { SignInProvider } from './auth/console/provider.ts'
import type { LogStore } from './logs/ports.ts'
import type { MaybePromise } from './maybe-promise.ts'
import type { TerminalRelay } from './terminals/ports.ts'

/** The outcome of a command: the actor's reply, or a refusal. */
export type Outcome<R = unknown> = { readonly reply: R } | Refusal

/**
 * The services that a gateway depends on: clock, randomness, secrets, actors, views, messages and
 * files.
 */
export interface World {
  /** Id of this gateway. It is also the address of its mailbox. */
  readonly node: string
  readonly settings: GatewaySettings
  /** Returns the current time in Unix milliseconds. */
  now(): number
  /** Returns a time in milliseconds that no change of the system clock affects, for durations. */
  monotonic(): number
  /** Runs a function after `ms` milliseconds. The returned function cancels the call. */
  later(ms: number, run: () => void): () => void
  /** Returns cryptographically random bytes, for secrets and ids. */
  random(bytes: number): Uint8Array
  /** Returns a command id that no other command has (`uniqueTexts`). */
  newCommandId(): string
  /** Returns the SHA-256 of a text as hex. */
  hash(text: string): string
  /**
   * Returns an HMAC-SHA-256 under the installation's sealing secret, for example for cursors and
   * derived ids.
   */
  seal(text: string): Uint8Array
  /**
   * Returns the client's IP address, from the address of the TCP peer and the header
   * `X-Forwarded-For`. Absent if no proxy is trusted; the peer is then the client.
   */
  clientAddress?(peer: string, forwarded: string): string
  /**
   * Checks whether a URL is an allowed destination. Returns the reason why it is not, as the end of
   * a sentence, or undefined if none is found. The method is absent if URLs cannot be checked.
   */
  unreachable?(url: string): Promise<string | undefined>
  /** Like `unreachable`, for a repository host that only workers of environments call. */
  unreachableRepository?(url: string): Promise<string | undefined>
  /**
   * Issues a token for a repository, or returns a previously issued one. The method is absent when
   * repository hosts cannot be called.
   */
  repositoryToken?(request: TokenRequest): Promise<IssuedToken | TokenFailure>
  /** Calls the organization's definition resolver. Absent when this node cannot call it. */
  readonly definitions?: DefinitionResolver
  /** The OpenID provider with which people sign in to the console. Absent when not configured. */
  readonly provider?: SignInProvider
  /** The store of files. Absent when files cannot be stored. */
  readonly files?: Files
  /** The store of the log lines of jobs. Absent when they cannot be stored. */
  readonly logs?: LogStore
  /** The embedding model for semantic searches. Absent when no model is configured. */
  readonly embedder?: {
    readonly model: string
    /** Embeds the text of a search. */
    query(text: string): Promise<EmbeddingAnswer>
  }
  /**
   * Encrypts bytes with the installation's key (AES-256-GCM), for values that must not be stored in
   * clear text. Decryption needs the same `context`.
   */
  lock(bytes: Uint8Array, context: string): string
  /**
   * Decrypts a text that `lock` returned. Returns undefined when this installation did not encrypt
   * it for this context.
   */
  unlock(text: string, context: string): Uint8Array | undefined
  /**
   * Generates an id. The same `prefix`, `from` and `slot` always yield the same id, for example for
   * repeats under one idempotency key. Without `from`, the id contains the time and random bits.
   * `slot` (0 to 1023) determines the shard of the id. By default, it is derived from `from`, or
   * random without `from`.
   */
  id(prefix: Prefix, from?: string, slot?: number): string
  /** Returns the id of the organization, which is empty while the organization is not known yet. */
  organization(): string

  /**
   * Sends a command to the actor that decides it. The command is sent again under the same command
   * id when the shard has no owner, the receiver is not the owner, or the outcome is unknown. After
   * `settings.deadline` it is refused with `service_unavailable`.
   */
  command<K extends Kind, N extends CommandName<K>>(
    command: NamedCommand<K, N>,
  ): Promise<Outcome<CommandReply<K, N>>>
  /** Like `command`, for a row whose name and input come from a validated request. */
  commandRow(command: Command): Promise<Outcome>
  /** Returns the earlier outcome of a command that the actor remembers, otherwise undefined. */
  repeated(command: Command): Promise<Outcome | undefined>
  /**
   * Reads an actor's committed state from its shard's owner, with the same retries as `command`.
   */
  ask<K extends OwnerKind, N extends keyof OwnerQueries[K] & string>(
    to: AddressOf<K>,
    name: N,
    input: OwnerQuery<K, N>['input'],
  ): Promise<OwnerQuery<K, N>['reply'] | Refusal>
  /**
   * Queries the view of the project's partition. Before it answers, the view applies the journal up
   * to the cursor `fresh` or, without `fresh`, everything that was committed before the query. If
   * this takes more than `within` milliseconds, the view answers from what it has applied so far,
   * and marks the answer as `late`.
   */
  view<N extends ViewQueryName>(
    project: string,
    name: N,
    input: ViewQueries[N]['input'],
    fresh?: number,
    within?: number,
  ): Promise<ViewQueries[N]['reply'] | Refusal>
  /** Like `view`, for a row whose name and input come from a validated request. */
  viewRow(project: string, name: string, input: Readonly<Record<string, unknown>>): Promise<unknown>
  /** Queries the views of all partitions. Returns one answer for each partition. */
  everywhere<N extends ViewQueryName>(
    name: N,
    input: ViewQueries[N]['input'],
  ): Promise<readonly (ViewQueries[N]['reply'] | Refusal)[]>
  /**
   * Calls `on` with the committed entries of one actor as they are announced, until the returned
   * function is called. Delivery is not guaranteed, so the follower must detect gaps.
   */
  live(
    project: string,
    kind: FollowedKind,
    id: string,
    on: (placed: PlacedEntry) => void,
  ): () => void
  /**
   * Calls `on` with a cursor when events of the project's feed may have been committed up to this
   * cursor, until the returned function is called. Delivery is not guaranteed.
   */
  moved(project: string, on: (cursor: number) => void): () => void
  /**
   * Sends chunks of model output to the followers of a session or run. The chunks are not stored,
   * and their delivery is not guaranteed.
   */
  preview(project: string, followed: string, previews: readonly Preview[]): void
  /**
   * Calls `on` with the chunks of model output of a session or run, until the returned function is
   * called.
   */
  onPreview(
    project: string,
    followed: string,
    on: (previews: readonly Preview[]) => void,
  ): () => void
  /**
   * Requests the part of a message that has been generated so far from the node that publishes it.
   * Returns undefined when no node answers.
   */
  previewed(project: string, message: string): Promise<Previewed | undefined>
  /** Answers requests for the preview of a message, until the returned function is called. */
  onPreviewed(project: string, message: string, answer: () => Previewed | undefined): () => void
  /**
   * Reads the end of an environment's log from a host of its place. Returns undefined when no host
   * answers, or when the host that answers does not have the environment.
   */
  environmentLogs(place: string, request: LogsRequest): Promise<LogsAnswer | undefined>
  /** Relays messages of terminals between gateways. */
  readonly terminals: TerminalRelay
  /**
   * Makes every live gateway and executor drop its cached configuration of a project or the
   * organization. Resolves when each of them has dropped it or has ended.
   */
  forget(project: string): Promise<void>

  /** Sets the handler of the messages in this gateway's mailbox. */
  onMessage(handler: (message: GatewayMessage) => Promise<{ ok: boolean }> | { ok: boolean }): void
  /**
   * Calls `handler` with offers of jobs that match a filter, until the returned function is called.
   * An undefined `queue` or `capability` matches any.
   */
  onOffer(
    project: string,
    queue: string | undefined,
    capability: string | undefined,
    handler: (offer: Offer) => MaybePromise<OfferReply | undefined>,
  ): () => void
  /** Announces to the queues that a worker of the project has new free slots. */
  demand(project: string): void
  /**
   * Returns whether this gateway's own lease is fresh, so that its cached configuration can be
   * trusted. While the lease is not fresh, requests wait briefly and are then answered with 503.
   */
  fresh(): boolean
  /**
   * Returns how many times this node has detected that another gateway ended or restarted under the
   * same name. Such a gateway may have ended without announcing a configuration change, so the
   * directory drops its caches when this number has changed. May be absent if there are no other
   * gateways.
   */
  endedGateways?(): number
  /** Returns the reasons why the gateway is not ready, or an empty list when it is ready. */
  unready(): Promise<readonly string[]>
  /** Returns the state of the storage. The method is absent when the storage is not monitored. */
  storage?(): StorageReport
  /**
   * Returns the state of the installation. All callers within two seconds share one reading. The
   * method is absent when the implementation has no cluster.
   */
  cluster?(): Promise<Cluster>
  /** Returns the metrics of the process in the Prometheus text format. */
  metrics(): Promise<string>
  readonly log: Log
  readonly count: Counters
}
/** A request for the definition of an agent. */
export interface ResolverQuestion {
  readonly configuration: ResolverConfiguration
  readonly project: { readonly id: string; readonly external_ref?: string }
  readonly agent_id: string
  /** The name of the agent at the resolver. */
  readonly selector: string
}
/** Calls the organization's definition resolver, and stores its answers. */
export interface DefinitionResolver {
  /**
   * Returns the definition of an agent for a turn that starts now. Refused with `unknown_agent` or
   * `definition_resolver_unavailable`, and with `service_unavailable` when the store of definitions
   * does not answer.
   */
  resolve(question: ResolverQuestion, trigger: TriggerKind): Promise<KnownDefinition | Refusal>
  /** Returns the stored definition without calling the resolver; undefined if nothing is stored. */
  stored(question: ResolverQuestion): Promise<KnownDefinition | undefined | Refusal>
  /** Deletes the stored definitions of all agents of a project. */
  forget(project: string): Promise<void>
}
/**
 * The state of the storage, as short texts: `stops` are the reasons why changes cannot be stored,
 * and `warnings` are conditions that may soon prevent changes from being stored.
 */
export interface StorageReport {
  readonly stops: readonly string[]
  readonly warnings: readonly string[]
}
/** The size of a stored file, and its SHA-256 as lower-case hex. */
export interface FileDigest {
  readonly size_bytes: number
  readonly sha256: string
}
/**
 * A store of bytes under names that the service generates. Every method rejects when the store is
 * unreachable.
 */
export interface Files {
  put(name: string, bytes: Uint8Array): Promise<void>
  get(name: string): Promise<Uint8Array | undefined>
  /**
   * Stores a file under a new name while its bytes arrive, with backpressure, so memory usage does
   * not depend on the size of the file. A failed write leaves no bytes. A chunk of `bytes` need be
   * valid only until the next chunk is requested.
   * @param gone aborted when the result is no longer needed. The write may then fail early.
   * @throws the error of `bytes`, or the reason of `gone`.
   */
  write(name: string, bytes: AsyncIterable<Uint8Array>, gone?: AbortSignal): Promise<FileDigest>
  /**
   * Returns the bytes of a file from `start` up to, but not including, `end`. They are read during
   * the iteration. Returns undefined when there is no such file. The iteration rejects when the
   * file is damaged, or deleted during the iteration. A chunk is valid until the next chunk is
   * requested.
   */
  read(name: string, start: number, end: number): Promise<AsyncIterable<Uint8Array> | undefined>
  /** Deletes a file. An unknown name is not an error. */
  delete(name: string): Promise<void>
}
/** The fields of a log line. `event` is the stable name of the line, for alerts. */
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
/** The metrics that a gateway reports. */
export interface Counters {
  request(operation: string, status: number, seconds: number): void
  /** Adds `change` to the gauge of open streams, worker sockets or followers. */
  open(what: 'sse' | 'worker_sockets' | 'followers', change: 1 | -1): void
  /** Counts a request that was refused with this code. */
  refused?(code: Code): void
  /** Adds `by`, 1 by default, to a counter. */
  inc(
    name: 'frames_in' | 'frames_out' | 'events_sent' | 'stream_fallbacks' | 'rate_limited',
    by?: number,
  ): void
}
/** The name of the member that contains the runs in a list of runs: `items`, `data`, or both. */
export type RunListNames = 'both' | 'items' | 'data'
/** The settings of a gateway. */
export interface GatewaySettings {
  /** The name of the member that contains the runs in a list of runs; `both` when absent. */
  readonly run_list?: RunListNames
  /** Brand in header names, such as `Service`. Permissions contain it in lower case. */
  readonly brand: string
  /** Prefix of API keys without the underscore, such as `bat`. */
  readonly key_prefix: string
  readonly shards: number
  /** Time in milliseconds after which a command or query without an answer is refused with 503. */
  readonly deadline: number
  /**
   * Maximum number of requests per window, for each caller (`key`) and for the organization. 0
   * disables a limit.
   */
  readonly rate: {
    readonly key: number
    readonly organization: number
    readonly window_seconds: number
  }
  readonly timing: WorkerTiming
  /**
   * Limits on the log lines of one attempt of a job: the average number of lines per second, and
   * the total number of bytes.
   */
  readonly job_logs?: { readonly rate: number; readonly bytes: number }
  /** Time in milliseconds between keepalive comments on a stream. */
  readonly keepalive: number
  /**
   * `age` is the time in milliseconds after which a session's stream ends, so that its client
   * reconnects. `idle` is the maximum time in milliseconds for which the stream of a session
   * without active turns stays open.
   */
  readonly sessions: { readonly age: number; readonly idle: number }
  /** Browser origins that may call the API; `*` allows any origin. */
  readonly cors: readonly string[]
  /**
   * `max_bytes` is the maximum size of an artifact. `upload_ms` is the time in milliseconds after
   * which an upload is abandoned, unless the gateway renews it.
   */
  readonly artifacts: { readonly max_bytes: number; readonly upload_ms: number }
  /**
   * Who may read `/metrics` on the API port: nobody if `status_only` is true, otherwise clients
   * that send `token` as the bearer token, or every client if `token` is absent.
   */
  readonly metrics?: { readonly status_only: boolean; readonly token?: string }
  /**
   * Principal id of worker sockets that connect from loopback without a credential. When absent,
   * such sockets are refused.
   */
  readonly anonymous_worker?: string
  /**
   * Public base URL of the gateways, without a trailing slash. When absent, answer links are paths
   * only.
   */
  readonly public_url?: string
  /** The environment providers that clients may choose, their default, and their aliases. */
  readonly environments?: {
    readonly default_provider: string
    readonly providers: readonly string[]
    readonly aliases: Readonly<Record<string, string>>
  }
  readonly version: string
  /**
   * Console sessions. `origin` is the public origin of the gateways. Without it, the console is
   * used on loopback only. A session ends after `idle` milliseconds without use, and after
   * `lifetime` milliseconds in any case. Without these settings, `idle` is 12 hours and `lifetime`
   * is 7 days.
   */
  readonly console?: {
    readonly origin?: string
    readonly idle: number
    readonly lifetime: number
  }
  /** The models that the service itself calls. */
  readonly models: Models
  /** Domain of the agents' e-mail addresses. When absent, agents have no address. */
  readonly inbox_domain?: string
  /** Whether the installation receives e-mail for the agents, as `email.received` events. */
  readonly inbound_mail?: boolean
}
