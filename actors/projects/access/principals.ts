/**
 * Principals: the identities that act in the project. Services and agents sign in with keys, people
 * with personal tokens. Names of services are unique and never change. A change to a principal's
 * roles also applies to its existing keys and tokens.
 */

import type { RoleEvent } from '../../../protocol/access/role-rows.ts'
import type {
  access,
  Holds,
  KeyEvent,
  PrincipalEvent,
  PrincipalRecord,
  PrincipalWithoutRoles,
} from '../../../protocol/access/rows.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import {
  type FieldError,
  isRefusal,
  type Refusal,
  refuse,
  refuseFields,
} from '../../../protocol/errors.ts'
import { slotText } from '../../../protocol/ids.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { reservedTags, slug } from '../../../protocol/naming.ts'
import { hashOf } from '../../../protocol/subjects.ts'
import type { Cause, Decision } from '../../actor.ts'
import { changeOf, isUnexpired, principalLimit } from '../../configuration.ts'
import type { ProjectOptions, ProjectState } from '../state.ts'
import {
  assignmentsOf,
  principalRecord,
  reassign,
  refuseMissingForRoles,
  roleFaults,
} from './rights.ts'

type Rows = typeof access
type Decided<R> = Decision<PrincipalEvent | RoleEvent | KeyEvent, R>

/** Returns the service principal with this name, or undefined if no service principal has it. */
export const withName = (
  { principals }: ProjectState,
  name: string,
): PrincipalWithoutRoles | undefined =>
  Object.values(principals).find(
    (principal) => principal.kind === 'service' && principal.name === name,
  )

/**
 * Returns an unused handle such as `svc:<slug>`, with a number appended if necessary. Returns
 * undefined if the slug of the name is empty.
 */
function handleOf(
  { principals }: ProjectState,
  kind: 'svc' | 'user' | 'agent',
  name: string,
): string | undefined {
  const base = slug(name)
  if (base === '') return undefined
  const taken = new Set(Object.values(principals).map(({ handle }) => handle))
  let handle = `${kind}:${base}`
  for (let n = 2; taken.has(handle); n++) handle = `${kind}:${base}-${n}`
  return handle
}

interface PrincipalFields
  extends Pick<
    Partial<PrincipalWithoutRoles>,
    'email' | 'description' | 'owner_id' | 'identity' | 'metadata' | 'tags'
  > {
  readonly name: string
  readonly role_ids?: readonly string[]
}
/** A new principal with its roles. */
export interface NewPrincipal {
  readonly principal: PrincipalWithoutRoles
  readonly events: readonly (PrincipalEvent | RoleEvent)[]
  readonly role_ids: readonly string[]
}
/** Creates a principal. The caller must have checked that the principal may be created. */
export function newPrincipal(
  state: ProjectState,
  kind: 'service' | 'user',
  fields: PrincipalFields,
  cause: Cause,
): NewPrincipal {
  const now = timestamp(cause.at)
  const handle = handleOf(state, kind === 'user' ? 'user' : 'svc', fields.name)
  const principal: PrincipalWithoutRoles = {
    id: cause.mint(kind === 'user' ? 'user' : 'principal'),
    kind,
    state: 'active',
    name: fields.name,
    ...(fields.email && { email: fields.email }),
    ...(fields.description && { description: fields.description }),
    ...(handle !== undefined && { handle }),
    ...(fields.owner_id !== undefined && { owner_id: fields.owner_id }),
    ...(fields.identity && { identity: fields.identity }),
    ...(fields.metadata && { metadata: fields.metadata }),
    ...(fields.tags && Object.keys(fields.tags).length > 0 && { tags: fields.tags }),
    created_at: now,
    updated_at: now,
  }
  const { events, role_ids } = reassign(state, principal.id, fields.role_ids ?? [], cause)
  return {
    principal,
    role_ids,
    events: [{ type: 'principal.created', id: principal.id, principal }, ...events],
  }
}

/**
 * Creates the principal of a new agent, without roles. The principal's id is also the agent's id.
 * @param wantedId the id. By default, a new one is generated.
 */
export function newAgent(
  state: ProjectState,
  name: string,
  cause: Cause,
  wantedId?: string,
): { readonly id: string; readonly event: PrincipalEvent } {
  const now = timestamp(cause.at)
  // The id has a random slot, so that records of agents, such as their memory, spread over the
  // shards.
  const id = wantedId ?? cause.mint('agent').slice(0, -2) + slotText(hashOf(cause.secret()))
  const handle = handleOf(state, 'agent', name)
  return {
    id,
    event: {
      type: 'principal.created',
      id,
      principal: {
        id,
        kind: 'agent',
        state: 'active',
        name,
        ...(handle !== undefined && { handle }),
        created_at: now,
        updated_at: now,
      },
    },
  }
}

/** Returns the field errors of the properties that users and service principals share. */
export const principalFaults = (
  state: ProjectState,
  input: { role_ids?: readonly string[]; tags?: Readonly<Record<string, string>> },
  brand: string,
): FieldError[] => [...reservedTags(input.tags, brand), ...roleFaults(state, input.role_ids)]

