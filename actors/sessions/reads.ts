/** Reads of a session's committed state. Reads of files are in files.ts. */
import type { ActionCall } from '../../protocol/actions/invocation.ts'
import type { JsonObject } from '../../protocol/common.ts'
import type { Compacting, KnownResult } from '../../protocol/sessions/commands.ts'
import type { Generating } from '../../protocol/sessions/transcript/previews.ts'
import {
  type GenerationSpec,
  generationSpec,
  messagesOf,
} from '../../protocol/sessions/turns/request.ts'
import { presentTools } from '../../protocol/sessions/turns/tools.ts'
import { depthOf } from './draft.ts'
import { withFiles } from './files.ts'
import { summarySpec } from './history/compaction.ts'
import { progressOf, type SessionState } from './state.ts'
import { generationRows } from './turns/generate.ts'
import { jobOf } from './turns/jobs.ts'

/**
 * Returns the input of a job for its worker or executor, or null if the session no longer waits for
 * the job.
 */
export const jobSpec =
  (brand: string) =>
  (
    state: SessionState,
    { job_id }: { readonly job_id: string },
  ): GenerationSpec | { readonly parameters: JsonObject; readonly action_name: string } | null => {
    const found = jobOf(state, job_id)
    if (!found) return null
    if ('compaction' in found) return summarySpec(state, brand) ?? null
    const { work } = found.turn
    if (found.call !== undefined) {
      const action = work.segment?.calls[found.call]?.action
      return action ? { parameters: action.input, action_name: action.name } : null
    }
    return work.generation
      ? generationSpec(
          work.definition,
          brand,
          messagesOf(
            withFiles(state, generationRows(state, found.turn.record.id, work.generation.through)),
          ),
          presentTools(work.definition, brand, work.output_schema),
        )
      : null
  }
/**
 * Returns the action call of a job, with the agent as its actor. Returns null if the session no
 * longer waits for the job, or if the job is not an action call.
 */
export function actionCall(
  state: SessionState,
  { job_id }: { readonly job_id: string },
): ActionCall | null {
  const found = jobOf(state, job_id)
  if (!found || 'compaction' in found || found.call === undefined) return null
  const { record, work } = found.turn
  const action = work.segment?.calls[found.call]?.action
  return action
    ? {
        action_name: action.name,
        parameters: action.input,
        actor: { principal_id: record.agent_id, principal_type: 'agent' },
        origin: 'agent_tool_call',
        ...(record.run_id !== undefined && { run_id: record.run_id }),
        ...(work.loop_id !== undefined && { loop_id: work.loop_id }),
        ...(record.step_key !== undefined && { step_key: record.step_key }),
        ...(record.channel_exchange_id !== undefined && {
          channel_exchange_id: record.channel_exchange_id,
        }),
        session_id: record.session_id,
        agent_turn_id: record.id,
        tool_call_id: found.call,
        causation: work.causation ?? { depth: depthOf(found.turn) },
      }
    : null
}

/**
 * Returns the row that a generation writes. Returns null if the session no longer waits for the
 * job, or if the job is not a generation of a turn.
 */
export const generatingRow = (
  state: SessionState,
  { job_id }: { readonly job_id: string },
): Generating | null => {
  const found = jobOf(state, job_id)
  const open = found && 'turn' in found ? found.turn.work.generation : undefined
  if (!found || !('turn' in found) || open?.job_id !== job_id) return null
  const { id: turn_id, run_id } = found.turn.record
  return {
    turn_id,
    message_id: open.message_id,
    ...(run_id !== undefined && { run_id }),
    revision: state.revision,
  }
}
/** Returns the results of calls whose rows are not committed yet. */
export const uncommittedResults = ({ turns }: SessionState): KnownResult[] =>
  Object.values(turns).flatMap(({ record, work: { segment } }) =>
    Object.values(segment?.calls ?? {}).flatMap(({ index, result }) => {
      const block = segment?.content[index]
      return result && block?.type === 'tool_use'
        ? [{ turn_id: record.id, tool_name: block.name, result }]
        : []
    }),
  )
/** Returns the progress of the compaction. */
export const compactionProgress = (state: SessionState, _: unknown, at: number): Compacting => ({
  compaction: progressOf(state, at),
})
