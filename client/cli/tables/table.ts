/** Finds the table that a command refers to. */
import { api } from '../../../protocol/api.ts'
import { isId } from '../../../protocol/ids.ts'
import type { Table } from '../../../protocol/tables/schema.ts'
import type { Transport } from '../../transport.ts'

/** Returns the table with the given name or id; undefined if no table has the name. */
export async function findTable(transport: Transport, text: string): Promise<Table | undefined> {
  if (isId(text, 'table')) return (await transport.call(api['table.get'], { id: text })) as Table
  const { items } = (await transport.call(api['table.list'], { name: text })) as {
    readonly items: readonly Table[]
  }
  return items[0]
}
