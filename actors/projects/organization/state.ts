/**
 * The state of the organization: keys, projects (including deleted ones), claims on workflow
 * handles, skills, actions, sign-in requests of devices, console sessions, artifact storage, and
 * the definition resolver.
 */

import type { OrganizationDirectory } from '../../../protocol/access/directory.ts'
import type { OrganizationActionWithSecrets } from '../../../protocol/actions/organization-rows.ts'
import type { Project } from '../../../protocol/projects/rows.ts'
import type { ResolverConfiguration } from '../../../protocol/resolver/schema.ts'
import type { Skill } from '../../../protocol/skills/schema.ts'
import { type AccessLimits, byHash, type KeyHolder, sketchOf } from '../../configuration.ts'
import { noArtifacts, type QuotaOptions, type StorageHolder } from './artifact-quota.ts'
import { type ConsoleHolder, noConsole } from './console-state.ts'
import type { DeviceHolder } from './devices.ts'
import type { SkillHolds } from './skills.ts'

/**
 * A project as the organization stores it. A deleted project is kept, so that its handle is never
 * reused.
 */
type MaybeDeletedProject = Project & { readonly deleted?: true }
/**
 * A claim on a workflow handle (protocol/projects/configuration.ts). `due`: Unix milliseconds at
 * which the organization asks the project whether the workflow was created; absent once the query
 * has been sent.
 */
interface Claim {
  readonly handle: string
  readonly project: string
  readonly due?: number
}
export interface OrganizationState
  extends SkillHolds,
    KeyHolder,
    DeviceHolder,
    ConsoleHolder,
    StorageHolder {
  /** Empty until `organization.init`. */
  id: string
  name: string
  projects: Record<string, MaybeDeletedProject>
  /** Claims by workflow id. */
  claims: Record<string, Claim>
  skills: Record<string, Skill>
  actions: Record<string, OrganizationActionWithSecrets>
  /** Absent until configured. */
  resolver?: ResolverConfiguration
  /** Origins to which an OAuth flow may return. Absent: none. */
  oauth_origins?: readonly string[]
}
export interface OrganizationOptions extends AccessLimits, QuotaOptions {
  /** The configured brand. Its lower-case form is the prefix of reserved tags and permissions. */
  readonly brand: string
  /**
   * Maximum number of projects that are not deleted; 10,000 by default. The number is limited
   * because every gateway holds all projects in memory.
   */
  readonly max_projects?: number
}

/**
 * Milliseconds from a reservation until the organization asks the project whether the workflow was
 * created. If it was not, the project refuses to create it later.
 */
export const QUERY_AFTER_MS = 60_000

/** Returns the state of the organization before `organization.init`. */
export const initialOrganization = (): OrganizationState => ({
  id: '',
  name: '',
  keys: {},
  projects: {},
  claims: {},
  skills: {},
  holds: {},
  grants: {},
  actions: {},
  devices: {},
  ...noConsole(),
  artifacts: noArtifacts(),
})

/** Returns the data of the organization that gateways and executors hold in memory. */
export function directoryOf({
  id,
  keys,
  projects,
  skills,
  actions,
  resolver,
  oauth_origins,
}: OrganizationState): OrganizationDirectory {
  const live = Object.values(projects).filter((project) => !project.deleted)
  return {
    id,
    keys: byHash(keys),
    projects: { ...projects },
    handles: Object.fromEntries(live.map((project) => [project.handle, project.id])),
    skills: Object.fromEntries(Object.values(skills).map((skill) => [skill.id, skill.name])),
    actions: Object.fromEntries(
      Object.values(actions).map(({ action }) => [action.name, sketchOf(action)]),
    ),
    ...(resolver && { resolver }),
    ...(oauth_origins && { oauth_origins }),
  }
}
