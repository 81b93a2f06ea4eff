/**
 * Helpers for scenarios of tables. They create tables with the same columns, insert and read rows,
 * and create agents that use tables.
 */
import type { Service } from '../../support/service.ts'
import { type Found, listOf } from './given.ts'

type Open = Readonly<Record<string, unknown>>
export const columns: readonly Open[] = [
  { name: 'number', type: 'string', required: true },
  { name: 'customer', type: 'string' },
  { name: 'amount', type: 'number' },
  { name: 'paid', type: 'boolean', default: false },
  { name: 'due', type: 'date' },
  { name: 'address', type: 'object' },
  { name: 'tags', type: 'array' },
  { name: 'note', type: 'any' },
]
export const schema: Open = {
  identity_column: 'number',
  secondary_key_column: 'customer',
  columns,
}
let made = 0
/** Creates a table of orders. `more` replaces members of its schema. */
export const tableOf = (s: Service, more: Open = {}, project?: string): Promise<Found> =>
  s.ok('table.create', {
    ...(project !== undefined && { project }),
    name: `orders_${++made}`,
    schema: { ...schema, ...more },
  }) as Promise<Found>
export const insertAll = async (
  s: Service,
  id: unknown,
  rows: readonly object[],
): Promise<Found[]> => listOf(await s.ok('row.bulk', { id, rows }))
export const dataOf = (row: object | undefined): Open => (row as { data: Open }).data
/** Returns the values of the identity column `number` of a page's rows, in order. */
export const numbersOf = (page: object): string[] =>
  listOf(page).map((row) => String(dataOf(row)['number']))
export const tableStep = (verb: string, parameters: Open): Open => ({
  id: verb,
  kind: 'action',
  config: { action_name: `service.table.${verb}`, parameters },
})
let agents = 0
/** Creates an agent with a script and a toolkit with these groups. */
export async function agentWithTables(
  s: Service,
  script: string,
  groups: readonly string[],
): Promise<Found> {
  const kit = await s.ok('toolkit.create', {
    name: `Tables ${++agents}`,
    actions: groups.map((selector) => ({ selector_type: 'group', selector })),
  })
  const agent = await s.ok('agent.create', { name: `clerk-${agents}`, system_prompt: script })
  await s.ok('agent.assign_toolkits', { id: agent['id'], toolkit_ids: [kit['id']] })
  return agent
}
