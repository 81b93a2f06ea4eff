/** The one table of the API. */
import { access } from './api/access.ts'
import { channels } from './api/channels.ts'
import { audit, projects } from './api/projects.ts'
import { runs } from './api/runs.ts'
import { workflows } from './api/workflows.ts'
import { workers } from './worker.ts'

/** Every endpoint, by operation name. */
export const api = { ...projects, ...access, ...audit, ...workflows, ...runs, ...channels, ...workers } as const
export type Api = typeof api
export type RowName = keyof Api