/** Creates a service principal, with its roles in the same commit. */
export function createPrincipal(
  options: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['principal.create']> & Holds,
  cause: Cause,
): Decided<PrincipalRecord> {
  const { brand } = options
  const faults = principalFaults(state, input, brand)
  if (faults.length > 0) return refuseFields(...faults)
  if (withName(state, input.name))
    return refuse('already_exists', { field: 'name', name: input.name })
  const missing =
    refuseMissingForRoles(state, input.holds, input.role_ids ?? [], brand) ??
    principalLimit(options, state.principals)
  if (missing) return missing
  const { principal, events, role_ids } = newPrincipal(state, 'service', input, cause)
  return { events, reply: principalRecord(principal, role_ids) }
}

type Wish = { readonly [K in keyof PrincipalRecord]?: PrincipalRecord[K] | undefined }
/**
 * Whether a change lets someone authenticate as the principal: it sets another e-mail address, with
 * which a person can sign in through OpenID Connect, or it enables a principal that has a key or a
 * way to sign in.
 */
function opensAccess(
  { keys }: ProjectState,
  principal: PrincipalWithoutRoles,
  { email, state }: Wish,
  at: number,
): boolean {
  if (email && email.toLowerCase() !== principal.email?.toLowerCase()) return true
  if (state !== 'active' || principal.state === 'active') return false
  return (
    principal.email !== undefined ||
    principal.identity !== undefined ||
    Object.values(keys).some(
      (stored) => stored.key.principal_id === principal.id && isUnexpired(stored.key, at),
    )
  )
}

/**
 * Changes a principal. `role_ids` replaces its roles, and an empty list removes them all. The
 * caller needs the permissions of the added roles. The permissions of the other roles are needed
 * only if the change opens access to the principal (`opensAccess`).
 */
export function changePrincipal(
  state: ProjectState,
  principal: PrincipalWithoutRoles,
  { role_ids: roles, ...wish }: Wish,
  { holds, brand }: Holds & ProjectOptions,
  cause: Cause,
): Decided<PrincipalRecord> {
  const { events, added, role_ids } = reassign(state, principal.id, roles, cause)
  const granted = opensAccess(state, principal, wish, cause.at) ? role_ids : added
  const missing = refuseMissingForRoles(state, holds, granted, brand)
  if (missing) return missing
  const change = changeOf<PrincipalWithoutRoles>(principal, wish, cause.at)
  if (!change && events.length === 0) return { events, reply: principalRecord(principal, role_ids) }
  // Roles are stored separately but belong to the record, so a change to the roles also updates the
  // record.
  const updated_at = timestamp(cause.at)
  const changes = {
    ...change?.changes,
    ...(events.length > 0 && {
      role_ids: {
        from: assignmentsOf(state, principal.id).map(({ role_id }) => role_id),
        to: role_ids,
      },
    }),
  }
  return {
    events: [
      {
        type: 'principal.updated',
        id: principal.id,
        principal: { ...change?.patch, updated_at },
        changes,
      },
      ...events,
    ],
    reply: principalRecord({ ...(change?.next ?? principal), updated_at }, role_ids),
  }
}
/** Changes a principal of any kind. */
export function updatePrincipal(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['principal.update']> & Holds,
  cause: Cause,
): Decided<PrincipalRecord> {
  const principal = getOwn(state.principals, input.id)
  if (!principal) return refuse('not_found')
  const faults = principalFaults(state, input, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const { description, state: status, owner_id, metadata, role_ids, tags, holds } = input
  return changePrincipal(
    state,
    principal,
    { description, state: status, owner_id, metadata, role_ids, tags },
    { holds, brand },
    cause,
  )
}

/** Refuses to archive the principal of an agent, or a service principal with an unexpired key. */
function needed(
  { keys }: ProjectState,
  { id, kind }: PrincipalWithoutRoles,
  at: number,
): Refusal | undefined {
  if (kind === 'agent')
    return refuse(
      'conflict',
      { principal_id: id },
      'This principal belongs to an agent; delete the agent instead.',
    )
  const key =
    kind === 'user'
      ? undefined
      : Object.values(keys).find(
          (stored) => stored.key.principal_id === id && isUnexpired(stored.key, at),
        )?.key
  return (
    key &&
    refuse(
      'conflict',
      { key_id: key.id, name: key.name },
      `The key ${key.name} authenticates as this principal; revoke it first.`,
    )
  )
}
/**
 * Archives a principal unless it is still needed (`needed`). A user's tokens are revoked as well.
 */
export function deletePrincipal(
  state: ProjectState,
  input: Pick<Input<Rows['principal.delete']>, 'id'>,
  { at }: Cause,
): Decided<undefined> {
  const principal = getOwn(state.principals, input.id)
  if (!principal) return refuse('not_found')
  const refused = needed(state, principal, at)
  if (isRefusal(refused)) return refused
  const tokens =
    principal.kind === 'user'
      ? Object.values(state.keys).filter(({ key }) => key.principal_id === principal.id)
      : []
  return {
    events: [
      ...tokens.map(
        ({ key }) => ({ type: 'key.revoked', id: key.id, name: key.name, at }) as const,
      ),
      { type: 'principal.deleted', id: principal.id, name: principal.name },
    ],
    reply: undefined,
  }
}
