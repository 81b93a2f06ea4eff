/** The pages of people, keys, secrets, audit, settings and the account. */
import type { Route } from './route.ts'

export const accessRoutes: readonly Route[] = []
