/**
 * Links that let targets answer without signing in. The gateway seals the links and adds them to
 * the reply. The actor only decides, and records in the journal, which targets get a link.
 */

import type { Api } from '../../protocol/api.ts'
import type { Input, Reply } from '../../protocol/contract.ts'
import { refuse, refuseFields } from '../../protocol/errors.ts'
import type { InteractionEvent } from '../../protocol/interactions/events.ts'
import { linkableTargets, roundOf } from '../../protocol/interactions/resolve.ts'
import type { LinkedRound } from '../../protocol/interactions/rows.ts'
import type { Cause, Decision } from '../actor.ts'
import { expiry, type InteractionState } from './state.ts'

/**
 * Issues links for the given targets or, by default, for all principals among the targets that can
 * still answer. The journal does not contain the links.
 */
export function link(
  state: InteractionState | null,
  { target_user_ids, round }: Input<Api['interaction.link']> & LinkedRound,
  { at }: Cause,
): Decision<InteractionEvent, Reply<Api['interaction.link']>> {
  if (!state || state.deleted) return refuse('not_found')
  const { record } = state
  if (record.status !== 'pending' || (expiry(state) ?? Infinity) <= at)
    return refuse('conflict', { status: record.status }, 'Only a pending interaction has links.')
  if (round !== roundOf(record))
    return refuse(
      'conflict',
      { review_round: roundOf(record) },
      'A new round has started; request the links of that round.',
    )
  const able = linkableTargets(record)
  const odd = (target_user_ids ?? []).findIndex((target) => !able.includes(target))
  if (odd >= 0)
    return refuseFields({
      field: `target_user_ids[${odd}]`,
      message: 'is not a person among the targets who can still answer',
      actual: target_user_ids?.[odd],
    })
  return {
    events: [
      {
        type: 'interaction.linked',
        id: record.id,
        targets: [...new Set(target_user_ids ?? able)],
        round,
      },
    ],
    reply: { items: [] },
  }
}
