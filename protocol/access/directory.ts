/**
 * What the edge knows of configuration to admit a request: read from the owners of the organization and project actors,
 * kept by every gateway, and forgotten by all of them before a change of it is answered.
 */
import type { AgentEntry } from '../agents/schema.ts'
import type { ApiKey, PrincipalRecord } from './rows.ts'
import type { Project } from '../projects/rows.ts'
import type { RoleAssignment } from './role-rows.ts'
import type { Principal } from '../entry.ts'
import { getOwn } from '../lookup.ts'
import type { KeptRole } from './roles.ts'
import type { Spec } from '../workflows/spec.ts'

export interface OrganizationDirectory {
  readonly id: string
  /** Organization keys that are not revoked, by SHA-256 of the key (hex). */
  readonly keys: Readonly<Record<string, ApiKey>>
  /** Projects by id; deleted ones stay, so that history remains readable. */
  readonly projects: Readonly<Record<string, Project & { readonly deleted?: true }>>
  /** Project ids by handle, without deleted ones. */
  readonly handles: Readonly<Record<string, string>>
  /** Names of the organization's skills by id. */
  readonly skills: Readonly<Record<string, string>>
  /** Its actions by name; absent from an owner of an older release. */
  readonly actions?: Readonly<Record<string, ActionSketch>>
}
export interface ProjectDirectory {
  readonly id: string
  /** Keys and personal tokens that are not revoked, by SHA-256 of their text (hex). */
  readonly keys: Readonly<Record<string, ApiKey>>
  /** With the ids of their roles. */
  readonly principals: Readonly<Record<string, PrincipalRecord>>
  /** Custom roles. */
  readonly roles: Readonly<Record<string, KeptRole>>
  /** Oldest first. */
  readonly assignments: readonly RoleAssignment[]
  /** Workflows by id; the spec of a version is asked for when a run starts. */
  readonly workflows: Readonly<
    Record<
      string,
      {
        readonly handle: string
        readonly latest_version: number
        /** Absent from an owner of an older release. */
        readonly published_as_tool?: boolean
      }
    >
  >
  /** Agents by id; what a turn of one needs is asked for when it begins. */
  readonly agents: Readonly<Record<string, AgentEntry>>
  /** Its actions by name; absent from an owner of an older release. */
  readonly actions?: Readonly<Record<string, ActionSketch>>
}
/** Leases of a job that may be lost when its action is repeatable and its step says nothing. */
export const REPEATABLE_LOSSES = 3
/** What must be known of an action to say who does it; `repeatable`: it may safely be called again when nobody knows whether it was. */
export interface ActionSketch {
  readonly kind: 'http' | 'worker'
  readonly repeatable?: true
}
/** The action of this name: that of the project, else that of the organization. Undefined: nobody defined one. */
export const actionNamed = (
  home: ProjectDirectory,
  organization: OrganizationDirectory,
  name: string,
): ActionSketch | undefined =>
  getOwn(home.actions ?? {}, name) ?? getOwn(organization.actions ?? {}, name)
/** A principal as others refer to it: a member of a channel, a target of an interaction, an owner. */
export interface Party {
  readonly id: string
  readonly kind: PrincipalRecord['kind']
  readonly name: string
}
/** An active person with an address, and the target that means this person: the own id, or a role. */
export interface Reached {
  readonly target: string
  readonly id: string
  readonly name: string
  readonly email: string
}
/**
 * The active principal of a project with this id: a person, a service or an agent of the project, or who an organization
 * key signs in as. Undefined for everybody else: unknown, disabled and deleted ones, and those of other projects.
 */
export function activePrincipal(
  { principals }: ProjectDirectory,
  { keys }: OrganizationDirectory,
  id: string,
): Party | undefined {
  const record = getOwn(principals, id)
  if (record)
    return record.state === 'active' ? { id, kind: record.kind, name: record.name } : undefined
  const key = Object.values(keys).find(({ principal_id }) => principal_id === id)
  return key && { id, kind: 'service', name: key.name }
}
/** As whom a party acts. */
export const principalOf = ({ id, kind, name }: Party): Principal => ({
  type: kind === 'service' ? 'service_account' : kind,
  id,
  name,
})
/** The latest version of a workflow: what `project` answers to the read `definition`. */
export interface Definition {
  readonly id: string
  readonly version: number
  readonly spec: Spec
}
/** What the edge adds to the rows that recover a run. */
export interface RecoverExtra {
  /** The version that the loop of the run has now; absent for runs of no loop. */
  readonly current_version?: number
}
/** What the edge adds to the rows that start a run. */
export interface StartExtra {
  /** Absent for an inline spec. */
  readonly definition?: Definition
  /** Workflows that `loop` steps name, theirs included, by the name that the steps use. */
  readonly definitions?: Readonly<Record<string, Definition>>
}
