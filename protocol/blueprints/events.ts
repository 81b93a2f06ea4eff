/** Events and internal commands of the `blueprint` actor (`actors/blueprints/blueprint.ts`). */
import type { Event } from '../entry.ts'
import type { ApplyResult, Binding, DeleteResult } from './schema.ts'
import type { Identity } from './stored.ts'

/** Duration of a hold in milliseconds, unless its holder renews it. */
export const HOLD_MS = 30_000

/** The data that the gateway adds to the commands of a blueprint: the holder and the outcome. */
export type BlueprintInputs = {
  'blueprint.apply': { readonly holder: string; readonly result: ApplyResult }
  'blueprint.protect': { readonly holder: string; readonly items: readonly Binding[] }
  'blueprint.delete': { readonly holder: string; readonly result: DeleteResult }
}
/** Number of resources by outcome, for the audit log. */
export type Counts = Readonly<Record<string, number>>

export type BlueprintEvent =
  | (Event &
      Identity & {
        readonly type: 'blueprint.held'
        readonly holder: string
        /** Unix milliseconds. */
        readonly until: number
      })
  | (Event & {
      readonly type: 'blueprint.reserved'
      readonly ids: Readonly<Record<string, string>>
    })
  | (Event & { readonly type: 'blueprint.released' })
  | (Event & { readonly type: 'blueprint.keyed' })
  | (Event &
      Identity & {
        readonly type: 'blueprint.applied'
        readonly blueprint_version?: string
        readonly counts: Counts
        /** The reserved ids that were used, each identified by `type/key`. */
        readonly used: readonly string[]
      })
  | (Event & Identity & { readonly type: 'blueprint.protection_set'; readonly protected: boolean })
  | (Event & Identity & { readonly type: 'blueprint.deleted'; readonly counts: Counts })

export type BlueprintCommands = {
  /**
   * Acquires or extends a hold on the blueprint. Refused with `blueprint_busy` while another caller
   * holds the blueprint. The reply contains the holder. A repeat with the same idempotency key gets
   * the holder of the first request.
   */
  'blueprint.hold': { input: Identity & { holder: string }; reply: { holder: string } }
  /**
   * Reserves ids for resources to be created, by `type/key`. The reply contains the ids to use: an
   * id that an earlier, interrupted apply reserved for a resource is used again. `replace`:
   * reservations to discard, because their resources were deleted.
   */
  'blueprint.reserve': {
    input: {
      holder: string
      ids: Readonly<Record<string, string>>
      replace: readonly string[]
    }
    reply: { ids: Readonly<Record<string, string>> }
  }
  /**
   * Binds an idempotency key to its request. The receiver is not the actor of a blueprint, but an
   * actor whose id is derived from the key. It detects a different request with the same key even
   * if that request is for another blueprint.
   */
  'blueprint.key': { input: unknown; reply: undefined }
  /** Releases the hold without recording a result. */
  'blueprint.release': { input: { holder: string }; reply: undefined }
}
