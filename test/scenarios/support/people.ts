/** Creates principals of a project for scenarios. Each calls operations with its own API key. */
import type { RowName } from '../../../protocol/api.ts'
import type { Service } from '../../support/service.ts'
import type { Found } from './given.ts'

type Open = Record<string, unknown>
export interface Person {
  readonly id: string
  readonly key: string
  ok(name: RowName, input?: Open): Promise<Found>
  call(name: RowName, input?: Open): ReturnType<Service['call']>
  refused(name: RowName, input: Open, status: number, code: string): ReturnType<Service['refused']>
}

export async function person(
  s: Service,
  name: string,
  role = 'role_operator',
  project = 'default',
): Promise<Person> {
  const { id } = await s.ok('principal.create', { project, name, role_ids: [role] })
  const { key } = await s.ok('key.create', { project, name, principal_id: id })
  const options = { key: String(key) }
  return {
    id: String(id),
    key: String(key),
    ok: (row, input) => s.ok(row, { project, ...input }, options),
    call: (row, input) => s.call(row, { project, ...input }, options),
    refused: (row, input, status, code) =>
      s.refused(row, { project, ...input }, status, code, options),
  }
}
/** Creates several operators. */
export const people = (s: Service, ...names: string[]): Promise<Person[]> =>
  Promise.all(names.map((name) => person(s, name)))
/** Creates an editor, who may post in channels. */
export const editor = (s: Service, name: string): Promise<Person> => person(s, name, 'role_editor')
/** Returns the options of a call with the principal's key. */
export const as = ({ key }: Pick<Person, 'key'>): { key: string } => ({ key })
