/**
 * The project actor: the single writer of a project's workflows, keys, principals, roles, agents,
 * toolkits, skills, bindings, actions, webhooks, secrets and repository hosts. It also tracks the
 * loops of the project. This file contains the actor's tables. The decisions are in the other files
 * of this folder.
 */
import type { RoleEvent } from '../../protocol/access/role-rows.ts'
import type { Holds, KeyEvent, KeyMaterial, PrincipalEvent } from '../../protocol/access/rows.ts'
import type { SecretEvent, SecretMaterial } from '../../protocol/access/secret-rows.ts'
import type { ActionEvent, NewSecret } from '../../protocol/actions/rows.ts'
import type { AgentCapabilitiesEvent } from '../../protocol/agents/capabilities.ts'
import type { BindingEvent } from '../../protocol/agents/messaging-bindings.ts'
import type { AgentEvent } from '../../protocol/agents/schema.ts'
import type { Api } from '../../protocol/api.ts'
import type { ArtifactRemovalEvent } from '../../protocol/artifacts/events.ts'
import type {
  BindingCommands,
  BlueprintClaim,
  BoundEvent,
} from '../../protocol/blueprints/stored.ts'
import type { LoopsEvent } from '../../protocol/loops/standing.ts'
import type {
  HoldEvent,
  PartingEvent,
  ProjectCommands,
  Reserved,
} from '../../protocol/projects/configuration.ts'
import type { RepositoryHostEvent, SealedHost } from '../../protocol/repositories/rows.ts'
import type { SkillBody, SkillEvent } from '../../protocol/skills/schema.ts'
import type { ToolkitEvent } from '../../protocol/toolkits/schema.ts'
import type { WebhookEvent } from '../../protocol/webhooks/rows.ts'
import type { WorkflowEvent } from '../../protocol/workflows/rows.ts'
import type { Actor, Cause } from '../actor.ts'
import { managed } from '../blueprints/managed.ts'
import { evolveKeys, evolveRecord, keysLastUsed, returningSecret } from '../configuration.ts'
import { forgetPreferences } from '../preferences/forget.ts'
import { signInPerson } from './access/identities.ts'
import { createKey, revokeKey } from './access/keys.ts'
import { evolvePartings, parting, partingOf, partingSettled } from './access/partings.ts'
import { createPrincipal, deletePrincipal, updatePrincipal } from './access/principals.ts'
import { reachOf } from './access/reach.ts'
import { assignRole, createRole, deleteRole, unassignRole, updateRole } from './access/roles.ts'
import { unknownTargets } from './access/targets.ts'
import {
  createOwnToken,
  createToken,
  createUser,
  deleteUser,
  revokeOwnToken,
  revokeToken,
  type TokenLimit,
  updateUser,
} from './access/users.ts'
import {
  actionOf,
  createAction,
  deleteAction,
  evolveActions,
  rotateSecret,
  updateAction,
} from './actions.ts'
import {
  assignSkills,
  assignToolkits,
  equippedOf,
  evolveCapabilities,
  type Held,
  removeCapability,
} from './agent-capabilities.ts'
import { createAgent, type Domain, deleteAgent, openInbox, updateAgent } from './agents.ts'
import { evolveRemoval, isRemoval, removalSettled, removingArtifacts } from './artifact-removal.ts'
import { bindingsOf, deleteBinding, setBinding } from './bindings.ts'
import { endProject, evolveLoops, noteLoop } from './loops.ts'
import {
  evolveBindings,
  projectBindingArms,
  projectResourceIds,
  projectResources,
  projectResourcesOf,
  refusedDeletionOf,
  unlessAssigned,
} from './managed.ts'
import { deleteHost, evolveHosts, hostList, hostOf, putHost } from './repository-hosts.ts'
import { deleteSecret, evolveSecrets, putSecret, secretList, secretOf } from './secrets.ts'
import { createSkill, deleteSkill, replaceSkill } from './skills.ts'
import {
  definitionOf,
  directoryOf,
  initialProject,
  type ProjectOptions,
  type ProjectState,
  recordsOf,
} from './state.ts'
import { createToolkit, deleteToolkit, replaceToolkit } from './toolkits.ts'
import {
  createWebhook,
  deleteWebhook,
  evolveWebhooks,
  pingWebhook,
  rotateWebhookSecret,
  updateWebhook,
  webhookOf,
} from './webhooks.ts'
import {
  createWorkflow,
  deleteWorkflow,
  evolveWorkflows,
  settleHandle,
  updateWorkflow,
} from './workflows.ts'

type ProjectEvent =
  | WorkflowEvent
  | KeyEvent
  | PrincipalEvent
  | RoleEvent
  | HoldEvent
  | AgentEvent
  | ToolkitEvent
  | SkillEvent
  | AgentCapabilitiesEvent
  | BindingEvent
  | ActionEvent
  | WebhookEvent
  | SecretEvent
  | RepositoryHostEvent
  | LoopsEvent
  | PartingEvent
  | ArtifactRemovalEvent
  | BoundEvent
