/**
 * Describes a project's tables for a model: which tables exist, how they are used, and their
 * columns. Only turns with built-in actions on tables receive the description. It is read again for
 * each turn.
 */
import { isTableAction } from '../../protocol/actions/builtin.ts'
import { isRefusal, type Refusal } from '../../protocol/errors.ts'
import { cut } from '../../protocol/naming.ts'
import type { GrantedTool, TurnDefinition } from '../../protocol/sessions/turns/definition.ts'
import type { Column, Table } from '../../protocol/tables/schema.ts'
import type { World } from '../ports.ts'

/** Maximum number of described tables. The newest are described. */
const MAX_TABLES = 20
/** Maximum number of described columns per table. */
const MAX_COLUMNS = 50
/** Maximum number of characters of a column description. */
const MAX_DESCRIPTION_LENGTH = 200
/**
 * Maximum total size of the table descriptions, in bytes. A table whose description would exceed it
 * is listed by name only.
 */
const MAX_BYTES = 16_384

/** Describes the tables of a project, if one of the tools works on tables. */
export async function describeTables(
  world: Pick<World, 'view' | 'settings'>,
  project: string,
  tools: readonly GrantedTool[],
): Promise<Pick<TurnDefinition, 'tables'> | Refusal> {
  const brand = world.settings.brand.toLowerCase()
  if (!tools.some(({ name }) => isTableAction(brand, name))) return {}
  const page = await world.view(project, 'table.list', { limit: MAX_TABLES })
  if (isRefusal(page)) return page
  if (page.items.length === 0) return {}
  return { tables: textOf(page.items, page.position !== undefined) }
}

/**
 * Returns the description of tables. Tables whose description would exceed `MAX_BYTES` are listed
 * by name only.
 * @param more whether further tables exist.
 */
export function textOf(tables: readonly Table[], more: boolean): string {
  let bytes = 0
  const described: string[] = []
  const named: string[] = []
  for (const table of tables) {
    const text = sectionOf(table)
    const size = Buffer.byteLength(text) + 1
    if (bytes + size > MAX_BYTES) named.push(table.name)
    else {
      bytes += size
      described.push(text)
    }
  }
  return [
    '# Tables',
    ...described,
    ...(named.length > 0 ? [`Other tables: ${named.join(', ')}`] : []),
    ...(more
      ? ['There are more tables. A call with an unknown table is answered with names of tables.']
      : []),
  ].join('\n')
}

function sectionOf({ name, description, instructions, schema }: Table): string {
  const { columns, identity_column, open } = schema
  const left = columns.length - MAX_COLUMNS
  return [
    `## ${name}${description === undefined ? '' : `: ${description}`}`,
    ...(instructions === undefined ? [] : [instructions]),
    ...columns
      .slice(0, MAX_COLUMNS)
      .map((column) => lineOf(column, column.name === identity_column)),
    ...(left > 0 ? [`- and ${left} more columns`] : []),
    ...(open ? ['Rows may have other keys.'] : []),
  ].join('\n')
}
function lineOf(
  { name, type, required, deprecated, description }: Column,
  isIdentity: boolean,
): string {
  const facts = [
    type,
    ...(isIdentity ? ['identity'] : []),
    ...(required && !isIdentity ? ['required'] : []),
    ...(deprecated ? ['deprecated'] : []),
  ]
  const about = description === undefined ? '' : `: ${cut(description, MAX_DESCRIPTION_LENGTH)}`
  return `- ${name} (${facts.join(', ')})${about}`
}
