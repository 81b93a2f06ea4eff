/**
 * The resources of a project that can belong to a blueprint, and their bindings. Loops, tables,
 * channels and environments are separate actors and store their own bindings.
 */
import type { KnownResource } from '../../protocol/blueprints/compare.ts'
import type { ResourceTypeName } from '../../protocol/blueprints/resources.ts'
import {
  type BlueprintClaim,
  type BoundEvent,
  type Identity,
  refuseProtected,
} from '../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../protocol/blueprints/types.ts'
import type { Event } from '../../protocol/entry.ts'
import type { Refusal } from '../../protocol/errors.ts'
import type { Prefix } from '../../protocol/ids.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { OwnerQueries } from '../../protocol/queries/owners.ts'
import type { Cause, Decision } from '../actor.ts'
import {
  asResource,
  bindingArms,
  type Identified,
  type ManagedResource,
} from '../blueprints/managed.ts'
import { refuseCalled } from './loops.ts'
import { actionNamed, type ProjectState } from './state.ts'

type Input = Readonly<Record<string, unknown>>
const text = (value: unknown): string => String(value ?? '')
const idsIn = (records: readonly { readonly id: string }[] = []): string[] =>
  records.map(({ id }) => id)
/**
 * The functions that return a record by id, one per type of resource. The record of an agent
 * includes the ids of its toolkits and skills. The record of a workflow includes its latest spec.
 */
const recordOf = {
  action: ({ actions }, id) => getOwn(actions, id)?.action,
  toolkit: ({ toolkits }, id) => getOwn(toolkits, id),
  skill: ({ skills }, id) => getOwn(skills, id),
  agent: ({ agents, equipment }, id) => {
    const agent = getOwn(agents, id)
    const held = getOwn(equipment, id)
    return agent && { ...agent, toolkits: idsIn(held?.toolkits), skills: idsIn(held?.skills) }
  },
  role: ({ roles }, id) => getOwn(roles, id),
  webhook: ({ webhooks }, id) => getOwn(webhooks, id)?.webhook,
  workflow: ({ workflows }, id) => {
    const kept = getOwn(workflows, id)
    return kept && { ...kept.workflow, spec: kept.spec }
  },
} satisfies Readonly<Record<string, (state: ProjectState, id: string) => Identified | undefined>>
type ProjectType = keyof typeof recordOf
const projectTypes = Object.keys(recordOf) as ProjectType[]
const isProjectType = (type: ResourceTypeName): type is ProjectType => Object.hasOwn(recordOf, type)
const bindingOf = ({ managed }: ProjectState, id: string) => getOwn(managed, id)
/**
 * Returns the functions with which the project finds its resources of one type.
 * @param idIn returns the id of the resource that a command addresses; by default, `id`.
 */
const resource = (
  type: ProjectType & Prefix,
  idIn: (state: ProjectState, input: Input) => unknown = (_, { id }) => id,
): ManagedResource<ProjectState> => ({
  type,
  prefix: type,
  find: (state, input) => recordOf[type](state, text(idIn(state, input))),
  binding: bindingOf,
})
/** The types of resources whose records the project stores. */
export const projectResources = {
  action: resource(
    'action',
    (state, { action_name }) => actionNamed(state, String(action_name))?.action.id,
  ),
  toolkit: resource('toolkit'),
  skill: resource('skill'),
  agent: resource('agent'),
  role: resource('role'),
  webhook: resource('webhook', (_, { webhook_id }) => webhook_id),
  workflow: resource('workflow'),
} as const

const mapOf = {
  action: 'actions',
  toolkit: 'toolkits',
  skill: 'skills',
  agent: 'agents',
  role: 'roles',
  webhook: 'webhooks',
  workflow: 'workflows',
} as const satisfies { readonly [T in ProjectType]: keyof ProjectState }
const idsOf = (state: ProjectState, type: ProjectType): string[] => Object.keys(state[mapOf[type]])
const known = (state: ProjectState, type: ProjectType, id: string): KnownResource | null =>
  asResource(type, recordOf[type](state, id), bindingOf(state, id))