/** The rows that create, change or delete a resource that can belong to a blueprint. */
type Managed =
  | `${'workflow' | 'role' | 'agent' | 'action' | 'webhook'}.${'create' | 'update' | 'delete'}`
  | `${'toolkit' | 'skill'}.${'create' | 'replace' | 'delete'}`
  | 'agent.assign_toolkits'
  | 'agent.assign_skills'
/** Data that the gateway adds to the input of rows, by row name. */
type Extra = {
  readonly [N in
    | 'principal.create'
    | 'principal.update'
    | 'user.create'
    | 'user.update'
    | 'role.create'
    | 'role.update'
    | 'assignment.create']: Holds
} & {
  'key.create': KeyMaterial & Holds
  'token.create': KeyMaterial & Holds
  'me.create_token': KeyMaterial & Holds & TokenLimit
  'workflow.create': { readonly reserved: Reserved }
  'skill.import': { readonly skill: SkillBody }
  'agent.assign_skills': Held
  'agent.inbox': Domain
  'action.create': NewSecret
  'action.rotate_secret': NewSecret
  'webhook.create': NewSecret
  'webhook.rotate_secret': NewSecret
  'secret.put': { readonly material: SecretMaterial; readonly names: readonly string[] }
  'repository_host.put': SealedHost
} & { readonly [N in Managed]: BlueprintClaim }

const [toolkit, skill, binding] = [
  evolveRecord('toolkits', 'toolkit'),
  evolveRecord('skills', 'skill'),
  evolveRecord('bindings', 'binding'),
]
const [principal, role, assignment, agent] = [
  evolveRecord('principals', 'principal'),
  evolveRecord('roles', 'role'),
  evolveRecord('assignments', 'assignment'),
  evolveRecord('agents', 'agent'),
]
function unassign(state: ProjectState, of: 'principal_id' | 'role_id', id: string): ProjectState {
  for (const one of Object.values(state.assignments))
    if (one[of] === id) delete state.assignments[one.id]
  return state
}

