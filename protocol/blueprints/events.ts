/** Events and internal commands of the actor `blueprint` (actors/blueprints/blueprint.ts). */
import type { Event } from '../entry.ts'
import type { ApplyResult, Binding, DeleteResult } from './schema.ts'
import type { Identity } from './stored.ts'

/** Milliseconds after which a holder that does not renew loses the blueprint. */
export const HOLD_MS = 30_000

/** What the gateway adds to the rows of a blueprint: who holds it, and what was done. */
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
        /** Reservations that were used, as `type/key`. */
        readonly used: readonly string[]
      })
  | (Event & Identity & { readonly type: 'blueprint.protection_set'; readonly protected: boolean })
  | (Event & Identity & { readonly type: 'blueprint.deleted'; readonly counts: Counts })

export type BlueprintCommands = {
  /**
   * Takes the blueprint for one caller, or extends its hold. Refused with `blueprint_busy` while
   * another holder has it. The reply names the holder: a repeat under an idempotency key receives
   * that of the first request.
   */
  'blueprint.hold': { input: Identity & { holder: string }; reply: { holder: string } }
  /**
   * Reserves ids of resources that are to be created, by `type/key`. The reply has the ids that
   * count: those of an earlier, interrupted apply take precedence. `replace`: reservations that
   * are given up, because their resources were deleted.
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
   * Binds an idempotency key to its request. The actor has an id derived from the key, and no
   * blueprint. Without this, a different request under the key could reach another blueprint.
   */
  'blueprint.key': { input: unknown; reply: undefined }
  /** Gives the blueprint up without a result. */
  'blueprint.release': { input: { holder: string }; reply: undefined }
}
