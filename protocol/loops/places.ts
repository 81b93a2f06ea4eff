/**
 * How many runs of loops may be under way in the whole organization, if its operator says so: one actor hands out places.
 *
 * P1. A run that its loop has let in asks for a place, and begins when it is given one. It gives it back when it has ended.
 * P2. Loops hear and ask by effects, which arrive in order and once; so no place is lost with a node, and none is given twice.
 */
import type { Event } from '../entry.ts'

/** A run that wants a place, with where it is at home. */
export interface Wanting {
  readonly run_id: string
  readonly loop_id: string
  readonly project: string
}
/** Private events of the places. */
export type PlaceEvent =
  | (Event & Wanting & { readonly type: 'place.given' | 'place.lined_up' })
  | (Event & { readonly type: 'place.freed'; readonly run_id: string })
  /** Whether there is room was looked at; in memory only. */
  | (Event & { readonly type: 'places.counted'; readonly at: number })
/** Decided by the places of the organization, whose id they have. All are total. */
export type PlaceCommands = {
  'place.ask': { input: Wanting; reply: undefined }
  /** The run has ended, or does not want its place any more. */
  'place.return': { input: { run_id: string }; reply: undefined }
  wake: { input: unknown; reply: undefined }
}
