/**
 * The interaction actor: a question to people, which ends at most once. The commit that ends it
 * notifies a waiting run or session, and opens the delivery to a subscriber. All other consumers
 * are notified by the source event `interaction.resolved`.
 *
 *     pending → completed | cancelled | expired
 *        ↕ review
 *     in_review → completed | cancelled | expired
 */

import type { Api } from '../../protocol/api.ts'
import type { Address } from '../../protocol/entry.ts'
import type { ServicePublication } from '../../protocol/events/sources.ts'
import type { InteractionEvent, Source } from '../../protocol/interactions/events.ts'
import type { ByLink, CallerRoles, LinkedRound } from '../../protocol/interactions/rows.ts'
import type { InteractionCommands } from '../../protocol/internal.ts'
import type { Actor, Effect } from '../actor.ts'
import { reducePayload } from '../events/reduce-payload.ts'
import { link } from './links.ts'
import { ask, create, open } from './open.ts'
import { respond, review } from './respond.ts'
import { notifyingSession } from './session.ts'
import { cancel, invalidate, remove, wake, withdraw } from './settle.ts'
import { apply, expiry, type InteractionState, isSettled, newInteraction } from './state.ts'

const publish = (
  event: Extract<InteractionEvent, { readonly source: Source }>,
  { id, project }: Address,
): readonly Effect[] => {
  const { type, source, withheld } = event
  const { session_id } = source.event
  if (withheld && typeof session_id !== 'string') return []
  const record =
    event.type === 'interaction.created' ? reducePayload(event.interaction) : source.record
  const input: ServicePublication = {
    event_type: type,
    source_kind: 'interaction',
    source_id: id,
    ...source,
    ...(record && { record }),
    ...(withheld && typeof session_id === 'string' && { private_session: session_id }),
  }
  return [{ tell: { to: { kind: 'events', id: project }, name: 'source.publish', input } }]
}

/** Creates the interaction actor. */
export const interactionActor = ({
  brand,
}: {
  readonly brand: string
}): Actor<
  InteractionState | null,
  InteractionEvent,
  Api,
  'interaction',
  InteractionCommands,
  {
    'interaction.respond': CallerRoles & ByLink
    'interaction.review': Partial<CallerRoles>
    'interaction.link': LinkedRound
  }
> => ({
  kind: 'interaction',
  initial: () => null,
  decide: {
    'interaction.create': create(brand),
    'interaction.open': open,
    'interaction.ask': notifyingSession(ask),
    'interaction.respond': notifyingSession(respond),
    'interaction.review': notifyingSession(review),
    'interaction.cancel': notifyingSession(cancel),
    'interaction.withdraw': notifyingSession(withdraw),
    'interaction.invalidate': notifyingSession(invalidate),
    'interaction.delete': remove,
    'interaction.link': link,
    wake: notifyingSession(wake),
  },
  evolve: {
    'interaction.created': newInteraction,
    'interaction.responded': apply,
    'interaction.submitted': apply,
    'interaction.reviewed': apply,
    'interaction.resolved': apply,
    'interaction.linked': (state) => state,
    'interaction.deleted': (state) => state && { ...state, deleted: true },
  },
  react: {
    'interaction.created': (event, self) => [
      { notify: { about: 'requested' } },
      ...publish(event, self),
    ],
    'interaction.submitted': () => [{ notify: { about: 'submitted' } }],
    'interaction.reviewed': () => [{ notify: { about: 'changes_requested' } }],
    'interaction.resolved': publish,
  },
  ask: {
    /** The record of the interaction; null if it does not exist or was deleted. */
    get: (state) => (state && !state.deleted ? state.record : null),
  },
  replayReply: (state) => state?.record,
  deadline: expiry,
  ended: (state) => state !== null && isSettled(state),
})
