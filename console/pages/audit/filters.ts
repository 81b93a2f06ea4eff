/** Converts the filters of an audit log from the query of the URL to members of a request. */
import type { CallInput } from '../../api/client.ts'

/** Names of the query parameters. */
export const filterNames = [
  'type',
  'action',
  'actor_type',
  'period',
  'resource',
  'actor',
  'in',
] as const
export type FilterName = (typeof filterNames)[number]

const HOUR_MS = 3_600_000
/** The values of the query parameter `period`, with the lengths of the periods in hours. */
const periods: Readonly<Record<string, number>> = {
  '1h': 1,
  '24h': 24,
  '7d': 168,
  '30d': 720,
}

/**
 * Returns the filters in the query of a URL, as members of a request.
 * @param now Unix milliseconds. It is rounded down to a minute, so the same filters give the same
 *   request within a minute.
 */
export function filtersOf(
  query: URLSearchParams,
  now: number,
): Omit<CallInput<'audit.list'>, 'limit'> {
  const get = (name: FilterName) => query.get(name) || undefined
  const type = get('type')
  const action = get('action')
  const actor = get('actor_type')
  const period = get('period') ?? ''
  const hours = Object.hasOwn(periods, period) ? periods[period] : undefined
  const resource_id = get('resource')
  const actor_id = get('actor')
  const project_id = get('in')
  const minute = Math.floor(now / 60_000) * 60_000
  return {
    ...(type && { resource_type: [type] }),
    ...(action && { action: [action as 'create'] }),
    ...(actor && { actor_type: [actor as 'user'] }),
    ...(hours && { created_after: new Date(minute - hours * HOUR_MS).toISOString() }),
    ...(resource_id && { resource_id }),
    ...(actor_id && { actor_id }),
    ...(project_id && { project_id }),
  }
}

/** The resource types of audit entries. */
export const resourceTypes: readonly string[] = [
  'action',
  'action_secret',
  'agent',
  'agent_assignment',
  'agent_memory',
  'api_key',
  'artifact',
  'blueprint',
  'channel',
  'channel_member',
  'console_session',
  'definition_resolver',
  'environment',
  'interaction',
  'loop',
  'messaging_binding',
  'oauth_return_origins',
  'organization',
  'organization_action',
  'personal_token',
  'principal',
  'project',
  'repository_host',
  'role',
  'role_assignment',
  'secret',
  'skill',
  'table',
  'toolkit',
  'webhook',
  'webhook_secret',
  'workflow',
]
