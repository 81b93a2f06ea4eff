/** The pages of sessions and agents. */
import type { Route } from './route.ts'

export const agentRoutes: readonly Route[] = []
