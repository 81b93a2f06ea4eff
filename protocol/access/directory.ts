/**
 * The configuration used to admit requests and jobs. Gateways and executors read it from the actors
 * of the organization and the project, and cache it (`gateway/directory.ts`). A change is
 * acknowledged only after every live gateway and executor has dropped its cached copy.
 *
 * This file defines the cached shapes, lookups in them, and the cached data that the gateway adds
 * to commands.
 */
import type { AgentEntry } from '../agents/schema.ts'
import { parseTimestamp } from '../common.ts'
import type { Principal } from '../entry.ts'
import type { Refusal } from '../errors.ts'
import type { Chain } from '../events/sources.ts'
import type { CallerRoles } from '../interactions/rows.ts'
import { getOwn } from '../lookup.ts'
import type { Project } from '../projects/rows.ts'
import type { ResolverConfiguration } from '../resolver/schema.ts'
import type { Spec } from '../workflows/spec.ts'
import type { RoleAssignment } from './role-rows.ts'
import type { CustomRole } from './roles.ts'
import type { ApiKey, PrincipalRecord } from './rows.ts'

export interface OrganizationDirectory {
  readonly id: string
  /** Organization keys that are not revoked, by SHA-256 of the key (hex). */
  readonly keys: Readonly<Record<string, ApiKey>>
  /** Projects by id. Deleted projects are retained, so that history remains readable. */
  readonly projects: Readonly<Record<string, Project & { readonly deleted?: true }>>
  /** Project ids by handle, excluding deleted projects. */
  readonly handles: Readonly<Record<string, string>>
  /** Names of the organization's skills by id. */
  readonly skills: Readonly<Record<string, string>>
  /** The organization's actions by name; absent when the actor's owner runs an older release. */
  readonly actions?: Readonly<Record<string, ActionSketch>>
  /**
   * The configuration of the definition resolver, with its sealed token; absent if none is
   * configured.
   */
  readonly resolver?: ResolverConfiguration
  /** Origins to which an OAuth flow may return; absent if none are configured. */
  readonly oauth_origins?: readonly string[]
}
export interface ProjectDirectory {
  readonly id: string
  /** Keys and personal tokens that are not revoked, by SHA-256 of their text (hex). */
  readonly keys: Readonly<Record<string, ApiKey>>
  /** Principals by id, with the ids of their roles. */
  readonly principals: Readonly<Record<string, PrincipalRecord>>
  /** Custom roles by id. */
  readonly roles: Readonly<Record<string, CustomRole>>
  /** Role assignments, oldest first. */
  readonly assignments: readonly RoleAssignment[]
  /** Workflows by id. The spec of a version is not cached, but read when a run starts. */
  readonly workflows: Readonly<
    Record<
      string,
      {
        readonly handle: string
        readonly latest_version: number
        /** Absent when the actor's owner runs an older release. */
        readonly published_as_tool?: boolean
      }
    >
  >
  /** Agents by id. The data that a turn needs is not cached, but read when the turn starts. */
  readonly agents: Readonly<Record<string, AgentEntry>>
  /** The project's actions by name; absent when the actor's owner runs an older release. */
  readonly actions?: Readonly<Record<string, ActionSketch>>
}
/**
 * The number of lost leases after which a job with a repeatable action fails, unless the job itself
 * allows more. Not used when the step sets the number of attempts.
 */
export const REPEATABLE_LOSSES = 3
/**
 * The facts that decide whether the service or a worker executes an action, and how many lost
 * leases are allowed.
 * `repeatable`: it is safe to call the action again when the outcome of a call is unknown.
 */
export interface ActionSketch {
  readonly kind: 'http' | 'worker'
  readonly repeatable?: true
}
/**
 * Returns the project's action with this name, otherwise the organization's; undefined if neither
 * defines one.
 */
export const actionNamed = (
  home: ProjectDirectory,
  organization: OrganizationDirectory,
  name: string,
): ActionSketch | undefined =>
  getOwn(home.actions ?? {}, name) ?? getOwn(organization.actions ?? {}, name)
/**
 * A principal as other records refer to it, for example as a member of a channel, a target of an
 * interaction or an owner.
 */
export interface PrincipalSummary {
  readonly id: string
  readonly kind: PrincipalRecord['kind']
  readonly name: string
}
/**
 * An active person with an e-mail address who is among the targets of an interaction. `target` is
 * the target that includes the person: the id of the person, or a role.
 */
export interface ReachablePerson {
  readonly target: string
  readonly id: string
  readonly name: string
  readonly email: string
}
/**
 * Returns the time from which a key is rejected, in Unix milliseconds; undefined if the key does
 * not expire.
 */
export const expiryOf = ({ expires_at }: Pick<ApiKey, 'expires_at'>): number | undefined =>
  expires_at === undefined ? undefined : (parseTimestamp(expires_at) ?? 0)
/**
 * Whether a key has expired.
 * @param now Unix milliseconds.
 */
export const hasExpired = (key: Pick<ApiKey, 'expires_at'>, now: number): boolean =>
  (expiryOf(key) ?? Infinity) <= now
/**
 * Returns the active principal with this id in a project: a person, a service or an agent of the
 * project, or the service principal of an organization key. Returns undefined for unknown, disabled
 * and deleted principals, and for principals of other projects.
 */
export function activePrincipal(
  { principals }: ProjectDirectory,
  { keys }: OrganizationDirectory,
  id: string,
): PrincipalSummary | undefined {
  const record = getOwn(principals, id)
  if (record)
    return record.state === 'active' ? { id, kind: record.kind, name: record.name } : undefined
  const key = Object.values(keys).find(({ principal_id }) => principal_id === id)
  return key && { id, kind: 'service', name: key.name }
}
/** Converts a summary to the `Principal` that commands and events contain. */
export const principalOf = ({ id, kind, name }: PrincipalSummary): Principal => ({
  type: kind === 'service' ? 'service_account' : kind,
  id,
  name,
})
/** The latest version of a workflow: the reply to the project's owner query `definition`. */
export interface Definition {
  readonly id: string
  readonly version: number
  readonly spec: Spec
}
/** A spent daily budget of a loop. Amounts are in credits. */
export interface SpentBudget {
  readonly daily_credit_budget: number
  readonly credit_spent: number
}
/** The data that the gateway adds to commands that retry or recover a run. */
export interface RecoverExtra {
  /**
   * The current version of the run's loop. Absent for runs without a loop, and when the loop has no
   * version.
   */
  readonly current_version?: number
  /** The daily budget of the run's loop, if it is spent. */
  readonly spent_budget?: SpentBudget
  /**
   * The refusal for a caller that may not start the run's inline spec or direct call, because the
   * caller lacks the permission to execute one of its actions.
   */
  readonly refused_start?: Refusal
}
/** The data that the gateway adds to commands that may end the wait for the gate of a check. */
export interface GateExtra {
  /**
   * The caller's roles, or the refusal of every answer by this caller. Absent: the caller has no
   * roles.
   */
  readonly responds?: CallerRoles | Refusal
}
/** The data that the gateway adds to commands that start a run. */
export interface StartExtra {
  /** The workflow's latest version; absent for an inline spec. */
  readonly definition?: Definition
  /**
   * The definitions of the workflows to which the steps refer, directly or through other workflows.
   * Each key is the name by which a step refers to the workflow.
   */
  readonly definitions?: Readonly<Record<string, Definition>>
  /**
   * Only for a run that an agent starts: the depth of the run in its causal chain, and the chain.
   */
  readonly cause_depth?: number
  readonly chain?: Chain
}
