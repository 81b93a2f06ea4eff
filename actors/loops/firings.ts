/**
 * Firings for events of private sessions and private artifacts. A loop cannot decide whether its
 * last editor may read the event, so an errand checks this. If the editor may read it, the executor
 * of the errand sends the firing again, together with the editor's id. A run then starts only if
 * that principal is still the last editor.
 *
 * Invariants:
 * F1. No run starts for a restricted event that the loop's last editor may not read. An unknown
 *     editor has no access.
 * F2. A firing is stored until its errand has ended, but without the payload of its event.
 */
import { ERRANDS, type Errand, errandJob } from '../../protocol/errand.ts'
import { type Firing, restrictionOf } from '../../protocol/events/sources.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { HeldFiring, LoopCommands, LoopEvent } from '../../protocol/loops/events.ts'
import type { Cause, Decided } from '../actor.ts'
import { emptyDecision } from './draft.ts'
import { isExisting, type LoopState } from './state.ts'

/** Maximum number of firings of one loop that wait for their errands. */
const MAX_HELD = 1000

/**
 * Returns the id of the principal that last changed the loop or, if the loop was never changed,
 * that created it. Returns undefined if the last change was made under an earlier release, which
 * did not store the principal.
 */
function editorOf(state: LoopState): string | undefined {
  if (!isExisting(state)) return undefined
  const { owner, created_at, updated_at } = state.record
  return state.editor ?? (updated_at === created_at ? owner : undefined)
}

/**
 * Whether a firing must wait, because it is not known yet whether the last editor may read its
 * event.
 */
export const awaitsReadCheck = (state: LoopState, { source, reader }: Firing): boolean =>
  restrictionOf(source) !== undefined && (reader === undefined || reader !== editorOf(state))

/**
 * Stores a firing and enqueues its errand. A repeat changes nothing. A firing is dropped if the
 * last editor is unknown or does not own the private artifact of the event, or if too many firings
 * wait.
 */
export function holdFiring(
  state: LoopState,
  { trigger_id, source }: Firing,
  cause: Cause,
): Decided<LoopEvent, undefined> {
  const editor = editorOf(state)
  const { event: _, meta: __, record: ___, ...rest } = source
  if (editor === undefined || (source.private_owner ?? editor) !== editor) return emptyDecision
  const held = Object.values(state.firings ?? {})
  if (held.some((one) => one.trigger_id === trigger_id && one.source.id === source.id))
    return emptyDecision
  if (held.length >= MAX_HELD)
    return {
      events: [{ type: 'firing.dropped', trigger_id, source_event_id: source.id }],
      reply: undefined,
    }
  const { self, shard, at } = cause
  const job_id = cause.mint('job')
  const firing: HeldFiring = { trigger_id, editor, source: rest }
  return {
    events: [{ type: 'firing.held', job_id, firing }],
    tells: [
      {
        to: { kind: 'queue', id: `${shard}.${ERRANDS}` },
        name: 'queue.enqueue',
        input: errandJob(job_id, { kind: 'loop', id: self.id }, self.id, at),
      },
    ],
    reply: undefined,
  }
}

/** Removes a firing whose errand has ended, successfully or not. */
export const firingSettled = (
  state: LoopState,
  { job_id }: LoopCommands['job.settled']['input'],
): Decided<LoopEvent, undefined> =>
  getOwn(state.firings ?? {}, job_id)
    ? { ...emptyDecision, events: [{ type: 'firing.ended', job_id }] }
    : emptyDecision

/** Returns the errand of a job of the loop, for its executor. */
export function errandOf(state: LoopState, { job_id }: { readonly job_id: string }): Errand {
  const firing = getOwn(state.firings ?? {}, job_id)
  return firing && isExisting(state)
    ? { errand: 'firing', loop_id: state.record.id, ...firing }
    : { errand: 'none' }
}
