/** The pages of workflows, loops, actions and events. */
import type { Route } from './route.ts'

export const buildRoutes: readonly Route[] = []
