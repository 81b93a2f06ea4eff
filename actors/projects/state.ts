/**
 * The state of a project: its workflows with their latest specs, its keys, its principals with
 * their roles, and its other configuration. Deleted records are removed from the state. The journal
 * keeps their history.
 */

import type { Definition, ProjectDirectory } from '../../protocol/access/directory.ts'
import type { RoleAssignment } from '../../protocol/access/role-rows.ts'
import { type CustomRole, roleRecord } from '../../protocol/access/roles.ts'
import type { PrincipalWithoutRoles } from '../../protocol/access/rows.ts'
import type { SecretWithVersions } from '../../protocol/access/secret-rows.ts'
import type { ActionWithSecret } from '../../protocol/actions/rows.ts'
import type { AgentCapabilities } from '../../protocol/agents/capabilities.ts'
import type { MessagingBinding } from '../../protocol/agents/messaging-bindings.ts'
import type { Agent } from '../../protocol/agents/schema.ts'
import type { InternalBinding } from '../../protocol/blueprints/stored.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { RepositoryHostWithMaterial } from '../../protocol/repositories/rows.ts'
import type { Skill } from '../../protocol/skills/schema.ts'
import type { Toolkit } from '../../protocol/toolkits/schema.ts'
import type { WebhookWithSecret } from '../../protocol/webhooks/rows.ts'
import type { Workflow } from '../../protocol/workflows/rows.ts'
import type { Spec } from '../../protocol/workflows/spec.ts'
import { type AccessLimits, byHash, type KeyHolder, sketchOf } from '../configuration.ts'
import { principalRecord, rolesOf } from './access/rights.ts'
import type { KnownLoop } from './loops.ts'

/** A workflow without its spec, and the spec of its latest version. */
interface WorkflowWithSpec {
  readonly workflow: Workflow
  readonly spec: Spec
}
export interface ProjectState extends KeyHolder {
  workflows: Record<string, WorkflowWithSpec>
  principals: Record<string, PrincipalWithoutRoles>
  /** Custom roles. */
  roles: Record<string, CustomRole>
  /** Assignments of roles to principals, by id. No other record stores them. */
  assignments: Record<string, RoleAssignment>
  /** Id of the organization that holds the claim on a workflow's handle, by workflow id. */
  claims: Record<string, string>
  actions: Record<string, ActionWithSecret>
  webhooks: Record<string, WebhookWithSecret>
  /** Secrets by name. */
  secrets: Record<string, SecretWithVersions>
  /** Repository hosts by name. */
  repository_hosts: Record<string, RepositoryHostWithMaterial>
  /**
   * Ids under which workflows can no longer be created (H2 of protocol/projects/configuration.ts),
   * each with the time in Unix milliseconds at which it was added.
   */
  unused: Record<string, number>
  agents: Record<string, Agent>
  /** External references of deleted agents, by agent id. */
  retired: Record<string, string>
  toolkits: Record<string, Toolkit>
  skills: Record<string, Skill>
  /** Toolkits and skills of agents, by agent id. */
  equipment: Record<string, AgentCapabilities>
  bindings: Record<string, MessagingBinding>
  /** Bindings of resources to blueprints, by resource id. */
  managed: Record<string, InternalBinding>
  /** Loops by id. Deleted loops are kept for at least a day. */
  loops: Record<string, KnownLoop>
  /** Id of the organization, set when the organization has deleted the project. */
  ended?: string
  /** Id of the errand that removes the data of the deleted project (artifact-removal.ts). */
  removing?: string
  /** Principals that are being removed from channels, by the id of the job that removes them. */
  partings: Record<string, string>
}
export interface ProjectOptions extends AccessLimits {
  /** The configured brand. Its lower-case form is the prefix of reserved tags. */
  readonly brand: string
}

