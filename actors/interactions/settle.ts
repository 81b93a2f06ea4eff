/**
 * Ends an interaction with an outcome, by a cancellation or at its expiry, and deletes ended
 * interactions. The commit that ends an interaction also notifies the waiting run and opens the
 * delivery to a subscriber. After that, the interaction can only be deleted.
 */
import type { Api } from '../../protocol/api.ts'
import { type JsonObject, timestamp } from '../../protocol/common.ts'
import type { Input } from '../../protocol/contract.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import type {
  Change,
  Dispatch,
  InteractionEvent,
  Source,
} from '../../protocol/interactions/events.ts'
import { applyChange } from '../../protocol/interactions/events.ts'
import { type Interaction, settledStatuses } from '../../protocol/interactions/schema.ts'
import type { InteractionCommands, InteractionSettled } from '../../protocol/internal.ts'
import type { SealedUrl } from '../../protocol/masked-url.ts'
import { extended } from '../../protocol/rules/extended.ts'
import type { DeliveryOpening } from '../../protocol/webhooks/delivery.ts'
import type { Cause, Decided, Decision, Tell } from '../actor.ts'
import { reducePayload } from '../events/reduce-payload.ts'
import { partsOf } from '../sealed-url.ts'
import { expiry, type InteractionState, isOpen, statusAt } from './state.ts'

type Ended = { readonly events: InteractionEvent[]; readonly tells: Tell[] }
export const recordReply = (after: InteractionState): Interaction => after.record

/**
 * Ends an interaction.
 * @param state the state before the change.
 * @param change contains the new status; `completed_at` is added.
 * @param options `silent`: true if the waiting run itself requested the end, so that it need not be
 * notified; `invalid`: true if some targets or reviewers do not exist.
 */
export function conclude(
  { record, depth, chain, withheld, callback }: InteractionState,
  change: Change,
  cause: Cause,
  {
    silent = false,
    invalid = false,
  }: { readonly silent?: boolean; readonly invalid?: boolean } = {},
): Ended {
  const at = timestamp(cause.at)
  const full: Change = { ...change, set: extended(change.set, { completed_at: at }) }
  const after = applyChange(record, full, cause.at)
  const dispatch = dispatchOf(after, callback, cause)
  return {
    events: [
      {
        type: 'interaction.resolved',
        id: record.id,
        was: record.status,
        ...full,
        source: extended(sourceOf(after), {
          record: reducePayload(after),
          depth,
          ...(chain && { chain }),
        }),
        ...(withheld && { withheld }),
        ...(invalid && { invalid }),
        ...(dispatch && { dispatch }),
      },
    ],
    tells: [...(silent ? [] : tellsOf(after, invalid)), ...(dispatch ? [deliver(dispatch)] : [])],
  }
}

/**
 * Cancels an interaction on request. Agents may not cancel, because an agent must not decide that
 * no person is needed. A repeat changes nothing.
 */
export function cancel(
  state: InteractionState | null,
  { reason }: Input<Api['interaction.cancel']>,
  cause: Cause,
): Decision<InteractionEvent, Interaction> {
  if (!state || state.deleted) return refuse('not_found')
  const { record } = state
  if (cause.principal.type === 'agent')
    return refuse('forbidden', undefined, 'Agents cannot cancel interactions.')
  if (record.status === 'cancelled') return { events: [], reply: record }
  const status = statusAt(state, cause.at)
  if (settledStatuses.has(status))
    return refuse(
      'conflict',
      { status },
      `The interaction is ${status}; only an open one can be cancelled.`,
    )
  return {
    ...conclude(state, cancellation(reason, cause, cause.principal.id), cause),
    reply: recordReply,
  }
}

/** Cancels an interaction at the request of its run or turn. */
export const withdraw = (
  state: InteractionState | null,
  { reason }: InteractionCommands['interaction.withdraw']['input'],
  cause: Cause,
): Decided<InteractionEvent, undefined> =>
  isOpen(state)
    ? {
        ...conclude(state, cancellation(reason, cause, undefined), cause, { silent: true }),
        reply: undefined,
      }
    : { events: [], reply: undefined }

/**
 * Cancels an interaction because some of its targets or reviewers do not exist. The waiting step or
 * call then fails (`invalid`).
 */
export const invalidate = (
  state: InteractionState | null,
  { unknown }: InteractionCommands['interaction.invalidate']['input'],
  cause: Cause,
): Decided<InteractionEvent, undefined> =>
  isOpen(state) && unknown.length > 0
    ? {
        ...conclude(
          state,
          cancellation(
            `There is no such principal or role in the project: ${unknown.join(', ')}`.slice(
              0,
              1024,
            ),
            cause,
            undefined,
          ),
          cause,
          { invalid: true },
        ),
        reply: undefined,
      }
    : { events: [], reply: undefined }

