/**
 * What an interaction is between two commands: its record, and what the record does not show.
 *
 * Invariants:
 * I1. Every field of the record comes from the changes that events carry (protocol/interactions/events.ts).
 * I2. `interaction.resolved` happens once: nothing changes the record of one that is over.
 */
import type { Chain } from '../../protocol/events/sources.ts'
import { parseTimestamp } from '../../protocol/common.ts'
import {
  changed,
  type Approval,
  type Change,
  type InteractionEvent,
} from '../../protocol/interactions/events.ts'
import { callbackOf, withMaskedCallback } from '../../protocol/interactions/callback.ts'
import type { KeptUrl } from '../../protocol/masked-url.ts'
import { settledStatuses, type Interaction } from '../../protocol/interactions/schema.ts'

export interface InteractionState {
  readonly record: Interaction
  /** Of its source events. */
  readonly depth: number
  readonly chain?: Chain
  /** It was taken off the lists; nobody finds it any more. */
  readonly deleted?: true
  /** The session that asks, and hears of every change. */
  readonly session?: string
  /** Asked in a private session: only readers of the session receive its source events. */
  readonly withheld?: true
  /** The service demands it before an action is executed; absent: a question of a client, a run or an agent. */
  readonly approval?: Approval
  /** Where its subscriber is called. Absent in snapshots of earlier releases: the record has it. */
  readonly callback?: KeptUrl
  /** It was cancelled by the service, because targets or reviewers do not exist. */
  readonly invalid?: true
}

/** Begin the state. */
export const opened = (
  _: InteractionState | null,
  event: Extract<InteractionEvent, { type: 'interaction.created' }>,
): InteractionState => {
  const { interaction, source, session, withheld, approval } = event
  const callback = callbackOf(interaction, event)
  return {
    record: withMaskedCallback(interaction),
    ...(callback && { callback }),
    depth: source.depth,
    ...(source.chain && { chain: source.chain }),
    ...(session !== undefined && { session }),
    ...(withheld && { withheld }),
    ...(approval && { approval }),
  }
}
/** Apply a change of the record. */
export function apply(
  state: InteractionState | null,
  event: Change & { readonly invalid?: true },
  at: number,
): InteractionState {
  if (!state) throw new Error('an interaction changed before it was created')
  return {
    ...state,
    record: changed(state.record, event, at),
    ...('invalid' in event && event.invalid && { invalid: true }),
  }
}

/** Whether it is over. */
export const isSettled = ({ record }: InteractionState): boolean =>
  settledStatuses.has(record.status)
/** Whether it waits for answers, or for a review. */
export const isOpen = (state: InteractionState | null): state is InteractionState =>
  state !== null && !state.deleted && !isSettled(state)

/** When it expires, in Unix milliseconds; undefined: never, or it is over. */
export const expiry = (state: InteractionState | null): number | undefined =>
  isOpen(state) && state.record.expires_at !== undefined
    ? parseTimestamp(state.record.expires_at)
    : undefined
/** Its status at a time: one whose time has come is expired, also before it was told so. */
export const statusAt = (state: InteractionState, at: number): Interaction['status'] =>
  (expiry(state) ?? Infinity) <= at ? 'expired' : state.record.status
