/**
 * The declaration of endpoints. A row is a value: routing, validation, types, permissions, OpenAPI,
 * the client and the command line are all derived from the table of rows; nothing else describes an
 * endpoint.
 */
import type { Static, TSchema } from 'typebox'
import type { Permission } from './access/schema.ts'
import type { Additions } from './additions.ts'
import type { Kind } from './entry.ts'
import type { Code, FieldError } from './errors.ts'
import type { Prefix } from './ids.ts'

/**
 * The kind of an endpoint.
 * - `command`: changes something; one actor handles it.
 * - `query`: reads; a view answers it.
 * - `stream`: stays open, as Server-Sent Events or a WebSocket.
 * - `blob`: transfers a stream of bytes in or out.
 */
export type Verb = 'command' | 'query' | 'stream' | 'blob'

/** One endpoint of the API. `route` is `METHOD /path/:slot`, below `/v1`. */
export interface Row<V extends Verb = Verb, R extends string = string, S extends Shape = Shape> {
  readonly verb: V
  readonly route: R
  readonly shape: S
}

export interface Shape {
  /** The summary line in the API reference. */
  readonly summary: string
  /** Group in the API reference: the resource. */
  readonly tag: string
  /** The permission that the caller needs; `authenticated`: any valid credential. */
  readonly permission: Permission | 'authenticated'
  readonly body?: TSchema
  /** The body may be omitted; it is then `{}`. */
  readonly bodyOptional?: true
  /**
   * A pure check of rules that a schema cannot express about the body; returns a fault for every
   * invalid field.
   */
  readonly check?: (body: never) => readonly FieldError[]
  /**
   * Commands: the idempotency key in the body, which identifies a repeat. When it is present, the
   * header Idempotency-Key is ignored.
   */
  readonly key?: (body: never) => string | undefined
  readonly query?: TSchema
  /**
   * Members beyond the published record; the parameter `include` selects them. `additions` creates
   * both.
   */
  readonly additions?: Additions
  /**
   * Lists: the parameter that names the wanted items. When it is present, cursor, order and limit
   * are ignored, whatever their values.
   */
  readonly exact?: string
  readonly reply?: TSchema
  /**
   * The path contains no project: the row applies to the project that the caller's credential is
   * pinned to.
   */
  readonly ofCaller?: true
  /** Success status; 200 by default. 204 means no body. */
  readonly status?: number
  /** Other success statuses of the row (an actor sets one as `status_code` in its reply). */
  readonly alsoStatus?: readonly number[]
  /** Refusals of this row, in addition to those that every row can return. */
  readonly errors?: readonly Code[]
  /**
   * Commands: the actor that handles the command. Absent on queries, streams, and rows that relay.
   */
  readonly to?: To
  /**
   * Commands over several actors: the command named `command` is sent once for each id in the
   * body's member `over`; the reply contains every outcome.
   */
  readonly each?: { readonly over: string; readonly command: string; readonly prefix: Prefix }
  /**
   * No actor handles this row: it forwards the operations in its body to these rows, each under
   * that row's own permission.
   */
  readonly relays?: readonly string[]
  /** A further success status, for replies without a body. */
  readonly bare?: number
  /** Largest accepted body in bytes; 1 MiB by default. */
  readonly limit?: number
  /**
   * Commands: the body carries a file in its member `file`, either as a form with that part or as
   * JSON with base64. The file itself is not sent to an actor.
   */
  readonly upload?: true
  /**
   * This row is another form of the named row that some clients use; it is listed under the tag
   * `compat`.
   */
  readonly alias?: string
  /** The row whose handler or query answers this one; the two differ only in path or status. */
  readonly as?: string
  /**
   * The source of the answer of a query: the gateway's directories, or the view of the partition,
   * which is the default for queries. A stream with `view` also answers a page as JSON.
   */
  readonly answeredBy?: 'gateway' | 'view'
  /** The answer depends on what the caller may read; the view receives the caller as `viewer`. */
  readonly viewer?: true
  /**
   * The record that the slot `id` names, when the record determines the project or the session: of
   * a run, or of an interaction.
   */
  readonly locateBy?: 'run' | 'interaction'
  /** An agent may do this to itself without the permission. */
  readonly selfAccess?: true
  /** The command can give permissions to others: callers may only give those that they hold. */
  readonly grantsPermissions?: true
  /** The principal of the slot `id` leaves its channels: always, or when it is disabled. */
  readonly leavesChannels?: 'always' | 'when_disabled'
  /**
   * What an idempotency key identifies, if it is not a request of the caller: a run of the project
   * (for as long as the run exists), or what the actor stores it for.
   */
  readonly keyScope?: 'run' | 'actor'
  /** Arguments of an example on the command line; by default, an example is derived. */
  readonly cliExample?: string
  /** The row is an endpoint of the Model Context Protocol. */
  readonly mcp?: true
  /**
   * Streams: `sse` always, `accept` when the client requests `text/event-stream` (otherwise the
   * reply is JSON), `socket` after a WebSocket upgrade.
   */
  readonly stream?: 'sse' | 'accept' | 'socket'
}

