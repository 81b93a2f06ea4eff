/**
 * The actor that stores the runs on which one bulk request with an idempotency key acts. Its id is
 * derived from the key, so a repeat of the request reaches the same actor and acts on the same
 * runs.
 *
 * Invariant: the runs never change. All commands to the actor have the command id of the key, so
 * the shard host answers every command after the first one as a repeat.
 */
import type {
  BulkRequestCommands,
  BulkRequestEvent,
  BulkSelection,
} from '../../protocol/runs/bulk-request.ts'
import type { Actor } from '../actor.ts'

type State = BulkSelection | null

/** The actor of a bulk request with an idempotency key. */
export const bulkRequestActor: Actor<
  State,
  BulkRequestEvent,
  Record<never, never>,
  'bulk_request',
  BulkRequestCommands
> = {
  kind: 'bulk_request',
  initial: () => null,
  decide: {
    'bulk_request.select': (_, { began, run_ids, after }) => ({
      events: [{ type: 'bulk_request.selected', began, run_ids, ...(after && { after }) }],
      reply: (state: BulkSelection) => state,
    }),
  },
  evolve: {
    'bulk_request.selected': (_, { began, run_ids, after }) => ({
      began,
      run_ids,
      ...(after && { after }),
    }),
  },
  ended: (state) => state !== null,
  final: (state) => state !== null,
  // The state is the reply, so it is not stored a second time.
  replayReply: (state) => state,
}
