/** The pages of the inbox and of channels. */
import type { Route } from './route.ts'

export const workRoutes: readonly Route[] = []
