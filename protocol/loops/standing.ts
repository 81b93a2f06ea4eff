/**
 * The project's knowledge of its loops; each loop stores itself as a separate actor.
 *
 * R1. A loop notifies its project when it is created, when the actions that it may call change, and
 *     when it is deleted. The notification is an effect of the commit, so it always arrives;
 *     `version` detects outdated notifications.
 * R2. The edge that saved a loop notifies the project before it replies. So a later deletion of an
 *     action sees the loop. A concurrent deletion counts as earlier: a loop may refer to actions
 *     that do not exist.
 * R3. A deleted project ends its loops, including those that register later.
 */
import type { Event } from '../entry.ts'

/**
 * The state of a loop as its project stores it. `actions`: names of the actions that its runs may
 * call; empty while nothing can start the loop.
 */
export interface LoopStanding {
  readonly loop_id: string
  /** 0: the loop has never notified its project. */
  readonly version: number
  readonly actions: readonly string[]
  /** The loop was deleted. */
  readonly gone?: true
}
/** Private events of a project about its loops. */
export type LoopsEvent =
  | (Event & LoopStanding & { readonly type: 'loop.noted' })
  /** The project was deleted, and these loops must end. `next`: loops after this id follow. */
  | (Event & {
      readonly type: 'project.ended'
      readonly organization: string
      readonly loops: readonly string[]
      readonly next?: string
    })
/** Internal commands of a project about its loops. Both are total. */
export type LoopsCommands = {
  /** From a loop, and from the edge that saved it: the current state of the loop. */
  'loop.note': { input: LoopStanding; reply: undefined }
  /**
   * From the organization: the project was deleted. `after`: loops up to this id were already
   * notified.
   */
  'project.end': { input: { organization: string; after?: string }; reply: undefined }
}
