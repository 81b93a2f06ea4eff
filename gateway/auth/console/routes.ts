/** The routes for signing in to the console. They are not rows of the API table. */
import { unauthenticated } from '../../../protocol/access/unauthenticated-rows.ts'
import { routeOf } from '../../../protocol/contract.ts'
import type { Edge } from '../../call.ts'
import type { Endpoint, Handler } from '../../serve.ts'
import { OIDC_START } from './identity.ts'
import { finishOidc, OIDC_CALLBACK, startOidc } from './oidc.ts'
import { showSession, signIn, signOut } from './sign-in.ts'

/** Returns the routes for console sessions and OpenID Connect, each with its path. */
export function consoleRoutes(edge: Edge): readonly (readonly [string, Endpoint])[] {
  const login = { purpose: 'login', slots: 0, limit: 0 } as const
  const row = (
    operation: 'console.session' | 'console.sign_in' | 'console.sign_out',
    handler: Handler,
    limit = 0,
  ): readonly [string, Endpoint] => {
    const { method, path } = routeOf(unauthenticated[operation])
    return [`/v1${path}`, { ...login, operation, method, limit, handler }]
  }
  const page = (path: string, handler: Handler): readonly [string, Endpoint] => [
    path,
    { ...login, operation: path, method: 'GET', handler },
  ]
  return [
    row('console.session', showSession(edge)),
    row('console.sign_in', signIn(edge), unauthenticated['console.sign_in'].shape.limit),
    row('console.sign_out', signOut(edge)),
    page(OIDC_START, startOidc(edge)),
    page(OIDC_CALLBACK, finishOidc(edge)),
  ]
}
