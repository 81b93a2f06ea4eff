/**
 * Checks the rules of a plan that also depend on resources outside of the blueprint: the maximum
 * numbers of resources, the uniqueness of the names of roles in the project and of the handles of
 * workflows and HTTP triggers in the organization, and the needs of other loops and of protected
 * agents of other blueprints.
 */
import { hasRoleName } from '../../protocol/access/roles.ts'
import type { PlannedChange } from '../../protocol/blueprints/plan.ts'
import type { Identity } from '../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../protocol/blueprints/types.ts'
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts'
import { isId } from '../../protocol/ids.ts'
import { refuseTakenHandle } from '../../protocol/loops/handles.ts'
import { httpHandle, type Trigger } from '../../protocol/loops/schema.ts'
import { limitedTypes, refuseBeyondLimit } from '../../protocol/projects/limits.ts'
import { takenHandle } from '../../protocol/workflows/handle.ts'
import type { Edge } from '../call.ts'
import { refuseForeignHandles } from '../commands/loops/reservations.ts'
import { handleOf } from '../commands/workflows/handle.ts'
import { locateRefusal } from './execute.ts'

/** Returns the refusal for the first resource that would exceed a maximum number per project. */
async function refusedNumbers(
  { world }: Edge,
  project: string,
  created: readonly PlannedChange[],
): Promise<Refusal | undefined> {
  const limited = created.filter(({ resource_type }) =>
    limitedTypes.some((type) => type === resource_type),
  )
  if (limited.length === 0) return undefined
  const ids = await world.ask({ project, kind: 'project', id: project }, 'resource_ids', {})
  if (isRefusal(ids)) return ids
  for (const type of limitedTypes) {
    // Deletions are executed last, so they free no capacity for creations.
    let count = ids.filter((id) => isId(id, type)).length
    for (const change of limited) {
      if (change.resource_type !== type) continue
      const refused = refuseBeyondLimit(type, count++)
      if (refused) return locateRefusal(change, refused)
    }
  }
  return undefined
}

/** Returns the refusal for the first role whose name is in use in another letter case. */
async function refusedRoleNames(
  { directory }: Edge,
  project: string,
  created: readonly PlannedChange[],
): Promise<Refusal | undefined> {
  const roles = created.filter(({ resource_type }) => resource_type === 'role')
  if (roles.length === 0) return undefined
  const known = await directory.project(project)
  if (isRefusal(known)) return known
  const used = new Set<string>()
  for (const change of roles) {
    const name = String(change.steps[0]?.body['name'])
    if (hasRoleName(known.roles, name) || used.has(name.toLowerCase()))
      return locateRefusal(change, refuse('already_exists', { field: 'name', name }))
    used.add(name.toLowerCase())
  }
  return undefined
}

/** Returns the refusal for the first workflow whose handle is in use. */
async function refusedHandles(
  { world, directory }: Edge,
  project: string,
  created: readonly PlannedChange[],
): Promise<Refusal | undefined> {
  const workflows = created.flatMap((change) => {
    const step = change.steps.find(({ row }) => row === resourceFacts.workflow.rows?.create)
    return change.resource_type === 'workflow' && step
      ? [{ change, handle: handleOf(world, step.body) }]
      : []
  })
  if (workflows.length === 0) return undefined
  const known = await directory.project(project)
  if (isRefusal(known)) return known
  const used = new Set(Object.values(known.workflows).map(({ handle }) => handle))
  const organization = world.organization()
  const holders = await world.ask(
    { project: organization, kind: 'organization', id: organization },
    'handle_projects',
    { handles: workflows.map(({ handle }) => handle) },
  )
  if (isRefusal(holders)) return holders
  for (const [index, { change, handle }] of workflows.entries()) {
    const holder = holders[index] ?? project
    if (used.has(handle) || holder !== project) return locateRefusal(change, takenHandle(handle))
    used.add(handle)
  }
  return undefined
}

/** Returns the triggers that a change of a loop sets; undefined if it sets none. */
function triggersOf({ resource_type, steps }: PlannedChange): readonly Trigger[] | undefined {
  const { rows } = resourceFacts.loop
  const step = steps.find(({ row }) => row === rows?.create || row === rows?.change)
  return resource_type === 'loop'
    ? (step?.body['triggers'] as readonly Trigger[] | undefined)
    : undefined
}
/** Returns the refusal for the first HTTP trigger whose handle another loop has or gets. */
async function refusedTriggerHandles(
  edge: Edge,
  changes: readonly PlannedChange[],
): Promise<Refusal | undefined> {
  const saved = changes.flatMap((change) => {
    const triggers = triggersOf(change)
    return triggers ? [{ change, triggers }] : []
  })
  const releases = (loop_id: string, handle: string) =>
    saved.some(
      ({ change, triggers }) =>
        change.known?.id === loop_id && !triggers.some((one) => httpHandle(one) === handle),
    )
  const used = new Set<string>()
  for (const { change, triggers } of saved) {
    const refused = await refuseForeignHandles(edge, change.known?.id, triggers, releases)
    if (refused) return locateRefusal(change, refused)
    const handles = triggers.flatMap((trigger) => httpHandle(trigger) ?? [])
    const taken = handles.find((handle) => used.has(handle))
    if (taken !== undefined) return locateRefusal(change, refuseTakenHandle(taken))
    for (const handle of handles) used.add(handle)
  }
  return undefined
}

/** Whether a change deletes a loop, or may stop its runs from calling an action. */
const releasesActions = ({ resource_type, action, steps }: PlannedChange): boolean =>
  resource_type === 'loop' &&
  (action === 'deleted' ||
    steps.some(({ body }) =>
      ['steps', 'cleanup', 'repositories', 'status'].some((name) => Object.hasOwn(body, name)),
    ))

/**
 * Returns the refusal for the first toolkit or skill that the plan would delete although a
 * protected agent needs it, or for the first action that loops outside of the plan call.
 */
async function refusedDeletions(
  { world }: Edge,
  project: string,
  changes: readonly PlannedChange[],
  requester: Identity,
): Promise<Refusal | undefined> {
  const deleted = changes.filter(
    ({ action, resource_type }) =>
      action === 'deleted' && ['action', 'toolkit', 'skill'].includes(resource_type),
  )
  const ids = deleted.flatMap(({ resource_id }) => resource_id ?? [])
  if (ids.length === 0) return undefined
  const found = await world.ask({ project, kind: 'project', id: project }, 'refused_deletion', {
    ids,
    requester,
    changed_loops: changes.flatMap((change) =>
      releasesActions(change) && change.known ? [change.known.id] : [],
    ),
  })
  if (found === null || isRefusal(found)) return found ?? undefined
  const change = deleted.find(({ resource_id }) => resource_id === found.id)
  return change && locateRefusal(change, found.refusal)
}

/** Runs all checks of this file. Returns the first refusal, or undefined. */
export async function refuseByCapacity(
  edge: Edge,
  project: string,
  changes: readonly PlannedChange[],
  requester: Identity,
): Promise<Refusal | undefined> {
  const created = changes.filter(({ action }) => action === 'created')
  return (
    (await refusedNumbers(edge, project, created)) ??
    (await refusedRoleNames(edge, project, created)) ??
    (await refusedHandles(edge, project, created)) ??
    (await refusedTriggerHandles(edge, changes)) ??
    (await refusedDeletions(edge, project, changes, requester))
  )
}
