/** Reads the lists of a service, for comparison before and after hostile requests. */
import type { RowName } from '../../../protocol/api.ts'
import { listOf } from '../../scenarios/support/given.ts'
import type { Service } from '../../support/service.ts'
import type { Place } from './rows.ts'

/**
 * Reads the records in the main lists of a project and of the organization, without fields that
 * change on their own. Skills of the organization are omitted.
 */
export async function shownIn(
  s: Service,
  { handle }: Place,
): Promise<Readonly<Record<string, Readonly<Record<string, unknown>>>>> {
  const at = { project: handle }
  const lists = {
    'project.list': {},
    'key.list_organization': {},
    'run.list': at,
    'workflow.list': at,
    'loop.list': at,
    'principal.list': { ...at, include_disabled: true },
    'key.list': at,
    'interaction.list': at,
    'channel.list': at,
    'role.list': at,
    'assignment.list': at,
    'user.list': { ...at, include_disabled: true },
    'agent.list': at,
    'session.list': at,
    'toolkit.list': at,
    'skill.list': at,
    'action.list': at,
    'organization_action.list': {},
    'table.list': at,
  } as const
  return Object.fromEntries(
    await Promise.all(
      Object.entries(lists).map(async ([name, input]) => {
        const { status, body } = await s.call(name as RowName, {
          ...input,
          ...(!['assignment.list', 'toolkit.list', 'skill.list'].includes(name) && { limit: 200 }),
        })
        const items = (status === 200 ? listOf(body) : []).filter(
          ({ source }) => source !== 'organization',
        )
        return [
          name,
          Object.fromEntries(
            items.map(({ last_used_at: _, ...record }: Record<string, unknown>) => [
              record['id'],
              record,
            ]),
          ),
        ]
      }),
    ),
  )
}
