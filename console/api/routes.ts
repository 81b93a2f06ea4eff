/**
 * The routes of the API as the build embeds them, so that the console does not load the endpoint
 * table with its schemas. `nodes/console.ts` derives them from the table.
 */

/**
 * The parts of an operation that a request needs: method and path, the names of the query
 * parameters, the additions to request (`include`), and whether there is a body.
 */
export interface EmbeddedRoute {
  readonly route: string
  readonly query?: readonly string[]
  readonly include?: readonly string[]
  readonly body?: true
}

declare global {
  /** The routes by operation name. The build replaces this identifier with the value. */
  const BATON_ROUTES: Readonly<Record<string, EmbeddedRoute>>
  /** The version of the program. The build replaces this identifier with the value. */
  const BATON_VERSION: string
}

/**
 * Returns the route of an operation.
 * @throws Error for a name that is not in the table.
 */
export function embeddedRoute(name: string): EmbeddedRoute {
  const route = Object.hasOwn(BATON_ROUTES, name) ? BATON_ROUTES[name] : undefined
  if (!route) throw new Error(`there is no operation ${name}`)
  return route
}
