/**
 * Ids of tool uses. They are unique in a session, because clients take equal ones for one call; models repeat theirs. The newest
 * are remembered, also those whose rows are shown to the model no more.
 */
import { toolUses } from '../../../protocol/sessions/turns/blocks.ts'
import { limits } from '../../../protocol/sessions/limits.ts'
import type { TranscriptMessage } from '../../../protocol/sessions/schema.ts'
import { recall, remember, type Remembered } from '../history/remembered.ts'
import type { SessionState } from '../state.ts'

type Calls = Remembered<true>
/** Ids with those of more rows. */
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
/** Ids of final rows. A state that was stored before they were remembered has those of its window. */
export const callsOf = ({ calls, window }: Pick<SessionState, 'calls' | 'window'>): Calls =>
  calls ?? withCalls([], window)
