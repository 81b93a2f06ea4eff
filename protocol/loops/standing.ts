/**
 * What a project knows of its loops, although each loop writes itself.
 *
 * R1. A loop tells its project when it comes to be, when the actions that it may call change, and when it is gone: an effect of the
 *     commit, so it arrives; `version` orders what comes late.
 * R2. The edge that saved a loop has the project know of it before it answers. So whoever deletes an action afterwards is told of the
 *     loop. A deletion under way at the same time counts as the earlier one: a loop may name actions that do not exist.
 * R3. A project that is gone ends its loops, also those that it hears of later.
 */
import type { Event } from '../entry.ts'

/** How a loop stands. `actions`: names that its runs may call; none while nothing can start it. */
export interface LoopStanding {
  readonly loop_id: string
  /** 0: nothing was ever told. */
  readonly version: number
  readonly actions: readonly string[]
  /** It was deleted. */
  readonly gone?: true
}
/** Private events of a project about its loops. */
export type LoopsEvent =
  | (Event & LoopStanding & { readonly type: 'loop.noted' })
  /** The project is gone, and these loops are told to end; `next`: others after this id follow. */
  | (Event & {
      readonly type: 'project.ended'
      readonly organization: string
      readonly loops: readonly string[]
      readonly next?: string
    })
/** Internal commands of a project for this. Both are total. */
export type LoopsCommands = {
  /** From a loop, and from the edge that saved it. */
  'loop.note': { input: LoopStanding; reply: undefined }
  /** From the organization: the project is gone. `after`: loops up to this id were told. */
  'project.end': { input: { organization: string; after?: string }; reply: undefined }
}
