/**
 * Ids of tool uses. Models reuse ids, but clients treat equal ids as the same call, so ids must be
 * made unique in a session. The newest ids are remembered for this, including those of rows that
 * have left the window.
 */

import { limits } from '../../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { toolUses } from '../../../protocol/sessions/turns/blocks.ts'
import { type Remembered, recall, remember } from '../history/remembered.ts'
import type { SessionState } from '../state.ts'

type Calls = Remembered<true>
/** Returns the remembered ids after adding those of the tool uses in the given rows. */
export const withCalls = (
  calls: Calls,
  rows: readonly Pick<TranscriptMessage, 'content'>[],
): Calls =>
  rows
    .flatMap(({ content }) => toolUses(content))
    .reduce(
      (known, { id }) =>
        recall(known, id) ? known : remember(known, id, true, limits.known_calls),
      calls,
    )
/**
 * Returns the ids of tool uses in final rows. Snapshots of older releases lack the ids, which are
 * then collected from the window.
 */
export const callsOf = ({ calls, window }: Pick<SessionState, 'calls' | 'window'>): Calls =>
  calls ?? withCalls([], window)
