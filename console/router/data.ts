/** The pages of tables, artifacts and environments. */
import type { Route } from './route.ts'

export const dataRoutes: readonly Route[] = []
