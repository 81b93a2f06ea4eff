/** The queries of the home page that the console may send before the page is loaded. */
import type { CallInput } from '../../api/client.ts'

/**
 * Returns the input of `overview.get` for the last `minutes`. The default is the period that the
 * page shows initially.
 */
export const overviewInput = (project: string, minutes = 60): CallInput<'overview.get'> => ({
  project,
  minutes,
})
/** Returns the input of `run.list` for the newest runs. */
export const recentInput = (project: string): CallInput<'run.list'> => ({ project, limit: 8 })
