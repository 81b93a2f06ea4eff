/**
 * Repository hosts of a project.
 *
 * Invariants: the version of a host increases with every change while the host exists. Keys and
 * tokens are sealed and never part of a reply to a client.
 */
import { timestamp } from '../../protocol/common.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import {
  type RepositoryHost,
  type RepositoryHostEvent,
  type RepositoryHostWithMaterial,
  repositoryHostLimits,
  type SealedHost,
} from '../../protocol/repositories/rows.ts'
import type { Cause, Decision } from '../actor.ts'
import type { ProjectState } from './state.ts'

const NAME = /^[a-z0-9][a-z0-9._-]*$/

/** Stores a host, unless nothing changes. */
export function putHost(
  { repository_hosts: all }: ProjectState,
  { host_name: name, host: fields, material }: SealedHost & { readonly host_name: string },
  { at }: Cause,
): Decision<RepositoryHostEvent, RepositoryHost> {
  if (!NAME.test(name) || name.length > repositoryHostLimits.name)
    return refuseFields({
      field: 'host_name',
      message: `must be up to ${repositoryHostLimits.name} lower-case letters, digits, . _ or -`,
      actual: name,
    })
  const known = getOwn(all, name)
  if (!known && Object.keys(all).length >= repositoryHostLimits.hosts)
    return refuse(
      'conflict',
      { limit: repositoryHostLimits.hosts },
      `A project has at most ${repositoryHostLimits.hosts} repository hosts.`,
    )
  if (known?.material.digest === material.digest && hasFields(known.host, fields))
    return { events: [], reply: known.host }
  const now = timestamp(at)
  const host: RepositoryHost = {
    name,
    ...fields,
    version: (known?.host.version ?? 0) + 1,
    created_at: known?.host.created_at ?? now,
    updated_at: now,
  }
  return { events: [{ type: 'repository_host.stored', id: name, host, material }], reply: host }
}
const hasFields = (
  { kind, url, app_id, installation_id, username }: RepositoryHost,
  fields: SealedHost['host'],
): boolean =>
  kind === fields.kind &&
  url === fields.url &&
  app_id === fields.app_id &&
  installation_id === fields.installation_id &&
  username === fields.username

/** Deletes a repository host together with its sealed credentials. */
export const deleteHost = (
  { repository_hosts: all }: ProjectState,
  { host_name: id }: { readonly host_name: string },
): Decision<RepositoryHostEvent, undefined> =>
  getOwn(all, id)
    ? { events: [{ type: 'repository_host.deleted', id }], reply: undefined }
    : refuse('not_found')

/** Reducers for the events of repository hosts. */
export const evolveHosts = {
  'repository_host.stored': (
    state: ProjectState,
    { id, host, material }: Extract<RepositoryHostEvent, { type: 'repository_host.stored' }>,
  ): ProjectState => {
    state.repository_hosts[id] = { host, material }
    return state
  },
  'repository_host.deleted': (
    state: ProjectState,
    { id }: { readonly id: string },
  ): ProjectState => {
    delete state.repository_hosts[id]
    return state
  },
}

/** Returns all hosts sorted by name, without their secrets. */
export const hostList = ({ repository_hosts: all }: ProjectState): RepositoryHost[] =>
  Object.values(all)
    .map(({ host }) => host)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
/** Returns the host with its sealed secrets, or null if there is no such host. */
export const hostOf = (
  { repository_hosts: all }: ProjectState,
  { name }: { readonly name: string },
): RepositoryHostWithMaterial | null => getOwn(all, name) ?? null