/**
 * The actor that handles the command: its kind, and the source of its id.
 * - `mint`: a new id; with `near`, in the slot of an id in the body, so that both actors can change
 *   in one commit.
 * - `slot`: a path slot that is an id.
 * - `derive`: a path slot that is a name, from which the id is derived.
 * - `found`: the id depends on the body, and the edge looks it up.
 * - Otherwise the project of the path (its configuration, or its source events), or the
 *   organization.
 */
type To =
  | {
      readonly kind: Kind
      readonly mint: Prefix
      readonly near?: (body: never) => string | undefined
    }
  | {
      readonly kind: Kind
      readonly slot: string
      readonly prefix: Prefix
      /** The slot may also be a name, which the edge looks up. */
      readonly named?: true
    }
  | { readonly kind: Kind; readonly derive: string; readonly prefix: Prefix }
  | { readonly kind: Kind; readonly found: Prefix }
  | { readonly kind: 'project' | 'events' }
  | { readonly kind: 'organization' }
export type Table = Readonly<Record<string, Row>>

const row =
  <V extends Verb>(verb: V) =>
  <const R extends string, const S extends Shape>(route: R, shape: S): Row<V, R, S> => ({
    verb,
    route,
    shape,
  })
/** Declares a command: `command('POST /projects/:project/runs', {…})`. */
export const command = row('command')
/** Declares a query. */
export const query = row('query')
/** Declares a stream. */
export const stream = row('stream')
/** Declares a transfer of bytes. */
export const blob = row('blob')

type Slots<P extends string> = P extends `${string}:${infer N}/${infer Rest}`
  ? N | Slots<Rest>
  : P extends `${string}:${infer N}`
    ? N
    : never
type Field<S, K extends string> = S extends { readonly [_ in K]: infer T extends TSchema }
  ? Static<T>
  : unknown
/** The input that a caller passes: path slots, query and body in one object. */
export type Input<R extends Row> = { readonly [K in Slots<R['route']>]: string } & Field<
  R['shape'],
  'body'
> &
  Field<R['shape'], 'query'>
/** The reply that a caller receives. */
export type Reply<R extends Row> = R['shape'] extends { readonly reply: infer T extends TSchema }
  ? Static<T>
  : undefined
/** The command rows that one kind of actor handles, by row name. */
export type CommandsOf<T extends Table, K extends Kind> = {
  [N in keyof T as T[N] extends { readonly shape: { readonly as: string } }
    ? never
    : T[N] extends {
          readonly verb: 'command'
          readonly shape: { readonly to: { readonly kind: K } }
        }
      ? N
      : never]: T[N]
}

/** Splits the route of a row into method, path and slot names. */
export function routeOf(row: Pick<Row, 'route'>): {
  method: string
  path: string
  slots: string[]
} {
  const [method = '', path = ''] = row.route.split(' ')
  return { method, path, slots: [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '') }
}