/** Returns the resources that have one of these ids or names. */
export function projectResourcesOf(
  state: ProjectState,
  { ids: wanted, named }: OwnerQueries['project']['resources']['input'],
): KnownResource[] {
  const found = new Map<string, KnownResource>()
  const add = (type: ProjectType, id: string): void => {
    const one = known(state, type, id)
    if (one) found.set(id, one)
  }
  for (const id of wanted) for (const type of projectTypes) add(type, id)
  const names = new Map<ProjectType, Set<string>>()
  for (const [type, name] of named)
    if (isProjectType(type)) names.set(type, (names.get(type) ?? new Set()).add(name))
  for (const [type, set] of names)
    for (const id of idsOf(state, type)) {
      const record = recordOf[type](state, id) as Readonly<Record<string, unknown>> | undefined
      if (set.has(text(record?.[resourceFacts[type].match]))) add(type, id)
    }
  return [...found.values()]
}
/** Returns the ids of all resources that the project stores and that a blueprint can describe. */
export const projectResourceIds = (state: ProjectState): string[] =>
  projectTypes.flatMap((type) => idsOf(state, type))

/** Handlers of the commands that change only a binding. */
export const projectBindingArms = bindingArms<ProjectState>(
  (state, type, id) => isProjectType(type) && recordOf[type](state, id) !== undefined,
  bindingOf,
)

/**
 * Refuses the deletion of a toolkit or a skill that is assigned to a protected agent of another
 * blueprint, because the deletion would also change that agent.
 * @param requester the blueprint that requests the deletion.
 */
function refusedByAgents(
  { equipment, managed }: ProjectState,
  id: string,
  requester: Identity | undefined,
): Refusal | undefined {
  for (const [agent, { toolkits, skills }] of Object.entries(equipment)) {
    if (![...toolkits, ...skills].some((held) => held.id === id)) continue
    const refused = refuseProtected(getOwn(managed, agent), requester)
    if (refused) return refused
  }
  return undefined
}
/**
 * Returns the first of these resources whose deletion is refused, with the refusal: a toolkit or a
 * skill because of a protected agent, an action because of loops that call it. Returns null if all
 * of them may be deleted.
 */
export const refusedDeletionOf: (
  state: ProjectState,
  input: OwnerQueries['project']['refused_deletion']['input'],
) => OwnerQueries['project']['refused_deletion']['reply'] = (
  state,
  { ids: wanted, requester, changed_loops },
) => {
  for (const id of wanted) {
    const action = getOwn(state.actions, id)?.action
    const refused = action
      ? refuseCalled(state, action.name, changed_loops)
      : refusedByAgents(state, id, requester)
    if (refused) return { id, refusal: refused }
  }
  return null
}
/** Wraps the deletion of a toolkit or a skill so that `refusedByAgents` can refuse it. */
export const unlessAssigned =
  <I extends { readonly id: string }, E extends Event, R>(
    arm: (state: ProjectState, input: I, cause: Cause) => Decision<E, R>,
  ) =>
  (state: ProjectState, input: I & BlueprintClaim, cause: Cause): Decision<E, R> =>
    refusedByAgents(state, input.id, input.blueprint?.binding) ?? arm(state, input, cause)

/** Reducers for the events of bindings. */
export const evolveBindings = {
  'blueprint.bound': (
    state: ProjectState,
    { binding }: Extract<BoundEvent, { type: 'blueprint.bound' }>,
  ): ProjectState => {
    state.managed[binding.resource_id] = binding
    return state
  },
  'blueprint.unbound': (
    state: ProjectState,
    { resource_id }: Extract<BoundEvent, { type: 'blueprint.unbound' }>,
  ): ProjectState => {
    delete state.managed[resource_id]
    return state
  },
}
