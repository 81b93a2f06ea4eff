/**
 * What the edge, the organization and the projects say to each other besides the rows of the API, and the private events
 * that come of it.
 *
 * Handles of workflows are unique in the organization although each project writes its own workflows. Therefore the
 * organization keeps one CLAIM per workflow, made before the workflow:
 * H1. The edge picks a fresh workflow id, has the organization reserve the handle for it, then sends `workflow.create`
 *     with the reservation. A handle is granted to one project at a time; inside it, the project refuses duplicates.
 * H2. A claim ends when its workflow is deleted, when its project is deleted, or when the project swears that the
 *     workflow does not exist and never will: the organization asks once, a minute after the reservation, and the
 *     project refuses that id from then on. So an edge that dies between the two steps blocks a handle for a minute
 *     at most, and no delay of any message can give one handle to two projects.
 */
import type { KeyMaterial } from '../access/rows.ts'
import type { DeviceCommands } from '../access/device-rows.ts'
import type { Event } from '../entry.ts'
import type { SkillHoldCommands } from '../agents/capabilities.ts'
import type { RunCommands } from '../internal.ts'
import type { LoopsCommands } from '../loops/standing.ts'

/** A granted reservation, as `workflow.create` carries it: the id the workflow gets and the handle it may use. */
export interface Reserved {
  readonly id: string
  readonly handle: string
  /** Id of the organization that holds the claim. */
  readonly organization: string
}

/** Internal commands of the organization. All but `handle.reserve` are total: repeated or late, they change nothing. */
export type OrganizationCommands = SkillHoldCommands &
  DeviceCommands & {
    /** First start: the organization, its project `default` and the first Owner key. Does nothing when it exists. */
    'organization.init': {
      input: { name: string; project_id: string; root_key: KeyMaterial & { id: string } }
      reply: undefined
    }
    /** These keys were used at the time of the command. */
    'key.touch': { input: { ids: readonly string[] }; reply: undefined }
    /** Refused with `already_exists` while another project holds the handle. */
    'handle.reserve': { input: { id: string; handle: string; project: string }; reply: undefined }
    /** The workflow with this id is gone, or was never made and never will be. */
    'handle.release': { input: { id: string }; reply: undefined }
    wake: { input: unknown; reply: undefined }
  }

/** Internal commands of a project. */
export type ProjectCommands = LoopsCommands & {
  'key.touch': { input: { ids: readonly string[] }; reply: undefined }
  /** From the organization: release the claim of this workflow id unless the workflow exists. */
  'handle.settle': { input: { id: string; organization: string }; reply: undefined }
  /** From the queue: the errand of taking somebody out of all channels is over. */
  'job.settled': RunCommands['job.settled']
}

/** Private events of a project: a principal (`id`) that was shut out is being taken out of all channels, by this errand. */
export type PartingEvent =
  | (Event & { readonly type: 'parting.begun'; readonly id: string; readonly job_id: string })
  | (Event & { readonly type: 'parting.ended'; readonly job_id: string })

/** Private events of the organization about claims. `id` is the workflow's. */
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
 * Private events of a project about claims: it uses the claim that this organization holds for it, or has no use for it
 * any more; `unused`: the workflow was never made.
 */
export type HoldEvent =
  | (Event & { readonly type: 'handle.held'; readonly id: string; readonly organization: string })
  | (Event & {
      readonly type: 'handle.freed'
      readonly id: string
      readonly organization: string
      readonly unused?: true
    })