/** Returns the state of a project without any configuration. */
export const initialProject = (): ProjectState => ({
  workflows: {},
  keys: {},
  principals: {},
  roles: {},
  assignments: {},
  claims: {},
  unused: {},
  agents: {},
  retired: {},
  toolkits: {},
  skills: {},
  equipment: {},
  bindings: {},
  actions: {},
  webhooks: {},
  secrets: {},
  repository_hosts: {},
  managed: {},
  loops: {},
  partings: {},
})

/**
 * Returns the data of a project that gateways and executors hold in memory.
 * @param id id of the project, which its state does not contain.
 */
export function directoryOf(
  { keys, principals, roles, assignments, workflows, agents, actions }: ProjectState,
  { id }: { readonly id: string },
): ProjectDirectory {
  const held = new Map<string, string[]>()
  for (const { principal_id, role_id } of Object.values(assignments)) {
    const ids = held.get(principal_id)
    if (ids) ids.push(role_id)
    else held.set(principal_id, [role_id])
  }
  return {
    id,
    keys: byHash(keys),
    roles: { ...roles },
    assignments: Object.values(assignments),
    principals: Object.fromEntries(
      Object.values(principals).map((principal) => [
        principal.id,
        principalRecord(principal, held.get(principal.id) ?? []),
      ]),
    ),
    workflows: Object.fromEntries(
      Object.values(workflows).map(({ workflow }) => [
        workflow.id,
        {
          handle: workflow.handle,
          latest_version: workflow.latest_version,
          published_as_tool: workflow.published_as_tool,
        },
      ]),
    ),
    agents: Object.fromEntries(
      Object.values(agents).map(({ id, name, external_ref, status }) => [
        id,
        { name, status, ...(external_ref !== undefined && { external_ref }) },
      ]),
    ),
    actions: Object.fromEntries(
      Object.values(actions).map(({ action }) => [action.name, sketchOf(action)]),
    ),
  }
}

/** Returns the latest version of a workflow, or undefined if the workflow does not exist. */
export function definitionOf(
  { workflows }: ProjectState,
  { id }: { readonly id: string },
): Definition | undefined {
  const kept = getOwn(workflows, id)
  return kept && { id, version: kept.workflow.latest_version, spec: kept.spec }
}

/** Returns the action with this name, or undefined if the project has no such action. */
export const actionNamed = (
  { actions }: ProjectState,
  name: string,
): ActionWithSecret | undefined => Object.values(actions).find(({ action }) => action.name === name)

interface OfId {
  readonly id: string
}
/**
 * Returns, by name of the conditional command, the functions that read the record that the command
 * changes, in the form in which clients read it.
 */
export const recordsOf = ({ brand }: ProjectOptions) => ({
  'workflow.update': ({ workflows }: ProjectState, { id }: OfId) => {
    const kept = getOwn(workflows, id)
    return kept && { ...kept.workflow, spec: kept.spec }
  },
  'principal.update': principalShown,
  'user.update': principalShown,
  'role.update': (
    { roles }: ProjectState,
    { id, project }: OfId & { readonly project: string },
  ) => {
    const kept = getOwn(roles, id)
    return kept && roleRecord(kept, project, brand)
  },
  'agent.update': ({ agents }: ProjectState, { id }: OfId) => getOwn(agents, id),
  'toolkit.replace': ({ toolkits }: ProjectState, { id }: OfId) => getOwn(toolkits, id),
  'skill.replace': ({ skills }: ProjectState, { id }: OfId) => getOwn(skills, id),
  'action.update': (state: ProjectState, { action_name }: { readonly action_name: string }) =>
    actionNamed(state, action_name)?.action,
  'webhook.update': ({ webhooks }: ProjectState, { webhook_id }: { readonly webhook_id: string }) =>
    getOwn(webhooks, webhook_id)?.webhook,
  'repository_host.put': (
    { repository_hosts }: ProjectState,
    { host_name }: { readonly host_name: string },
  ) => getOwn(repository_hosts, host_name)?.host,
})
function principalShown(state: ProjectState, { id }: OfId) {
  const kept = getOwn(state.principals, id)
  return kept && principalRecord(kept, rolesOf(state, id))
}
