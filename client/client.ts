/** A typed client: the API table plus a transport, without generated code. */
import { type Api, api } from '../protocol/api.ts'
import type { Input, Reply, Row } from '../protocol/contract.ts'
import { type ClientOptions, Transport } from './transport.ts'

export { BatonError } from './errors.ts'
export type { ClientOptions } from './transport.ts'

type Called<R extends Row> = Omit<Input<R>, 'project'> &
  (Input<R> extends { project: string } ? { project?: string } : unknown)
type Call<R extends Row> =
  Partial<Called<R>> extends Called<R>
    ? (input?: Called<R>) => Promise<Reply<R>>
    : (input: Called<R>) => Promise<Reply<R>>
type Callable = {
  [N in keyof Api as Api[N] extends { readonly verb: 'command' | 'query' } ? N : never]: Api[N]
}
type Group<N> = N extends `${infer G}.${string}` ? G : never
/**
 * All commands and queries of the API table, by resource and name: `client.run.start({…})`. A call
 * rejects with a `BatonError` if the service refuses it or does not respond, and with an `Error` if
 * a path parameter is missing.
 */
export type Client = {
  readonly [G in Group<keyof Callable>]: {
    readonly [N in keyof Callable as N extends `${G}.${infer M}`
      ? M
      : never]: Callable[N] extends infer R extends Row ? Call<R> : never
  }
} & { readonly transport: Transport }

/**
 * Creates a client. It sends no request before the first call.
 * @throws Error if `options` contains no address.
 */
export function client(options: ClientOptions): Client {
  const transport = new Transport(options)
  const groups: Record<string, Record<string, unknown>> = {}
  for (const [name, row] of Object.entries(api)) {
    const [group = '', method = ''] = name.split('.')
    groups[group] ??= {}
    ;(groups[group] as Record<string, unknown>)[method] = (input: Record<string, unknown> = {}) =>
      transport.call(row, input)
  }
  return { ...groups, transport } as unknown as Client
}
