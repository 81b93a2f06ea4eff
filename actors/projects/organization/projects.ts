/**
 * Projects of the organization. Handles and external references are unique among all projects,
 * including deleted projects. This actor alone decides about creation by external reference, so a
 * repeat is safe.
 */

import { timestamp } from '../../../protocol/common.ts'
import type { Input } from '../../../protocol/contract.ts'
import { type Refusal, refuse, refuseFields } from '../../../protocol/errors.ts'
import { slotText } from '../../../protocol/ids.ts'
import { getOwn } from '../../../protocol/lookup.ts'
import { reservedTags, slug } from '../../../protocol/naming.ts'
import type {
  OrganizationProjectEvent,
  Project,
  projects,
} from '../../../protocol/projects/rows.ts'
import { hashOf } from '../../../protocol/subjects.ts'
import type { Cause, Decision } from '../../actor.ts'
import { changeOf } from '../../configuration.ts'
import type { OrganizationOptions, OrganizationState } from './state.ts'

type Rows = typeof projects
type Decided<R> = Decision<OrganizationProjectEvent, R>

/**
 * Returns a project id with a random slot, so that projects spread over the shards instead of
 * sharing the shard of the organization.
 */
const mintProject = (cause: Cause): string =>
  cause.mint('project').slice(0, -2) + slotText(hashOf(cause.secret()))

/**
 * Adopts an existing project: the reply is that project, and nothing is written. Refuses with
 * `external_identity_conflict` if the project was deleted or has another handle.
 */
function adopt(
  match: OrganizationState['projects'][string],
  input: Input<Rows['project.create']>,
): Decided<Project> {
  if (match.deleted)
    return refuse(
      'external_identity_conflict',
      { project_id: match.id, handle: match.handle },
      'The external reference belongs to a deleted project.',
    )
  if (input.handle !== undefined && input.handle !== match.handle)
    return refuse('external_identity_conflict', { project_id: match.id, handle: match.handle })
  const adopted = { ...match, status_code: 200 }
  return { events: [], reply: adopted }
}

/** Creates or adopts a project. The reply to an adoption has `status_code: 200`. */
export function createProject(
  options: OrganizationOptions,
  state: OrganizationState,
  input: Input<Rows['project.create']>,
  cause: Cause,
): Decided<Project> {
  const faults = reservedTags(input.tags, options.brand)
  if (faults.length > 0) return refuseFields(...faults)
  const all = Object.values(state.projects)
  const match =
    input.external_ref === undefined
      ? undefined
      : all.find((project) => project.external_ref === input.external_ref)
  if (match)
    return input.if_exists === 'adopt'
      ? adopt(match, input)
      : refuse('already_exists', { field: 'external_ref', external_ref: input.external_ref })
  if (all.filter((project) => !project.deleted).length >= (options.max_projects ?? 10_000))
    return refuse('project_capacity_reached')
  const handle = input.handle ?? slug(input.name)
  if (handle === '')
    return refuseFields({
      field: 'handle',
      message: 'cannot be derived from this name; specify one',
      actual: input.name,
    })
  if (all.some((project) => project.handle === handle))
    return refuse('already_exists', { field: 'handle', handle })
  const project = newProject(mintProject(cause), handle, input, cause)
  return { events: [{ type: 'project.created', id: project.id, project }], reply: project }
}

/** Returns the record of a new project. */
export function newProject(
  id: string,
  handle: string,
  input: Pick<
    Input<Rows['project.create']>,
    | 'name'
    | 'description'
    | 'external_ref'
    | 'access_mode'
    | 'separate_approver'
    | 'email_notifications'
    | 'attachments'
    | 'tags'
  >,
  cause: Cause,
): Project {
  const now = timestamp(cause.at)
  return {
    id,
    name: input.name,
    handle,
    access_mode: input.access_mode ?? 'open',
    ...(input.separate_approver !== undefined && { separate_approver: input.separate_approver }),
    ...(input.email_notifications !== undefined && {
      email_notifications: input.email_notifications,
    }),
    ...(input.attachments !== undefined && { attachments: input.attachments }),
    ...(input.description && { description: input.description }),
    ...(input.external_ref !== undefined && { external_ref: input.external_ref }),
    ...(input.tags && Object.keys(input.tags).length > 0 && { tags: input.tags }),
    created_by: cause.principal.id,
    created_at: now,
    updated_at: now,
  }
}

const liveProject = (state: OrganizationState, id: string): Project | Refusal => {
  const project = getOwn(state.projects, id)
  return project && !project.deleted ? project : refuse('not_found')
}

/** Changes a project. Its external reference can be set only once. */
export function updateProject(
  { brand }: OrganizationOptions,
  state: OrganizationState,
  input: Input<Rows['project.update']>,
  { at }: Cause,
): Decided<Project> {
  const project = liveProject(state, input.project)
  if ('refused' in project) return project
  const faults = reservedTags(input.tags, brand)
  if (
    input.seed_existing_members &&
    !(project.access_mode === 'open' && input.access_mode === 'restricted')
  )
    faults.push({
      field: 'seed_existing_members',
      message: 'is allowed only for a change from open to restricted',
    })
  if (faults.length > 0) return refuseFields(...faults)
  const {
    name,
    description,
    external_ref,
    access_mode,
    separate_approver,
    email_notifications,
    attachments,
    tags,
  } = input
  if (external_ref !== undefined && external_ref !== project.external_ref) {
    if (project.external_ref !== undefined)
      return refuse(
        'conflict',
        { field: 'external_ref', external_ref: project.external_ref },
        'The external reference is set and cannot be changed.',
      )
    if (Object.values(state.projects).some((other) => other.external_ref === external_ref))
      return refuse('already_exists', { field: 'external_ref', external_ref })
  }
  const change = changeOf<Project>(
    project,
    {
      name,
      description,
      external_ref,
      access_mode,
      separate_approver,
      email_notifications,
      attachments,
      tags,
    },
    at,
  )
  if (!change) return { events: [], reply: project }
  return {
    events: [
      { type: 'project.updated', id: project.id, project: change.patch, changes: change.changes },
    ],
    reply: change.next,
  }
}

/** Deletes a project permanently. Its record is retained but hidden. */
export function deleteProject(
  state: OrganizationState,
  input: Input<Rows['project.delete']>,
  { at }: Cause,
): Decided<undefined> {
  const project = liveProject(state, input.project)
  if ('refused' in project) return project
  return {
    events: [{ type: 'project.deleted', id: project.id, name: project.name, at }],
    reply: undefined,
  }
}
