/**
 * How an endpoint is declared. A row is a value: routing, validation, types, permissions, OpenAPI, the client and the
 * command line are folds over the table of rows; nothing else describes an endpoint.
 */
import type { Static, TSchema } from 'typebox'
import type { Permission } from './access/schema.ts'
import type { Additions } from './additions.ts'
import type { Kind } from './entry.ts'
import type { Code, FieldError } from './errors.ts'
import type { Prefix } from './ids.ts'

/**
 * - `command`: changes something: decided by one actor.
 * - `query`: reads: answered by a view.
 * - `stream`: held open: Server-Sent Events, or a WebSocket.
 * - `blob`: bytes in or out, streamed.
 */
export type Verb = 'command' | 'query' | 'stream' | 'blob'

/** One row of the API. `route` is `METHOD /path/:slot`, below `/v1`. */
export interface Row<V extends Verb = Verb, R extends string = string, S extends Shape = Shape> {
  readonly verb: V
  readonly route: R
  readonly shape: S
}

export interface Shape {
  /** One line of the API reference. */
  readonly summary: string
  /** Group in the API reference: the resource. */
  readonly tag: string
  /** What the caller must be allowed to do; `authenticated`: any valid credential. */
  readonly permission: Permission | 'authenticated'
  readonly body?: TSchema
  /** The body may be left out; then it is `{}`. */
  readonly bodyOptional?: true
  /** What a schema cannot say about the body: a pure check, giving every faulty place. */
  readonly check?: (body: never) => readonly FieldError[]
  /** Commands: the key in a body by which a repeat is recognised. When it is given, the header Idempotency-Key counts for nothing. */
  readonly key?: (body: never) => string | undefined
  readonly query?: TSchema
  /** Members beyond the published record; the row's parameter `include` names those that are wanted. Both come from `additions`. */
  readonly additions?: Additions
  /** Lists: the parameter that names the wanted items; beside it cursor, order and limit count for nothing, whatever they say. */
  readonly exact?: string
  readonly reply?: TSchema
  /** The path names no project: it is the one that the caller's credential is pinned to. */
  readonly ofCaller?: true
  /** Success status; 200 by default, 204 means no body. */
  readonly status?: number
  /** Other success statuses the reply may carry (an actor's reply names it in `status_code`). */
  readonly alsoStatus?: readonly number[]
  /** Refusals beyond the ones every row can give. */
  readonly errors?: readonly Code[]
  /** Commands: who decides. Absent on queries, streams, and rows that relay. */
  readonly to?: To
  /** Commands over several actors: the row named `command` is sent once for each id in the body's `over`; every outcome is answered inline. */
  readonly each?: { readonly over: string; readonly command: string; readonly prefix: Prefix }
  /** Nobody decides this row: what its body asks for is put to these rows, each under its own permission. */
  readonly relays?: readonly string[]
  /** A further success status, of answers without a body. */
  readonly bare?: number
  /** Largest accepted body in bytes; 1 MiB by default. */
  readonly limit?: number
  /** Commands: the body carries a file, its member `file`: a form with that part, or JSON with base64. The file itself goes to no actor. */
  readonly upload?: true
  /** This row is a form that other clients know of the row named here; it is listed under the tag `compat`. */
  readonly alias?: string
  /** The row whose arm or query answers this one: nothing but the path or the status differs. */
  readonly as?: string
  /** Streams: `sse` always, `accept` when the client asks for `text/event-stream` (else the row's reply as JSON), `socket` after a WebSocket upgrade. */
  readonly stream?: 'sse' | 'accept' | 'socket'
}

/**
 * The actor that decides: its kind, and where its id comes from: a new id (`mint`; `near`: in the slot of an id in the body, so
 * that the two can move in one commit), a path slot that is an id (`slot`), a path slot that is a name from which the id is derived (`derive`), the project of the path (its configuration, or its source events), or the
 * organization; or it depends on the body, and the edge finds it (`found`).
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
      readonly prefix: Prefix /** The slot may also be a name, which the edge looks up. */
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
/** Declare a command: `command('POST /projects/:project/runs', {…})`. */
export const command = row('command')
/** Declare a query. */
export const query = row('query')
/** Declare a stream. */
export const stream = row('stream')
/** Declare a transfer of bytes. */
export const blob = row('blob')

type Slots<P extends string> = P extends `${string}:${infer N}/${infer Rest}`
  ? N | Slots<Rest>
  : P extends `${string}:${infer N}`
    ? N
    : never
type Field<S, K extends string> = S extends { readonly [_ in K]: infer T extends TSchema }
  ? Static<T>
  : unknown
/** What a caller passes: path slots, query and body in one object. */
export type Input<R extends Row> = { readonly [K in Slots<R['route']>]: string } & Field<
  R['shape'],
  'body'
> &
  Field<R['shape'], 'query'>
/** What a caller gets. */
export type Reply<R extends Row> = R['shape'] extends { readonly reply: infer T extends TSchema }
  ? Static<T>
  : undefined
/** The command rows that one kind of actor decides, by row name. */
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

/** Method and path of a row. */
export function routeOf(row: Pick<Row, 'route'>): {
  method: string
  path: string
  slots: string[]
} {
  const [method = '', path = ''] = row.route.split(' ')
  return { method, path, slots: [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '') }
}
