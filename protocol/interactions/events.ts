/**
 * Stored events of an interaction. The actor computes a change of the record once; its state and
 * every view apply the same change.
 */
import { type JsonObject, timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Chain } from '../events/sources.ts'
import type { UrlParts } from '../masked-url.ts'
import { type Patch, patch } from '../patch.ts'
import type { Interaction, LifecycleEvent, Response } from './schema.ts'

/**
 * The content of a source event: its payload, and the fields copied for matching. It is published
 * when the event is committed.
 */
export interface Source {
  readonly event: JsonObject
  readonly meta: JsonObject
  /**
   * The interaction as of its end. The creation event itself contains the interaction. Absent in
   * journals of earlier releases.
   */
  readonly record?: JsonObject
  /** The number of runs between it and an event that nothing in the project caused. */
  readonly depth: number
  readonly chain?: Chain
}
/**
 * A delivery to an HTTP subscriber that is due: its stable id, its address, the secret that signs
 * it, and its body.
 */
export interface Dispatch extends UrlParts {
  readonly delivery_id: string
  readonly callback_url: string
  readonly secret_ref: string
  readonly body: JsonObject
}
/** The purpose of an approval that the service requires. */
export interface Approval {
  /** Name of the action: only principals that may execute it can respond. */
  readonly action: string
  /** Principals that cannot respond although they may execute it. */
  readonly excludes?: readonly string[]
}
/** The change of a record. `outcome` is separate from `set`, because null is a valid outcome. */
export interface Change {
  readonly set?: Patch<Interaction>
  readonly outcome?: { readonly value: unknown }
  readonly response?: Response
  readonly lifecycle?: LifecycleEvent
}
type Changed<T> = Event & Change & { readonly type: T; readonly id: string }
export type InteractionEvent =
  /**
   * `step`: the step of its run that opened it; `session`: the session in the same shard whose turn
   * opened it.
   */
  | (Event &
      UrlParts & {
        readonly type: 'interaction.created'
        readonly id: string
        readonly interaction: Interaction
        readonly source: Source
        readonly step?: string
        readonly session?: string
        /** Opened in a private session: only readers of the session receive its source events. */
        readonly withheld?: true
        /** The service requires this approval before an action is executed. */
        readonly approval?: Approval
      })
  | Changed<'interaction.responded'>
  | Changed<'interaction.submitted'>
  | Changed<'interaction.reviewed'>
  /**
   * The interaction has ended: completed, cancelled or expired. `was`: its status before; absent in
   * events of older releases.
   */
  | (Event &
      Change & {
        readonly type: 'interaction.resolved'
        readonly id: string
        readonly was?: Interaction['status']
        /** See `interaction.created`. */
        readonly withheld?: true
        /**
         * The service cancelled it because targets or reviewers do not exist; the reason contains
         * their names.
         */
        readonly invalid?: true
        readonly source: Source
        readonly dispatch?: Dispatch
      })
  /** Links were issued with which these targets respond without signing in. */
  | (Event & {
      readonly type: 'interaction.linked'
      readonly id: string
      readonly targets: readonly string[]
      readonly round: number
    })
  | (Event & { readonly type: 'interaction.deleted'; readonly id: string })

/** Applies a change. @param at Unix milliseconds. */
export function changed(
  record: Interaction,
  { set, outcome, response, lifecycle }: Change,
  at: number,
): Interaction {
  const next = patch(record, set)
  return {
    ...next,
    ...(outcome && { outcome: outcome.value }),
    ...(response && { responses: [...next.responses, response] }),
    ...(lifecycle && { lifecycle: [...next.lifecycle, lifecycle] }),
    updated_at: timestamp(at),
  }
}
