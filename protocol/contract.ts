/**
 * The declaration of endpoints. A row is a value that describes one endpoint. Routing, validation,
 * types, permissions, the API reference, the client and the command line are derived from the table
 * of rows. Operations without a credential are not in the table (`access/unauthenticated-rows.ts`).
 */
import type { Static, TSchema } from 'typebox'
import type { Permission } from './access/schema.ts'
import type { Additions } from './additions.ts'
import type { Kind } from './entry.ts'
import type { Code, FieldError } from './errors.ts'
import type { Prefix } from './ids.ts'

/**
 * The kind of an endpoint.
 * - `command`: changes something; one actor handles it, except for rows with `each` or `relays`.
 * - `query`: reads; a view or the gateway answers it. Parameters that do not fit a query string are
 *   the body of a POST.
 * - `stream`: stays open, as Server-Sent Events or a WebSocket.
 * - `blob`: transfers a stream of bytes in or out.
 */
export type Verb = 'command' | 'query' | 'stream' | 'blob'

/**
 * One endpoint of the API. `route` has the form `METHOD /path/:parameter`, and the path is below
 * `/v1`.
 */
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
  /** The body may be omitted. A missing body is equivalent to `{}`. */
  readonly bodyOptional?: true
  /**
   * A pure function that returns the faults that a schema cannot detect in the body, each with the
   * path of the field.
   */
  readonly check?: (body: never) => readonly FieldError[]
  /**
   * Commands: returns the idempotency key in the body. When the body has one, the `Idempotency-Key`
   * header is ignored.
   */
  readonly key?: (body: never) => string | undefined
  readonly query?: TSchema
  /**
   * Fields beyond the published record, which the reply contains only if the query parameter
   * `include` lists them. The function `additions` creates this table and the parameter's schema.
   */
  readonly additions?: Additions
  /**
   * Lists: the name of the query parameter that lists the ids of the requested items. When the
   * parameter is present, cursor, order and limit are ignored, whatever their values.
   */
  readonly exact?: string
  readonly reply?: TSchema
  /** The path contains no project. The row applies to the project of the caller's credential. */
  readonly ofCaller?: true
  /** Success status; 200 by default. A reply with 204 has no body. */
  readonly status?: number
  /** Other success statuses of the row. The handler selects one by `status_code` in its reply. */
  readonly alsoStatus?: readonly number[]
  /** Refusal codes of this row, in addition to those that apply to every row. */
  readonly errors?: readonly Code[]
  /**
   * Commands: the actor that handles the command. Absent for other verbs, and for rows with `each`
   * or `relays`.
   */
  readonly to?: To
  /**
   * Commands to several actors: the command named by `command` is sent once for each id in the body
   * field named by `over`. An id that does not begin with `prefix` counts as not found. The reply
   * contains the outcome of each command.
   */
  readonly each?: { readonly over: string; readonly command: string; readonly prefix: Prefix }
  /**
   * The rows to which the gateway relays this row, which has no actor of its own. Either each
   * operation in the body is relayed to one of these rows, whose permission and checks apply, or
   * the command of one of these rows is performed for each record that matches a filter.
   */
  readonly relays?: readonly string[]
  /** An additional success status, for replies without a body. */
  readonly bare?: number
  /** Maximum size of the body in bytes; 1 MiB by default. */
  readonly limit?: number
  /**
   * Commands: the body contains a file as `file`, either as a part of a form or as base64 in JSON.
   * The file itself is not sent to an actor. `streamed`: the body is a form of any size, which the
   * row's handler reads while it arrives.
   */
  readonly upload?: true | 'streamed'
  /**
   * The row is a variant of the named row, for clients that use a different path. It is listed
   * under the `compat` tag.
   */
  readonly alias?: string
  /** The row whose handler or query also answers requests to this row. */
  readonly as?: string
  /**
   * Queries: the component that answers the query. `gateway`: the directories in the gateway.
   * `view`: the view of the partition, which is the default. A stream with `view` also serves
   * single pages as JSON.
   */
  readonly answeredBy?: 'gateway' | 'view'
  /** The answer depends on what the caller may read. The view receives the caller as `viewer`. */
  readonly viewer?: true
  /**
   * The kind of record that the path parameter `id` identifies, if this record determines the
   * project or the session of the request.
   */
  readonly locateBy?: 'run' | 'interaction'
  /** An agent may call the row for itself without the permission. */
  readonly selfAccess?: true
  /**
   * The worker of an environment may call the row with its own credential, without the permission.
   * If the row has the path parameter `environment_id`, the parameter must identify the worker's
   * own environment.
   */
  readonly environment?: true
  /** The command can grant permissions. Callers may grant only permissions that they hold. */
  readonly grantsPermissions?: true
  /**
   * When the principal that the path parameter `id` identifies leaves its channels: after every
   * execution of the command, or only after one that disables the principal.
   */
  readonly leavesChannels?: 'always' | 'when_disabled'
  /**
   * The scope in which an idempotency key is unique: by default, the caller, the method and the
   * path. `run`: the key identifies a run of the project while the run exists. `actor`: the actor
   * stores the key and recognizes repeats.
   */
  readonly keyScope?: 'run' | 'actor'
  /**
   * Updates: the record also changes without commands from clients, as a session does with each
   * turn, so it has no entity tag (`conditional.ts`).
   */
  readonly untagged?: true
  /**
   * Arguments of the example for the command line. By default, the example is derived from the
   * required fields of the row.
   */
  readonly cliExample?: string
  /** The row is an endpoint of the Model Context Protocol (MCP). */
  readonly mcp?: true
  /**
   * Streams: the form of the answer. `sse`: Server-Sent Events. `accept`: Server-Sent Events if the
   * client accepts `text/event-stream`, otherwise JSON. `socket`: a WebSocket.
   */
  readonly stream?: 'sse' | 'accept' | 'socket'
}

/**
 * The actor that handles a command: its kind, and the source of its id.
 * - `mint`: a new id is generated. With `near`, the id has the slot of an id in the body, so that
 *   both actors can change in one commit.
 * - `slot`: the id is a path parameter.
 * - `derive`: the id is derived from a name, which is a path parameter.
 * - `found`: the id depends on the body, and the gateway looks it up.
 * - Otherwise, the id is that of the organization or of the project.
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
      /** The path parameter may be a name instead of an id. The gateway then looks up the id. */
      readonly named?: true
    }
  | { readonly kind: Kind; readonly derive: string; readonly prefix: Prefix }
  | { readonly kind: Kind; readonly found: Prefix }
  | { readonly kind: 'project' | 'events' | 'saved_views' }
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
/** The input that a caller passes: path parameters, query parameters and body in one object. */
export type Input<R extends Row> = { readonly [K in Slots<R['route']>]: string } & Field<
  R['shape'],
  'body'
> &
  Field<R['shape'], 'query'>
/** The reply that a caller receives; undefined for rows without a reply. */
export type Reply<R extends Row> = R['shape'] extends { readonly reply: infer T extends TSchema }
  ? Static<T>
  : undefined
/**
 * The command rows that one kind of actor handles, by row name. Rows with `as` are omitted, because
 * they use the handler of the row to which they refer.
 */
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

/** Splits the route of a row into the method, the path and the names of the path parameters. */
export function routeOf(row: Pick<Row, 'route'>): {
  method: string
  path: string
  slots: string[]
} {
  const [method = '', path = ''] = row.route.split(' ')
  return { method, path, slots: [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '') }
}
/**
 * Returns a path without the names of its parameters. Paths that differ only in these names yield
 * the same text.
 */
export const pathShape = (path: string): string => path.replaceAll(/:\w+/g, ':')
