/** What the organization knows: its keys, all projects there ever were, and who holds which workflow handle. */
import type { KeptOrganizationAction } from '../../../protocol/actions/organization-rows.ts'
import type { Project } from '../../../protocol/projects/rows.ts'
import type { OrganizationDirectory } from '../../../protocol/access/directory.ts'
import type { Skill } from '../../../protocol/skills/schema.ts'
import { byHash, sketchOf, type AccessLimits, type KeyHolder } from '../../configuration.ts'
import type { DeviceHolder } from './devices.ts'
import type { SkillHolds } from './skills.ts'

/** A project as the organization keeps it; a deleted one stays, so that its handle is never given again. */
type KeptProject = Project & { readonly deleted?: true }
/** A claim on a workflow handle, see protocol/projects/configuration.ts. `due`: when to ask whether the workflow was made, absent once asked. */
interface Claim {
  readonly handle: string
  readonly project: string
  readonly due?: number
}
export interface OrganizationState extends SkillHolds, KeyHolder, DeviceHolder {
  /** Empty until `organization.init`. */
  id: string
  name: string
  projects: Record<string, KeptProject>
  /** By workflow id. */
  claims: Record<string, Claim>
  skills: Record<string, Skill>
  /** By id. */
  actions: Record<string, KeptOrganizationAction>
}
export interface OrganizationOptions extends AccessLimits {
  /** Header brand; its lower-case form prefixes reserved tags and permissions. */
  readonly brand: string
  /** Most projects that are not deleted; 10 000 by default, because every gateway keeps them all. */
  readonly max_projects?: number
}

/** Milliseconds after a reservation when the organization asks for the workflow: well past every request's deadline. */
export const QUESTION_AFTER = 60_000

/** The organization before its first start. */
export const nobody = (): OrganizationState => ({
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
})

/** What gateways keep of the organization. */
export function directoryOf({
  id,
  keys,
  projects,
  skills,
  actions,
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
  }
}
