/** What happens to an interaction, as it is stored. The actor decides the change of the record once; its state and every view apply the same one. */
import { timestamp, type JsonObject } from '../common.ts'
import type { Event } from '../entry.ts'
import type { UrlParts } from '../masked-url.ts'
import type { Chain } from '../events/sources.ts'
import { patch, type Patch } from '../patch.ts'
import type { Interaction, LifecycleEvent, Response } from './schema.ts'

/** What a source event says: its payload, and the fields that are copied for matching. It is published when the event is committed. */
export interface Source {
  readonly event: JsonObject
  readonly meta: JsonObject
  /** The interaction when it was over; when it was created, the event itself has it. Absent in journals of earlier releases. */
  readonly record?: JsonObject
  /** Runs between it and what nothing in the project caused. */
  readonly depth: number
  readonly chain?: Chain
}
/** A delivery to an HTTP subscriber that is due: its stable id, where it goes, which secret signs it, and its body. */
export interface Dispatch extends UrlParts {
  readonly delivery_id: string
  readonly callback_url: string
  readonly secret_ref: string
  readonly body: JsonObject
}
/** What an approval that the service demands is for. */
export interface Approval {
  /** Name of the action: only principals that may execute it can answer. */
  readonly action: string
  /** Principals that cannot answer although they may execute it. */
  readonly excludes?: readonly string[]
}
/** What a change does to the record. `outcome` stands apart, because null may be one. */
export interface Change {
  readonly set?: Patch<Interaction>
  readonly outcome?: { readonly value: unknown }
  readonly response?: Response
  readonly lifecycle?: LifecycleEvent
}
type Changed<T> = Event & Change & { readonly type: T; readonly id: string }
export type InteractionEvent =
  /** `step`: a step of its run opened it; `session`: a turn of this session, of the same shard, did. */
  | (Event &
      UrlParts & {
        readonly type: 'interaction.created'
        readonly id: string
        readonly interaction: Interaction
        readonly source: Source
        readonly step?: string
        readonly session?: string
        /** Asked in a private session: only readers of the session receive its source events. */
        readonly withheld?: true
        /** The service demands it before an action is executed. */
        readonly approval?: Approval
      })
  | Changed<'interaction.responded'>
  | Changed<'interaction.submitted'>
  | Changed<'interaction.reviewed'>
  /** It is over: completed, cancelled or expired. `was`: its status before; older releases did not say. */
  | (Event &
      Change & {
        readonly type: 'interaction.resolved'
        readonly id: string
        readonly was?: Interaction['status']
        /** See `interaction.created`. */
        readonly withheld?: true
        /** It was cancelled by the service, because targets or reviewers do not exist: the reason says which. */
        readonly invalid?: true
        readonly source: Source
        readonly dispatch?: Dispatch
      })
  /** Links were given out with which these targets answer without signing in. */
  | (Event & {
      readonly type: 'interaction.linked'
      readonly id: string
      readonly targets: readonly string[]
      readonly round: number
    })
  | (Event & { readonly type: 'interaction.deleted'; readonly id: string })

/** Apply a change. @param at Unix milliseconds. */
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
