/** Service principals: who keys sign in as. Names are unique and never change; roles take effect with the next request. */
import { systemRoleById } from '../../protocol/access.ts'
import type { access, PrincipalEvent, PrincipalRecord } from '../../protocol/api/access.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse, refuseFields, type FieldError } from '../../protocol/errors.ts'
import { own } from '../../protocol/lookup.ts'
import { reservedTags, slug } from '../../protocol/naming.ts'
import type { Cause, Decision } from '../actor.ts'
import { changeOf, unexpired } from '../configuration.ts'
import type { ProjectOptions, ProjectState } from './state.ts'

type Rows = typeof access
type Decided<R> = Decision<PrincipalEvent, R>

/** The service principal with this name. */
export const withName = ({ principals }: ProjectState, name: string): PrincipalRecord | undefined =>
  Object.values(principals).find((principal) => principal.name === name)

/** A free handle `svc:<slug>`, numbered when names differ only in characters that handles lack. */
function handleOf({ principals }: ProjectState, name: string): string | undefined {
  const base = slug(name)
  if (base === '') return undefined
  const taken = new Set(Object.values(principals).map(({ handle }) => handle))
  let handle = `svc:${base}`
  for (let n = 2; taken.has(handle); n++) handle = `svc:${base}-${n}`
  return handle
}

/** The record of a new service principal. */
export function bornPrincipal(state: ProjectState, input: Omit<Input<Rows['principal.create']>, 'project'>, cause: Cause): PrincipalRecord {
  const now = timestamp(cause.at)
  const handle = handleOf(state, input.name)
  return {
    id: cause.mint('principal'), kind: 'service', state: 'active', name: input.name,
    ...(input.description && { description: input.description }),
    ...(handle !== undefined && { handle }),
    ...(input.owner_id !== undefined && { owner_id: input.owner_id }),
    ...(input.role_ids?.length && { role_ids: input.role_ids }),
    ...(input.metadata && { metadata: input.metadata }),
    ...(input.tags && Object.keys(input.tags).length > 0 && { tags: input.tags }),
    created_at: now, updated_at: now,
  }
}

const faultsOf = (input: { role_ids?: readonly string[]; tags?: Readonly<Record<string, string>> }, brand: string): FieldError[] => [
  ...reservedTags(input.tags, brand),
  ...(input.role_ids ?? []).flatMap((id, index) => (systemRoleById(id) ? [] : [{ field: `role_ids[${index}]`, message: 'there is no such role', actual: id }])),
]

/** Create a service principal, with its roles in the same commit. */
export function createPrincipal({ brand }: ProjectOptions, state: ProjectState, input: Input<Rows['principal.create']>, cause: Cause): Decided<PrincipalRecord> {
  const faults = faultsOf(input, brand)
  if (faults.length > 0) return refuseFields(...faults)
  if (withName(state, input.name)) return refuse('already_exists', { field: 'name', name: input.name })
  const principal = bornPrincipal(state, input, cause)
  return { events: [{ type: 'principal.created', id: principal.id, principal }], reply: principal }
}

/** Change a principal; `role_ids` replaces its roles, an empty list takes them all. */
export function updatePrincipal({ brand }: ProjectOptions, state: ProjectState, input: Input<Rows['principal.update']>, { at }: Cause): Decided<PrincipalRecord> {
  const principal = own(state.principals, input.id)
  if (!principal) return refuse('not_found')
  const faults = faultsOf(input, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const { description, state: status, owner_id, metadata, role_ids, tags } = input
  const change = changeOf<PrincipalRecord>(principal, { description, state: status, owner_id, metadata, role_ids, tags }, at)
  if (!change) return { events: [], reply: principal }
  return { events: [{ type: 'principal.updated', id: principal.id, principal: change.patch, changes: change.changes }], reply: change.next }
}

/** Archive a principal that no key can sign in as any more. */
export function deletePrincipal(state: ProjectState, input: Input<Rows['principal.delete']>, { at }: Cause): Decided<undefined> {
  const principal = own(state.principals, input.id)
  if (!principal) return refuse('not_found')
  const key = Object.values(state.keys).find((stored) => stored.key.principal_id === principal.id && unexpired(stored.key, at))?.key
  if (key) return refuse('conflict', { key_id: key.id, name: key.name }, `The key ${key.name} signs in as this principal; revoke it first.`)
  return { events: [{ type: 'principal.deleted', id: principal.id, name: principal.name }], reply: undefined }
}
