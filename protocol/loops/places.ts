/**
 * The limit on concurrent runs of loops in the whole organization, if its operator sets one. One
 * actor grants slots (`place`) to runs.
 *
 * P1. The loop requests a slot for a run that its own rules admit. The run starts when the slot is
 *     granted, and the loop returns the slot when the run has ended.
 * P2. Loops and this actor communicate by effects, which arrive in order and exactly once. So no
 *     slot is lost in a crash, and none is granted twice.
 */
import type { Event } from '../entry.ts'

/** A run that requests a slot, with its loop and project. */
export interface Wanting {
  readonly run_id: string
  readonly loop_id: string
  readonly project: string
}
/** Private events of the actor that grants slots. */
export type PlaceEvent =
  | (Event & Wanting & { readonly type: 'place.given' | 'place.lined_up' })
  | (Event & { readonly type: 'place.freed'; readonly run_id: string })
  /** The number of free slots was computed; this event is not stored. */
  | (Event & { readonly type: 'places.counted'; readonly at: number })
/**
 * Commands handled by the actor that grants slots, whose id is the organization's. All are total.
 */
export type PlaceCommands = {
  'place.ask': { input: Wanting; reply: undefined }
  /** The run has ended, or no longer needs its slot. */
  'place.return': { input: { run_id: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