/** Creates the project actor. */
export function projectActor(
  options: ProjectOptions,
): Actor<ProjectState, ProjectEvent, Api, 'project', ProjectCommands & BindingCommands, Extra> {
  const bound =
    <I, D>(decide: (options: ProjectOptions, state: ProjectState, input: I, cause: Cause) => D) =>
    (state: ProjectState, input: I, cause: Cause): D =>
      decide(options, state, input, cause)
  const skills = { ...options, source: 'project' } as const
  return {
    kind: 'project',
    initial: initialProject,
    decide: {
      'workflow.create': managed(projectResources.workflow, 'create', bound(createWorkflow)),
      'workflow.update': managed(projectResources.workflow, 'change', bound(updateWorkflow)),
      'workflow.delete': managed(projectResources.workflow, 'delete', deleteWorkflow),
      'key.create': bound(createKey),
      'key.revoke': revokeKey,
      'principal.create': bound(createPrincipal),
      'principal.update': parting(bound(updatePrincipal)),
      'principal.delete': parting(deletePrincipal),
      'user.create': bound(createUser),
      'user.update': parting(bound(updateUser)),
      'user.delete': parting(deleteUser),
      'token.create': bound(createToken),
      'token.revoke': revokeToken,
      'me.create_token': bound(createOwnToken),
      'me.revoke_token': revokeOwnToken,
      'role.create': managed(projectResources.role, 'create', bound(createRole)),
      'role.update': managed(projectResources.role, 'change', bound(updateRole)),
      'role.delete': managed(projectResources.role, 'delete', deleteRole),
      'assignment.create': bound(assignRole),
      'assignment.delete': unassignRole,
      'person.sign_in': (state, input, cause) => signInPerson(options, state, input, cause),
      'key.touch': keysLastUsed,
      'handle.settle': settleHandle,
      'agent.create': managed(projectResources.agent, 'create', bound(createAgent)),
      'agent.update': managed(projectResources.agent, 'change', bound(updateAgent)),
      'agent.delete': managed(projectResources.agent, 'delete', parting(deleteAgent)),
      'agent.inbox': openInbox,
      'agent.set_binding': setBinding,
      'agent.delete_binding': deleteBinding,
      'agent.assign_toolkits': managed(projectResources.agent, 'change', assignToolkits),
      'agent.assign_skills': managed(projectResources.agent, 'change', assignSkills),
      'toolkit.create': managed(projectResources.toolkit, 'create', bound(createToolkit)),
      'toolkit.replace': managed(projectResources.toolkit, 'change', bound(replaceToolkit)),
      'toolkit.delete': managed(projectResources.toolkit, 'delete', unlessAssigned(deleteToolkit)),
      'skill.create': managed(projectResources.skill, 'create', (state, input: SkillBody, cause) =>
        createSkill(skills, state, input, cause),
      ),
      'skill.import': (state, { skill }, cause) => createSkill(skills, state, skill, cause),
      'skill.replace': managed(
        projectResources.skill,
        'change',
        (state, input: SkillBody & { id: string }, cause) =>
          replaceSkill(skills, state, input, cause),
      ),
      'skill.delete': managed(
        projectResources.skill,
        'delete',
        unlessAssigned((state, { id }: { readonly id: string }) => deleteSkill(state, id)),
      ),
      'action.create': managed(
        projectResources.action,
        'create',
        returningSecret(bound(createAction)),
      ),
      'action.update': managed(projectResources.action, 'change', updateAction),
      'action.delete': managed(projectResources.action, 'delete', deleteAction),
      'action.rotate_secret': returningSecret(bound(rotateSecret)),
      'webhook.create': managed(
        projectResources.webhook,
        'create',
        returningSecret(bound(createWebhook)),
      ),
      'webhook.update': managed(projectResources.webhook, 'change', bound(updateWebhook)),
      'webhook.delete': managed(projectResources.webhook, 'delete', deleteWebhook),
      'webhook.rotate_secret': returningSecret(bound(rotateWebhookSecret)),
      'webhook.ping': pingWebhook,
      'secret.put': bound(putSecret),
      'secret.delete': deleteSecret,
      'repository_host.put': putHost,
      'repository_host.delete': deleteHost,
      'loop.note': noteLoop,
      'project.end': removingArtifacts(endProject),
      ...projectBindingArms,
      'job.settled': (state, input, cause) =>
        isRemoval(state, input.job_id)
          ? removalSettled(input, cause)
          : partingSettled(state, input, cause),
    },
    records: recordsOf(options),
    evolve: {
      ...evolveWorkflows,
      ...evolveKeys,
      'principal.created': principal.created,
      'principal.updated': principal.updated,
      'principal.deleted': (state, { id }) =>
        principal.deleted(unassign(state, 'principal_id', id), { id }),
      'role.created': role.created,
      'role.updated': role.updated,
      'role.deleted': (state, { id }) => role.deleted(unassign(state, 'role_id', id), { id }),
      'assignment.created': assignment.created,
      'assignment.deleted': assignment.deleted,
      'agent.created': agent.created,
      'agent.updated': agent.updated,
      'agent.deleted': (state, { id, external_ref }) => {
        if (external_ref !== undefined) state.retired[id] = external_ref
        delete state.equipment[id]
        for (const binding of Object.values(state.bindings))
          if (binding.agent_id === id) delete state.bindings[binding.id]
        return agent.deleted(state, { id })
      },
      'toolkit.created': toolkit.created,
      'toolkit.updated': toolkit.updated,
      'toolkit.deleted': (state, { id }) =>
        toolkit.deleted(removeCapability(state, 'toolkits', id), { id }),
      'skill.created': skill.created,
      'skill.updated': skill.updated,
      'skill.deleted': (state, { id }) =>
        skill.deleted(removeCapability(state, 'skills', id), { id }),
      ...evolveCapabilities,
      'binding.created': binding.created,
      'binding.updated': binding.created,
      'binding.deleted': binding.deleted,
      ...evolveActions,
      ...evolveWebhooks,
      ...evolveSecrets,
      ...evolveHosts,
      ...evolveLoops,
      ...evolvePartings,
      ...evolveRemoval,
      ...evolveBindings,
    },
    react: {
      'project.ended': ({ organization, loops, next }, { id }) => [
        ...loops.map((loop) => ({
          tell: {
            to: { kind: 'loop' as const, id: loop },
            name: 'loop.end',
            input: { organization },
          },
        })),
        ...(next === undefined
          ? []
          : [
              {
                tell: {
                  to: { kind: 'project' as const, id },
                  name: 'project.end',
                  input: { organization, after: next },
                },
              },
            ]),
      ],
      'principal.deleted': ({ id }, self) => forgetPreferences(self.id, id),
      'agent.deleted': ({ id }) => [
        { tell: { to: { kind: 'memory', id }, name: 'memory.clear', input: {} } },
      ],
      'handle.freed': ({ id, organization }) => [
        {
          tell: {
            to: { kind: 'organization', id: organization, project: organization },
            name: 'handle.release',
            input: { id },
          },
        },
      ],
    },
    ask: {
      directory: directoryOf,
      definition: definitionOf,
      reach: reachOf,
      unknown_targets: unknownTargets,
      equipment: equippedOf,
      bindings: bindingsOf,
      action: actionOf,
      webhook: webhookOf,
      secret: secretOf,
      secrets: secretList,
      repository_host: hostOf,
      repository_hosts: hostList,
      resources: projectResourcesOf,
      resource_ids: projectResourceIds,
      refused_deletion: refusedDeletionOf,
      job_spec: (state, input: { readonly job_id: string }) =>
        isRemoval(state, input.job_id) ? { errand: 'remove_artifacts' } : partingOf(state, input),
    },
    // Snapshots of older releases lack newer fields, which get their initial values.
    recover: (state) => ({ ...initialProject(), ...state }),
  }
}
