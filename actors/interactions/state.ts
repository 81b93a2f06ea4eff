/**
 * The state of an interaction between two commands: its record, and data that the record does not
 * contain.
 *
 * Invariants:
 * I1. The record comes from `interaction.created`, and only the changes in later events alter it
 *     (protocol/interactions/events.ts).
 * I2. `interaction.resolved` is emitted once, and nothing changes the record afterwards.
 */

import { parseTimestamp } from '../../protocol/common.ts'
import type { Chain } from '../../protocol/events/sources.ts'
import { callbackOf, withMaskedCallback } from '../../protocol/interactions/callback.ts'
import {
  type Approval,
  applyChange,
  type Change,
  type InteractionEvent,
} from '../../protocol/interactions/events.ts'
import { type Interaction, settledStatuses } from '../../protocol/interactions/schema.ts'
import type { SealedUrl } from '../../protocol/masked-url.ts'

export interface InteractionState {
  readonly record: Interaction
  /** Depth of the interaction's source events in a chain of runs. */
  readonly depth: number
  readonly chain?: Chain
  /** Set if the interaction was deleted. Lists and reads then omit it. */
  readonly deleted?: true
  /** The session whose turn opened the interaction. It receives every change to the record. */
  readonly session?: string
  /**
   * Set if the interaction was opened in a private session. Only readers of the session then
   * receive the source events of the interaction.
   */
  readonly withheld?: true
  /**
   * Present when the service requires the answer before it executes an action; absent for a
   * question from a client, a run or an agent.
   */
  readonly approval?: Approval
  /**
   * The URL of the subscriber with its sealed values. This field is absent in snapshots of earlier
   * releases, in which the record contains the URL.
   */
  readonly callback?: SealedUrl
  /**
   * Set if the service cancelled the interaction because some targets or reviewers do not exist.
   */
  readonly invalid?: true
}

/** Returns the state of a new interaction. */
export const newInteraction = (
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
/** Applies a change to the record. */
export function apply(
  state: InteractionState | null,
  event: Change & { readonly invalid?: true },
  at: number,
): InteractionState {
  if (!state) throw new Error('an interaction changed before it was created')
  return {
    ...state,
    record: applyChange(state.record, event, at),
    ...('invalid' in event && event.invalid && { invalid: true }),
  }
}

/** Whether the interaction has ended. */
export const isSettled = ({ record }: InteractionState): boolean =>
  settledStatuses.has(record.status)
/** Whether the interaction waits for answers or for a review. */
export const isOpen = (state: InteractionState | null): state is InteractionState =>
  state !== null && !state.deleted && !isSettled(state)

/**
 * Returns the time at which the interaction expires, in Unix milliseconds. Returns undefined if the
 * interaction never expires or has ended.
 */
export const expiry = (state: InteractionState | null): number | undefined =>
  isOpen(state) && state.record.expires_at !== undefined
    ? parseTimestamp(state.record.expires_at)
    : undefined
/**
 * Returns the status at a time in Unix milliseconds. An open interaction counts as expired from its
 * expiry time on, even before the event that records the expiry.
 */
export const statusAt = (state: InteractionState, at: number): Interaction['status'] =>
  (expiry(state) ?? Infinity) <= at ? 'expired' : state.record.status
