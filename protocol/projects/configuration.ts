/**
 * Commands that the edge, the organization and the projects exchange in addition to the API rows,
 * and the private events that result from them.
 *
 * Handles of workflows are unique in the organization, although each project stores its own
 * workflows. Therefore the organization stores one CLAIM per workflow, which is created before the
 * workflow:
 * H1. The edge generates a workflow id, requests a reservation of the handle for it from the
 *     organization, then sends `workflow.create` with the reservation. The organization grants a
 *     handle to one project at a time; inside that project, the project rejects duplicates.
 * H2. A claim ends when its workflow is deleted, when its project is deleted, or when the project
 *     guarantees that the workflow does not exist and never will. The organization asks for this
 *     guarantee once, a minute after the reservation; the project rejects that id from then on. So
 *     an edge that crashes between the two steps blocks a handle for at most a minute, and no
 *     message delay can grant one handle to two projects.
 */

import type { DeviceCommands } from '../access/device-rows.ts'
import type { KeyMaterial } from '../access/rows.ts'
import type { SkillHoldCommands } from '../agents/capabilities.ts'
import type { Event } from '../entry.ts'
import type { RunCommands } from '../internal.ts'
import type { LoopsCommands } from '../loops/standing.ts'

/**
 * A granted reservation, as `workflow.create` contains it: the id of the new workflow, and the
 * handle it may use.
 */
export interface Reserved {
  readonly id: string
  readonly handle: string
  /** Id of the organization that holds the claim. */
  readonly organization: string
}

/**
 * Internal commands of the organization. All but `handle.reserve` are total: repeated or late
 * commands change nothing.
 */
export type OrganizationCommands = SkillHoldCommands &
  DeviceCommands & {
    /**
     * First start: creates the organization, its project `default` and the first Owner key. Does
     * nothing when they exist.
     */
    'organization.init': {
      input: { name: string; project_id: string; root_key: KeyMaterial & { id: string } }
      reply: undefined
    }
    /** These keys were used at the time of the command. */
    'key.touch': { input: { ids: readonly string[] }; reply: undefined }
    /** Refused with `already_exists` while another project holds the handle. */
    'handle.reserve': { input: { id: string; handle: string; project: string }; reply: undefined }
    /** The workflow with this id was deleted, or does not exist and never will. */
    'handle.release': { input: { id: string }; reply: undefined }
    wake: { input: unknown; reply: undefined }
  }

/** Internal commands of a project. */
export type ProjectCommands = LoopsCommands & {
  'key.touch': { input: { ids: readonly string[] }; reply: undefined }
  /** From the organization: release the claim of this workflow id unless the workflow exists. */
  'handle.settle': { input: { id: string; organization: string }; reply: undefined }
  /** From the queue: the errand that removes a principal from all channels has ended. */
  'job.settled': RunCommands['job.settled']
}

/**
 * Private events of a project: an errand is removing a disabled or deleted principal (`id`) from
 * all channels.
 */
export type PartingEvent =
  | (Event & { readonly type: 'parting.begun'; readonly id: string; readonly job_id: string })
  | (Event & { readonly type: 'parting.ended'; readonly job_id: string })

/** Private events of the organization about claims. `id` is the workflow's id. */
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
 * Private events of a project about claims: it uses the claim that this organization holds for it,
 * or no longer needs it. `unused`: the workflow was never created.
 */
export type HoldEvent =
  | (Event & { readonly type: 'handle.held'; readonly id: string; readonly organization: string })
  | (Event & {
      readonly type: 'handle.freed'
      readonly id: string
      readonly organization: string
      readonly unused?: true
    })
