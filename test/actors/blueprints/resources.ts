/**
 * For every type of resource: the actor that stores it, and the commands that create, change and
 * delete it.
 */
import { newEnvironment } from '../../../actors/environments/creation.ts'
import { actorKinds } from '../../../actors/kinds.ts'
import type { KnownResource } from '../../../protocol/blueprints/compare.ts'
import type { ResourceTypeName } from '../../../protocol/blueprints/resources.ts'
import type { BlueprintClaim, InternalBinding } from '../../../protocol/blueprints/stored.ts'
import { resourceFacts } from '../../../protocol/blueprints/types.ts'
import { timestamp } from '../../../protocol/common.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { given, type Outcome, type Scene, START } from '../../support/given.ts'

const kinds = actorKinds({ brand: 'Service', timing: defaultTiming })
type Input = Readonly<Record<string, unknown>>

/** The commands of one type, for a resource with the id `x_1`. */
export interface Commands {
  readonly create: readonly [name: string, input: Input]
  readonly changes: readonly (readonly [name: string, input: Input])[]
  readonly remove: readonly [name: string, input: Input]
}
const now = timestamp(START)
const id = 'x_1'
const schema = {
  columns: [{ name: 'id', type: 'string', required: true }],
  identity_column: 'id',
}
const spec = { steps: [{ kind: 'sleep', config: { duration: '1s' } }] }

/** Secrets have no commands, because blueprints only refer to them. */
export const commandsOf: Readonly<Partial<Record<ResourceTypeName, Commands>>> = {
  table: {
    create: ['table.create', { name: 'tab', schema, claim: { holder: 'h', claim: 1 } }],
    changes: [['table.update', { id, description: 'new' }]],
    remove: ['table.delete', { id }],
  },
  action: {
    create: ['action.create', { name: 'act', endpoint_kind: 'worker' }],
    changes: [['action.update', { action_name: 'act', description: 'new' }]],
    remove: ['action.delete', { action_name: 'act' }],
  },
  skill: {
    create: ['skill.create', { name: 'n', instructions: '' }],
    changes: [['skill.replace', { id, name: 'n', instructions: 'new' }]],
    remove: ['skill.delete', { id }],
  },
  role: {
    create: ['role.create', { name: 'n', permissions: [], holds: [] }],
    changes: [['role.update', { id, description: 'new', holds: [] }]],
    remove: ['role.delete', { id }],
  },
  webhook: {
    create: ['webhook.create', { name: 'n', url: '', sealed: 's' }],
    changes: [['webhook.update', { webhook_id: id, enabled: false }]],
    remove: ['webhook.delete', { webhook_id: id }],
  },
  environment: {
    create: [
      'environment.open',
      {
        environment: newEnvironment(
          id,
          { provider: 'local', name: 'n', mode: 'manual' } as never,
          START,
        ),
        origin: { holder: 'h' },
      },
    ],
    changes: [['environment.update', { environment_id: id, tags: { a: '1' } }]],
    remove: ['environment.delete', { environment_id: id }],
  },
  toolkit: {
    create: ['toolkit.create', { name: 'n' }],
    changes: [['toolkit.replace', { id, name: 'n', description: 'new' }]],
    remove: ['toolkit.delete', { id }],
  },
  agent: {
    create: ['agent.create', { name: 'n' }],
    changes: [
      ['agent.update', { id, description: 'new' }],
      ['agent.assign_toolkits', { id, toolkit_ids: ['kit_own'] }],
      ['agent.assign_skills', { id, skill_ids: ['skill_own'], held: [] }],
    ],
    remove: ['agent.delete', { id }],
  },
  workflow: {
    create: [
      'workflow.create',
      { name: 'n', spec, reserved: { id, handle: 'h', organization: 'org_1' } },
    ],
    changes: [['workflow.update', { id, description: 'new' }]],
    remove: ['workflow.delete', { id }],
  },
  loop: {
    create: ['loop.create', { name: 'n', status: 'draft', organization: 'org_1' }],
    changes: [['loop.update', { id, description: 'new', organization: 'org_1' }]],
    remove: ['loop.delete', { id, organization: 'org_1' }],
  },
  channel: {
    create: [
      'channel.open',
      {
        channel: {
          id,
          name: 'n',
          display_name: 'n',
          kind: 'channel',
          private: false,
          created_by: 'user_1',
          created_at: now,
          updated_at: now,
        },
        members: [],
        holder: 'h',
      },
    ],
    changes: [['channel.update', { id, topic: 'new', project_admin: true }]],
    remove: ['channel.delete', { id, project_admin: true }],
  },
}
export const managedTypes = Object.keys(commandsOf) as ResourceTypeName[]

export const desk = { namespace: 'ops', blueprint_key: 'desk' }
/** Returns the blueprint claim of a command, with a binding to the blueprint `desk`. */
export const claim = (
  type: ResourceTypeName,
  more: Partial<InternalBinding> = {},
  expected?: string,
): Required<BlueprintClaim> => ({
  blueprint: {
    binding: {
      resource_type: type,
      key: 'k',
      resource_id: id,
      ...desk,
      protected: false,
      delete_on_destroy: true,
      ...more,
    },
    ...(expected !== undefined && { expected_updated_at: expected }),
  },
})

/**
 * Creates the actor that stores resources of this type. If this actor is a project, it also
 * contains a toolkit and a skill, which tests assign to agents.
 */
export function holder(type: ResourceTypeName): Scene<unknown> {
  const kind = resourceFacts[type].owner
  const scene: Scene<unknown> = given(kinds[kind])
  if (kind !== 'project') return scene
  const own = (of: 'toolkit' | 'skill', resource_id: string) =>
    claim(of, { resource_id, key: resource_id, blueprint_key: 'other' })
  return scene
    .when('toolkit.create', { name: 'own', ...own('toolkit', 'kit_own') })
    .when('skill.create', { name: 'own', instructions: '', ...own('skill', 'skill_own') })
}
const self = (type: ResourceTypeName) => {
  const kind = resourceFacts[type].owner
  return { self: { project: 'prj_1', kind, id: kind === 'project' ? 'prj_1' : id } }
}
export const send = (
  scene: Scene<unknown>,
  type: ResourceTypeName,
  [name, input]: readonly [string, Input],
  more: object = {},
  at = scene.at,
): Outcome<unknown> => scene.when(name, { ...input, ...more }, { ...self(type), at })

/** Creates a resource that is bound to the blueprint. */
export const created = (
  type: ResourceTypeName,
  more: Partial<InternalBinding> = {},
): Outcome<unknown> => {
  const commands = commandsOf[type]
  if (!commands) throw new Error(type)
  const scene = send(holder(type), type, commands.create, claim(type, more))
  if (scene.refused) throw new Error(`${type}: ${JSON.stringify(scene.refused)}`)
  return scene
}
/**
 * Returns the resource with the id `x_1`, as blueprints compare it, or undefined if it does not
 * exist.
 */
export const known = (scene: Scene<unknown>, type: ResourceTypeName): KnownResource | undefined =>
  resourceFacts[type].owner === 'project'
    ? (scene.ask('resources', { ids: [id], named: [] }) as KnownResource[])[0]
    : ((scene.ask('resource') as KnownResource | null) ?? undefined)
