/**
 * Stored events of an interaction. The actor computes a change to the record once, and both its
 * state and every view apply this change.
 */
import { type JsonObject, timestamp } from '../common.ts'
import type { Event } from '../entry.ts'
import type { Chain } from '../events/sources.ts'
import type { UrlParts } from '../masked-url.ts'
import { type Patch, patch } from '../patch.ts'
import { extended } from '../rules/extended.ts'
import type { Interaction, LifecycleEvent, Response } from './schema.ts'

/**
 * The content of the source event that is published for an interaction event: the payload, and the
 * routing fields for matching.
 */
export interface Source {
  readonly event: JsonObject
  readonly meta: JsonObject
  /**
   * The interaction as it was when it ended. Absent in `interaction.created`, which contains the
   * interaction itself, and in events of earlier releases.
   */
  readonly record?: JsonObject
  /** The `depth` of the source event (see `Publication`). */
  readonly depth: number
  readonly chain?: Chain
}
/**
 * A pending delivery to an HTTP subscriber: its stable id, its URL, the reference to the secret
 * that signs it, and its body.
 */
export interface Dispatch extends UrlParts {
  readonly delivery_id: string
  readonly callback_url: string
  readonly secret_ref: string
  readonly body: JsonObject
}
/** Data about an approval that the service requires before it executes an action. */
export interface Approval {
  /** Name of the action. The principals that may execute it, except for agents, can respond. */
  readonly action: string
  /** Principals that cannot respond although they may execute the action. */
  readonly excludes?: readonly string[]
}
/**
 * A change to the record. `outcome` is separate from `set`, because null is a valid outcome,
 * whereas null in `set` removes a field.
 */
export interface Change {
  readonly set?: Patch<Interaction>
  readonly outcome?: { readonly value: unknown }
  readonly response?: Response
  readonly lifecycle?: LifecycleEvent
}
type Changed<T> = Event & Change & { readonly type: T; readonly id: string }
export type InteractionEvent =
  /**
   * `step`: the step of the run that opened the interaction. `session`: the session whose turn
   * opened it. The run or session is in the same shard as the interaction.
   */
  | (Event &
      UrlParts & {
        readonly type: 'interaction.created'
        readonly id: string
        readonly interaction: Interaction
        readonly source: Source
        readonly step?: string
        readonly session?: string
        /**
         * The interaction was opened in a private session, and only readers of the session receive
         * its source events.
         */
        readonly withheld?: true
        /** The service requires this approval before an action is executed. */
        readonly approval?: Approval
      })
  | Changed<'interaction.responded'>
  | Changed<'interaction.submitted'>
  | Changed<'interaction.reviewed'>
  /**
   * The interaction has ended: it is completed, cancelled or expired. `was`: its previous status;
   * absent in events of earlier releases.
   */
  | (Event &
      Change & {
        readonly type: 'interaction.resolved'
        readonly id: string
        readonly was?: Interaction['status']
        /** See `interaction.created`. */
        readonly withheld?: true
        /**
         * The service cancelled the interaction because targets or reviewers do not exist. The
         * reason lists them.
         */
        readonly invalid?: true
        readonly source: Source
        readonly dispatch?: Dispatch
      })
  /** Answer links were issued to these targets for a review round. */
  | (Event & {
      readonly type: 'interaction.linked'
      readonly id: string
      readonly targets: readonly string[]
      readonly round: number
    })
  | (Event & { readonly type: 'interaction.deleted'; readonly id: string })

/**
 * Returns the record after a change.
 * @param at time of the change in Unix milliseconds.
 */
export function applyChange(
  record: Interaction,
  { set, outcome, response, lifecycle }: Change,
  at: number,
): Interaction {
  const next = patch(record, set)
  return extended(next, {
    ...(outcome && { outcome: outcome.value }),
    ...(response && { responses: [...next.responses, response] }),
    ...(lifecycle && { lifecycle: [...next.lifecycle, lifecycle] }),
    updated_at: timestamp(at),
  })
}
