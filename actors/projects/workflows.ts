/**
 * Workflows of a project. Claims on their handles are in organization/handles.ts.
 *
 * Invariants: handles are unique in the project and, because of the claims, also in the
 * organization. A version never changes. Each request with a spec creates the next version, even
 * when the spec equals the previous spec.
 */

import { timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import { reservedTags } from '../../protocol/naming.ts'
import { patch } from '../../protocol/patch.ts'
import type { HoldEvent, ProjectCommands, Reserved } from '../../protocol/projects/configuration.ts'
import { takenHandle } from '../../protocol/workflows/handle.ts'
import type { Workflow, WorkflowEvent, workflows } from '../../protocol/workflows/rows.ts'
import type { Cause, Decision } from '../actor.ts'
import { changeOf } from '../configuration.ts'
import type { ProjectOptions, ProjectState } from './state.ts'

type Rows = typeof workflows
type Decided<R> = Decision<WorkflowEvent | HoldEvent, R>
type EventOf<T> = Extract<WorkflowEvent | HoldEvent, { readonly type: T }>

/**
 * Milliseconds for which the ids in `unused` are stored (one day). A creation under such an id,
 * which may arrive late, is refused.
 */
const KEEP_UNUSED_MS = 86_400_000

/**
 * Creates version 1 of a workflow under its reserved id and handle. Refuses if the reservation has
 * been released.
 */
export function createWorkflow(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['workflow.create']> & { reserved: Reserved },
  cause: Cause,
): Decided<Workflow> {
  const { id, handle } = input.reserved
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  if (getOwn(state.unused, id) !== undefined)
    return refuse(
      'service_unavailable',
      { reservation: 'expired' },
      'The reservation of the handle has expired; send the request again.',
    )
  if (Object.values(state.workflows).some(({ workflow }) => workflow.handle === handle))
    return takenHandle(handle)
  const now = timestamp(cause.at)
  const workflow: Workflow = {
    id,
    handle,
    name: input.name,
    published_as_tool: input.published_as_tool ?? false,
    latest_version: 1,
    ...(input.description && { description: input.description }),
    ...(input.tags && Object.keys(input.tags).length > 0 && { tags: input.tags }),
    created_by: cause.principal.id,
    created_at: now,
    updated_at: now,
  }
  return {
    events: [
      { type: 'workflow.created', id, workflow, spec: input.spec },
      { type: 'handle.held', id, organization: input.reserved.organization },
    ],
    reply: { ...workflow, spec: input.spec },
  }
}

/** Changes a workflow. A request with a spec adds the next version. */
export function updateWorkflow(
  { brand }: ProjectOptions,
  state: ProjectState,
  input: Input<Rows['workflow.update']>,
  { at }: Cause,
): Decided<Workflow> {
  const kept = getOwn(state.workflows, input.id)
  if (!kept) return refuse('not_found')
  const faults = reservedTags(input.tags, brand)
  if (faults.length > 0) return refuseFields(...faults)
  const { latest_version } = kept.workflow
  if (input.expected_version !== undefined && input.expected_version !== latest_version)
    return refuse(
      'conflict',
      { expected_version: input.expected_version, latest_version },
      `The latest version is ${latest_version}, not ${input.expected_version}; read it and try again.`,
    )
  const { name, description, published_as_tool, tags, spec } = input
  const change = changeOf<Workflow>(
    kept.workflow,
    {
      name,
      description,
      published_as_tool,
      tags,
      ...(spec && { latest_version: latest_version + 1 }),
    },
    at,
  )
  if (!change) return { events: [], reply: { ...kept.workflow, spec: kept.spec } }
  return {
    events: [
      {
        type: 'workflow.updated',
        id: input.id,
        workflow: change.patch,
        changes: change.changes,
        ...(spec && { spec }),
      },
    ],
    reply: { ...change.next, spec: spec ?? kept.spec },
  }
}

/**
 * Deletes a workflow with its versions. Its runs have their own copies of the spec and continue.
 */
export function deleteWorkflow(
  state: ProjectState,
  input: Input<Rows['workflow.delete']>,
): Decided<undefined> {
  const kept = getOwn(state.workflows, input.id)
  if (!kept) return refuse('not_found')
  const organization = getOwn(state.claims, input.id)
  return {
    events: [
      { type: 'workflow.deleted', id: input.id, name: kept.workflow.name },
      ...(organization === undefined
        ? []
        : [{ type: 'handle.freed', id: input.id, organization } as const]),
    ],
    reply: undefined,
  }
}

/**
 * Answers the organization's question about a claim. If the workflow does not exist, the claim is
 * released, and no workflow can be created under this id later.
 */
export const settleHandle = (
  state: ProjectState,
  { id, organization }: ProjectCommands['handle.settle']['input'],
): Decided<undefined> => ({
  events: getOwn(state.workflows, id)
    ? []
    : [{ type: 'handle.freed', id, organization, unused: true }],
  reply: undefined,
})

/** Reducers for the events of workflows and of the claims on their handles. */
export const evolveWorkflows = {
  'workflow.created': (
    state: ProjectState,
    { id, workflow, spec }: EventOf<'workflow.created'>,
  ): ProjectState => {
    state.workflows[id] = { workflow, spec }
    return state
  },
  'workflow.updated': (
    state: ProjectState,
    { id, workflow, spec }: EventOf<'workflow.updated'>,
  ): ProjectState => {
    const kept = getOwn(state.workflows, id)
    if (kept)
      state.workflows[id] = {
        ...kept,
        workflow: patch(kept.workflow, workflow),
        ...(spec && { spec }),
      }
    return state
  },
  'workflow.deleted': (state: ProjectState, { id }: { readonly id: string }): ProjectState => {
    delete state.workflows[id]
    return state
  },
  'handle.held': (
    state: ProjectState,
    { id, organization }: EventOf<'handle.held'>,
  ): ProjectState => {
    state.claims[id] = organization
    return state
  },
  'handle.freed': (
    state: ProjectState,
    { id, unused }: EventOf<'handle.freed'>,
    at: number,
  ): ProjectState => {
    delete state.claims[id]
    for (const [old, since] of Object.entries(state.unused))
      if (since < at - KEEP_UNUSED_MS) delete state.unused[old]
    if (unused) state.unused[id] = at
    return state
  },
}
