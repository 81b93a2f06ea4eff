/** People for scenarios about interactions: principals of the default project, each with a key. */
import type { Service } from '../service.ts'

export interface Person { readonly id: string; readonly key: string }
/** Make a person with these roles. */
export async function person(s: Service, name: string, role_ids: readonly string[] = ['role_operator'], project = 'default'): Promise<Person> {
  const principal = await s.ok('principal.create', { project, name, role_ids })
  const key = await s.ok('key.create', { project, name, principal_id: principal['id'] })
  return { id: String(principal['id']), key: String(key['key']) }
}
/** Make several. */
export const people = (s: Service, ...names: string[]): Promise<Person[]> => Promise.all(names.map((name) => person(s, name)))
/** Options of a call made by a person. */
export const as = ({ key }: Person): { key: string } => ({ key })
