/** The one table of the API. */
import { access } from './api/access.ts'
import { agents } from './api/agents.ts'
import { actions } from './api/actions.ts'
import { interactions } from './api/interactions.ts'
import { loops } from './api/loops.ts'
import { channels } from './api/channels.ts'
import { devices } from './api/devices.ts'
import { events } from './api/events.ts'
import { organizationActions } from './api/organization-actions.ts'
import { audit, projects } from './api/projects.ts'
import { roles } from './api/roles.ts'
import { runs } from './api/runs.ts'
import { sessions } from './api/sessions.ts'
import { transcripts } from './api/transcripts.ts'
import { usage } from './api/usage.ts'
import { users } from './api/users.ts'
import { memory } from './api/memory.ts'
import { mcp } from './api/mcp.ts'
import { models } from './api/models.ts'
import { secrets } from './api/secrets.ts'
import { skills } from './api/skills.ts'
import { toolkits } from './api/toolkits.ts'
import { webhooks } from './api/webhooks.ts'
import { workflows } from './api/workflows.ts'
import { workers } from './worker.ts'
import { attachments } from './api/attachments.ts'

/** Every endpoint, by operation name. */
export const api = {
  ...projects,
  ...access,
  ...roles,
  ...users,
  ...devices,
  ...audit,
  ...usage,
  ...workflows,
  ...runs,
  ...interactions,
  ...channels,
  ...workers,
  ...events,
  ...loops,
  ...agents,
  ...toolkits,
  ...skills,
  ...models,
  ...memory,
  ...actions,
  ...organizationActions,
  ...sessions,
  ...transcripts,
  ...webhooks,
  ...secrets,
  ...mcp,
  ...attachments,
} as const
export type Api = typeof api
export type RowName = keyof Api
