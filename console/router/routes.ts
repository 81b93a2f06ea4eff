/**
 * The table of pages: URL pattern, module, navigation entry, and the permission that the page
 * requires. A page is added by a row in the file of its area.
 */

import { accessRoutes } from './access.ts'
import { agentRoutes } from './agents.ts'
import { buildRoutes } from './build.ts'
import { dataRoutes } from './data.ts'
import { operateRoutes } from './operate.ts'
import type { Route } from './route.ts'
import { runsRoutes } from './runs.ts'
import { workRoutes } from './work.ts'

/** All pages, in the order of the navigation. */
export const routes: readonly Route[] = [
  ...operateRoutes.filter(({ path }) => path === '/p/:project'),
  ...runsRoutes,
  ...workRoutes,
  ...buildRoutes,
  ...agentRoutes,
  ...dataRoutes,
  ...operateRoutes.filter(({ path }) => path !== '/p/:project'),
  ...accessRoutes,
]

/** Paths of the console. All other paths belong to the service. */
const OURS = /^\/($|p\/|sign-in$|account($|\/)|organization($|\/))/
/** Returns whether a path belongs to the console. */
export const isConsolePath = (path: string): boolean => OURS.test(path)
