/**
 * Internal commands of the organization and of projects, and the private events that result from
 * them.
 *
 * Handles of workflows are unique in the organization, although each project stores its own
 * workflows. Therefore the organization stores one CLAIM per workflow, which is created before the
 * workflow:
 * H1. The gateway generates a workflow id and requests a reservation of the handle for this id from
 *     the organization. Then it sends `workflow.create` with the reservation to the project. The
 *     organization grants a handle to one project at a time. The project rejects duplicates among
 *     its own workflows.
 * H2. A claim ends when its workflow is deleted, when its project is deleted, or when the project
 *     guarantees that the workflow does not exist and can no longer be created. The organization
 *     requests this guarantee a minute after the reservation. If the workflow does not exist, the
 *     project then rejects its id. A gateway that crashes between reservation and creation thus
 *     blocks a handle for only about a minute. Even delayed messages cannot grant one handle to two
 *     projects.
 */

import type { ConsoleCommands } from '../access/console-rows.ts'
import type { DeviceCommands } from '../access/device-rows.ts'
import type { IdentityCommands } from '../access/identity.ts'
import type { KeyMaterial } from '../access/rows.ts'
import type { SkillHoldCommands } from '../agents/capabilities.ts'
import type { Event } from '../entry.ts'
import type { RunCommands } from '../internal.ts'
import type { LoopsCommands } from '../loops/standing.ts'

/**
 * A granted reservation, as `workflow.create` contains it: the id of the new workflow and its
 * handle.
 */
export interface Reserved {
  readonly id: string
  readonly handle: string
  /** Id of the organization that granted the reservation. */
  readonly organization: string
}

/**
 * Internal commands of the organization, including those for holds on skills, for sign-in requests
 * from devices and for console sessions.
 */
export type OrganizationCommands = SkillHoldCommands &
  DeviceCommands &
  ConsoleCommands & {
    /**
     * Creates the organization, its project `default` and the first Owner key at the first start of
     * an installation. Changes nothing when the organization exists.
     */
    'organization.init': {
      input: { name: string; project_id: string; root_key: KeyMaterial & { id: string } }
      reply: undefined
    }
    /** Records that these keys and console sessions were used at the time of the command. */
    'key.touch': { input: { ids: readonly string[] }; reply: undefined }
    /**
     * Reserves a handle for a workflow id. Refused with `not_found` if the project does not exist,
     * and with `already_exists` while another project holds the handle.
     */
    'handle.reserve': { input: { id: string; handle: string; project: string }; reply: undefined }
    /** Ends a claim: the workflow with this id was deleted, or can no longer be created. */
    'handle.release': { input: { id: string }; reply: undefined }
    wake: { input: unknown; reply: undefined }
  }

/** Internal commands of a project. */
export type ProjectCommands = LoopsCommands &
  IdentityCommands & {
    'key.touch': { input: { ids: readonly string[] }; reply: undefined }
    /**
     * Releases the claim of this workflow id, unless the workflow exists (H2). Sent by the
     * organization.
     */
    'handle.settle': { input: { id: string; organization: string }; reply: undefined }
    /**
     * Sent by the queue when an errand of the project has ended: the removal of a principal from
     * its channels, or the removal of the data of the deleted project.
     */
    'job.settled': RunCommands['job.settled']
  }

/**
 * Private events of a project about errands that remove a disabled or deleted principal (`id`) from
 * its channels. `job_id` is the id of the errand.
 */
export type PartingEvent =
  | (Event & { readonly type: 'parting.begun'; readonly id: string; readonly job_id: string })
  | (Event & { readonly type: 'parting.ended'; readonly job_id: string })

/**
 * Private events of the organization about claims. `id` is the id of the workflow.
 * `handle.questioned`: the guarantee of H2 was requested.
 */
export type ClaimEvent =
  | (Event & {
      readonly type: 'handle.reserved'
      readonly id: string
      readonly handle: string
      readonly project: string
    })
  | (Event & { readonly type: 'handle.questioned'; readonly id: string; readonly project: string })
  | (Event & { readonly type: 'handle.released'; readonly id: string })
/**
 * Private events of a project about the handles that the organization has reserved for its
 * workflows: a workflow uses its handle (`held`) or releases it (`freed`). `id` is the id of the
 * workflow. `unused`: no workflow with this id exists or can be created later.
 */
export type HoldEvent =
  | (Event & { readonly type: 'handle.held'; readonly id: string; readonly organization: string })
  | (Event & {
      readonly type: 'handle.freed'
      readonly id: string
      readonly organization: string
      readonly unused?: true
    })
