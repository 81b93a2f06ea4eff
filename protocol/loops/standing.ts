/**
 * The data that a project stores about its loops. Each loop is a separate actor, and stores its own
 * definition and state.
 *
 * R1. A loop notifies its project of its creation, of each change to the actions that it may call,
 *     and of its deletion. The notification is an effect of the commit, so it always arrives.
 *     `version` detects outdated notifications.
 * R2. The gateway that saved a loop also notifies the project before it replies, so a later
 *     deletion of an action takes the loop into account. A concurrent deletion counts as earlier,
 *     which is harmless, because a loop may refer to actions that do not exist.
 * R3. A deleted project ends all its loops, including loops that notify it later.
 */
import type { Event } from '../entry.ts'

/**
 * The state of a loop as its project stores it. `actions`: names of the actions that runs of the
 * loop may call; empty while the loop is not active.
 */
export interface LoopStanding {
  readonly loop_id: string
  /** 0 means that the loop has never notified its project. */
  readonly version: number
  readonly actions: readonly string[]
  /** The loop was deleted. */
  readonly gone?: true
}
/** Private events of a project about its loops. */
export type LoopsEvent =
  | (Event & LoopStanding & { readonly type: 'loop.noted' })
  /**
   * The project was deleted, so these loops must end. `next`: the next commit continues with the
   * loops after this id.
   */
  | (Event & {
      readonly type: 'project.ended'
      readonly organization: string
      readonly loops: readonly string[]
      readonly next?: string
    })
/** Internal commands of a project about its loops. They are never refused. */
export type LoopsCommands = {
  /** Reports the current state of a loop. Sent by the loop, and by the gateway that saved it. */
  'loop.note': { input: LoopStanding; reply: undefined }
  /**
   * Ends the loops of the deleted project, and starts the `remove_artifacts` errand. Sent by the
   * organization. The project also sends it to itself, to continue with the loops after the id
   * `after`.
   */
  'project.end': { input: { organization: string; after?: string }; reply: undefined }
}
