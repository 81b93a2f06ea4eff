/**
 * The table of all API endpoints. Routing, validation, authorization, the API reference, the client
 * and the command line are derived from it. Each row is declared in the folder of its resource.
 */

import { consoleRows } from './access/console-rows.ts'
import { devices } from './access/device-rows.ts'
import { roles } from './access/role-rows.ts'
import { access } from './access/rows.ts'
import { secrets } from './access/secret-rows.ts'
import { users } from './access/user-rows.ts'
import { organizationActions } from './actions/organization-rows.ts'
import { actions } from './actions/rows.ts'
import { models } from './agents/model-rows.ts'
import { agents } from './agents/rows.ts'
import { artifacts } from './artifacts/rows.ts'
import { blueprints } from './blueprints/rows.ts'
import { channels } from './channels/rows.ts'
import { cluster } from './cluster/rows.ts'
import { environments } from './environments/rows.ts'
import { events } from './events/rows.ts'
import { interactions } from './interactions/rows.ts'
import { queues } from './jobs/queue-rows.ts'
import { loops } from './loops/rows.ts'
import { schedules } from './loops/schedule-rows.ts'
import { mcp } from './mcp/rows.ts'
import { memory } from './memory/rows.ts'
import { overview } from './overview/rows.ts'
import { preferences } from './preferences/rows.ts'
import { audit, projects } from './projects/rows.ts'
import { repositoryHosts } from './repositories/rows.ts'
import { resolver } from './resolver/rows.ts'
import { runs } from './runs/rows.ts'
import { attachments } from './sessions/attachment-rows.ts'
import { sessions } from './sessions/rows.ts'
import { transcripts } from './sessions/transcript/rows.ts'
import { skills } from './skills/rows.ts'
import { streams } from './streams/rows.ts'
import { tables } from './tables/rows.ts'
import { toolkits } from './toolkits/rows.ts'
import { usage } from './usage/rows.ts'
import { webhooks } from './webhooks/rows.ts'
import { workers } from './workers/rows.ts'
import { workflows } from './workflows/rows.ts'

export const api = {
  ...projects,
  ...access,
  ...roles,
  ...users,
  ...devices,
  ...consoleRows,
  ...preferences,
  ...audit,
  ...usage,
  ...overview,
  ...cluster,
  ...workflows,
  ...runs,
  ...interactions,
  ...channels,
  ...workers,
  ...queues,
  ...events,
  ...loops,
  ...schedules,
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
  ...repositoryHosts,
  ...resolver,
  ...mcp,
  ...attachments,
  ...tables,
  ...artifacts,
  ...environments,
  ...blueprints,
  ...streams,
} as const
export type Api = typeof api
export type RowName = keyof Api
