/**
 * The limit on concurrent runs of loops in the whole organization, if the operator sets one. One
 * actor (`plan`) grants slots. The names of its stored commands and events say `place` for a slot.
 *
 * P1. A loop requests a slot for a run that its own rules admit. The run starts when the loop takes
 *     the granted slot, and the loop returns the slot when the run has ended.
 * P2. The loops and the plan communicate by effects, which arrive in order and are applied exactly
 *     once. Therefore, a crash cannot cause a slot to be lost or granted twice.
 */
import type { Event } from '../entry.ts'

/** A request for a slot: the run, its loop and its project. */
export interface SlotRequest {
  readonly run_id: string
  readonly loop_id: string
  readonly project: string
}
/** Private events of the actor that grants slots. */
export type SlotEvent =
  | (Event & SlotRequest & { readonly type: 'place.given' | 'place.lined_up' })
  | (Event & { readonly type: 'place.freed'; readonly run_id: string })
  /** Soft event: the actor was woken at `at` (Unix milliseconds), but granted no slot. */
  | (Event & { readonly type: 'places.counted'; readonly at: number })
/**
 * Internal commands of the actor that grants slots. Its id is the id of the organization. The
 * commands are never refused.
 */
export type SlotCommands = {
  /** Requests a slot for a run. */
  'place.ask': { input: SlotRequest; reply: undefined }
  /** Gives a slot back, because the run has ended or its loop currently declines the slot. */
  'place.return': { input: { run_id: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