const cancellation = (
  reason: string | undefined,
  { at }: Cause,
  actor_id: string | undefined,
): Change => ({
  set: { status: 'cancelled', ...(reason !== undefined && { cancel_reason: reason }) },
  lifecycle: {
    at: timestamp(at),
    status: 'cancelled',
    action: 'cancelled',
    ...(actor_id !== undefined && { actor_id }),
    ...(reason !== undefined && { comment: reason }),
  },
})

/** Expires an interaction that is due. An early or repeated wake is harmless. */
export function wake(
  state: InteractionState | null,
  _: unknown,
  cause: Cause,
): Decided<InteractionEvent, undefined> {
  const due = expiry(state)
  if (!state || due === undefined || due > cause.at) return { events: [], reply: undefined }
  return {
    ...conclude(
      state,
      {
        set: { status: 'expired' },
        lifecycle: { at: timestamp(cause.at), status: 'expired', action: 'expired' },
      },
      cause,
    ),
    reply: undefined,
  }
}

/** Deletes an interaction that has ended: lists and reads omit it from then on. */
export function remove(state: InteractionState | null): Decision<InteractionEvent, undefined> {
  if (!state || state.deleted) return refuse('not_found')
  const { id, status } = state.record
  if (isOpen(state))
    return refuseFields({
      field: 'id',
      message: `the interaction is ${status}; cancel it before you delete it`,
      actual: status,
    })
  return { events: [{ type: 'interaction.deleted', id }], reply: undefined }
}

const commentOf = ({ responses, resolving_response_id }: Interaction): string | undefined =>
  responses.find(({ id }) => id === resolving_response_id)?.comment

function tellsOf(after: Interaction, invalid: boolean): Tell[] {
  const {
    id,
    status,
    consumer: { run },
    responder,
    cancel_reason,
    outcome,
  } = after
  if (!run) return []
  const comment = commentOf(after)
  const input: InteractionSettled = {
    interaction_id: id,
    signal_name: run.signal_name,
    status: status as InteractionSettled['status'],
    ...(status === 'completed' && { value: outcome, ...(responder && { responder }) }),
    ...(comment !== undefined && { comment }),
    ...(cancel_reason !== undefined && { reason: cancel_reason }),
    ...(invalid && { invalid }),
  }
  return [{ to: { kind: 'run', id: run.run_id }, name: 'interaction.settled', input }]
}

function sourceOf(after: Interaction): Omit<Source, 'depth' | 'chain'> {
  const {
    id,
    kind,
    status,
    consumer,
    resolving_response_id,
    resolved_by,
    cancel_reason,
    run_id,
    outcome,
  } = after
  const responder = status === 'completed' ? after.responder : undefined
  const comment = commentOf(after)
  const session_id = consumer.agent_tool?.session_id
  const common = {
    interaction_id: id,
    kind,
    status,
    consumer_kind: consumer.kind,
    ...(responder && { responder_id: responder.user_id }),
    ...(resolving_response_id !== undefined && { resolving_response_id }),
  }
  const event: JsonObject = extended(common, {
    ...(status === 'completed' && { outcome }),
    ...(comment !== undefined && { comment }),
    ...(responder && { responder }),
    ...(resolved_by !== undefined && { resolved_by }),
    ...(cancel_reason !== undefined && { cancel_reason }),
    ...(run_id !== undefined && { run_id }),
    ...(session_id !== undefined && { session_id }),
  })
  return { event, meta: common }
}

/**
 * Returns the command that opens a delivery. The delivery's id has the slot of the interaction's
 * id, so both are in one shard. The commit that ends the interaction therefore also opens the
 * delivery.
 */
function deliver({ delivery_id, body, ...to }: Dispatch): Tell {
  const opening: DeliveryOpening = {
    to: { kind: 'callback', ...to },
    event_type: 'interaction.resolved',
    body,
  }
  return { to: { kind: 'delivery', id: delivery_id }, name: 'delivery.open', input: opening }
}

function dispatchOf(
  after: Interaction,
  callback: SealedUrl | undefined,
  cause: Cause,
): Dispatch | undefined {
  const {
    id,
    kind,
    status,
    consumer: { http_subscriber },
    responder,
    resolved_by,
    outcome,
  } = after
  if (!http_subscriber) return undefined
  const comment = commentOf(after)
  return {
    delivery_id: cause.mint('delivery'),
    ...http_subscriber,
    ...(callback && { callback_url: callback.url, ...partsOf(callback) }),
    // The outcome is sent in two fields, because some receivers read `outcome` and others read
    // `value`.
    body: {
      interaction_id: id,
      kind,
      status,
      outcome: status === 'completed' ? outcome : null,
      value: status === 'completed' ? outcome : null,
      comment: comment ?? null,
      responder: (status === 'completed' && responder) || null,
      resolved_by: resolved_by ?? null,
    },
  }
}
