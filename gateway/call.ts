/**
 * The types that handlers of rows share: an admitted request (`Call`), and the state that all
 * requests of a gateway share (`Edge`). The checks that turn a request into a call are in
 * `admission.ts`.
 */
import { withAdditions } from '../protocol/additions.ts'
import { api } from '../protocol/api.ts'
import type { Row } from '../protocol/contract.ts'
import type { Origin } from '../protocol/entry.ts'
import type { Refusal } from '../protocol/errors.ts'
import type { Prefix } from '../protocol/ids.ts'
import type { Project } from '../protocol/projects/rows.ts'
import type { Authentication, Caller } from './auth/authenticate.ts'
import type { Limits } from './auth/rate.ts'
import type { Directory } from './directory.ts'
import type { Uploaded } from './files/form.ts'
import type { Semaphore } from './files/semaphore.ts'
import type { UploadTurns } from './files/upload.ts'
import type { Incoming } from './http/request.ts'
import type { LeaseGate } from './lease-gate.ts'
import type { MaybePromise } from './maybe-promise.ts'
import type { World } from './ports.ts'
import type { SessionVisibility } from './sessions/visibility.ts'
import type { Followers } from './streams/followers.ts'

/** State shared by all requests of a gateway. */
export interface Edge {
  readonly world: World
  /**
   * Returns true once the gateway's own lease is fresh, or false if the lease is still stale after
   * a limited wait.
   */
  readonly becomesFresh: LeaseGate
  readonly directory: Directory
  readonly authentication: Authentication
  /** Undefined when requests are not limited. */
  readonly limits: Limits | undefined
  readonly followers: Followers
  /** Limits the memory that files and large bodies of known callers occupy. */
  readonly bodyMemory: Semaphore
  /** Limits the memory that large bodies of requests without credentials occupy. */
  readonly publicBodyMemory: Semaphore
  /** Limits the number of streamed uploads that receive bytes at the same time. */
  readonly uploadTurns: UploadTurns
  readonly sessionVisibility: SessionVisibility
  /** Performs the parts of a call, such as the changes of a blueprint. */
  readonly parts: CallParts
}

/**
 * Performs the parts of a call. Modules use this interface instead of its implementation to avoid
 * import cycles, because the implementation imports most modules of the gateway.
 */
export interface CallParts {
  /**
   * Prepares and sends the command of a part, and returns the reply of its actor.
   * @param more additional input of the command.
   */
  perform(
    edge: Edge,
    part: Call,
    more: Readonly<Record<string, unknown>>,
  ): MaybePromise<{ readonly reply: unknown } | Refusal>
  /** Runs the preparation of a part only to perform its checks. No command is sent. */
  check(edge: Edge, part: Call, origin: Origin): Promise<Refusal | undefined>
}

/** A request that has passed admission, or a part of such a request. */
export interface Call {
  /** The row's name in the API table. */
  readonly name: string
  readonly row: Row
  /**
   * The decoded slots (parameters) of the path. `project` is the project's id, never its handle.
   */
  readonly slots: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: Readonly<Record<string, unknown>>
  /** The file of an upload, which is not part of `body`. */
  readonly file?: Uploaded
  readonly caller: Caller
  /**
   * The project of the path, of the run in the path, or of the caller; undefined for rows without a
   * project.
   */
  readonly project?: Project | undefined
  readonly request_id: string
  readonly incoming: Incoming
  /**
   * Present if the call is part of another call, such as the apply of a blueprint. The idempotency
   * key of the request does not apply to a part. Other gateways are notified of the changes once,
   * at the end of the whole call.
   */
  readonly part?: {
    /** Id of the record that the row creates. */
    readonly id?: string
  }
  /** An idempotency key that takes precedence over the `Idempotency-Key` header. */
  readonly key?: string | undefined
}

/** Returns the id of the call's project, or of the organization for a call without a project. */
export const scopeId = ({ world }: Edge, call: Call): string =>
  call.project?.id ?? world.organization()
/**
 * Returns the name of the row's operation for actors and views. Several rows may share an
 * operation.
 */
export const operationOf = ({ name, row }: Pick<Call, 'name' | 'row'>): string =>
  row.shape.as ?? name
/**
 * Returns the declaration of the call's row or, if this row has the operation of another row
 * (`shape.as`), the declaration of that other row.
 */
export const factsOf = ({ row }: Pick<Call, 'row'>): Row['shape'] =>
  (row.shape.as === undefined ? row : (rows[row.shape.as] ?? row)).shape

/**
 * Returns the id of the record that a call creates.
 * @param seed seed of the id, so that a repeated request yields the same id.
 */
export const newId = (
  { world }: Pick<Edge, 'world'>,
  { part }: Pick<Call, 'part'>,
  prefix: Prefix,
  seed?: string,
  slot?: number,
): string => part?.id ?? world.id(prefix, seed, slot)

/** Returns the row's response with only the additional fields that the call requests. */
export const additionsOf = ({ row, query }: Call, answer: unknown): unknown =>
  row.shape.additions
    ? withAdditions(row.shape.additions, query['include'] as string[] | undefined, answer)
    : answer
/** Returns the query without `include`, which only selects additional fields of the response. */
export function queryOf({ row, query }: Call): Call['query'] {
  if (!row.shape.additions || query['include'] === undefined) return query
  const { include: _, ...rest } = query
  return rest
}

/** All API rows by name. */
export const rows: Readonly<Record<string, Row>> = api

/** A row with its name and the names of its path slots, computed once at startup. */
export interface Routed {
  readonly name: string
  readonly row: Row
  /** Names of the path slots, in order. */
  readonly slots: readonly string[]
}

/** Maximum body size in bytes for rows that declare no limit. */
export const MAX_BODY_BYTES = 1_048_576
