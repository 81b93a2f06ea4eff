/**
 * Performs errands, the tasks that actors delegate as jobs. The actor supplies the content of an
 * errand when its job is claimed. An errand may be performed twice.
 */
import type { CapabilityReader } from '../../../gateway/queries/agent-capabilities.ts'
import type { Errand } from '../../../protocol/errand.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { Converter } from '../documents/converter.ts'
import { type Handler, NOT_OURS } from '../handler.ts'
import { refusedOutcome } from '../refused.ts'
import { convertFile } from './convert.ts'
import { endTurns, openExchange } from './exchange.ts'
import { fireTrigger } from './firing.ts'
import { confirmMembers, leaveChannels } from './leave.ts'
import { removeRecords } from './removal.ts'

/**
 * Performs an errand. Returns its result, or a refusal when it could not be performed. When the
 * signal is aborted, the result is no longer wanted.
 */
export type Runs<E extends Errand['errand']> = (
  asking: CapabilityReader,
  project: string,
  errand: Extract<Errand, { errand: E }>,
  signal: AbortSignal,
) => Promise<Readonly<Record<string, unknown>> | Refusal>

const tableOf = (converter: Converter): { readonly [E in Errand['errand']]: Runs<E> } => ({
  exchange: openExchange,
  end_turns: endTurns,
  leave: leaveChannels,
  confirm: confirmMembers,
  firing: fireTrigger,
  convert: convertFile(converter),
  remove_artifacts: removeRecords,
  none: async () => ({}),
})

/** Creates the handler of errands. */
export function errands(asking: CapabilityReader, converter: Converter): Handler {
  const table = tableOf(converter)
  return {
    takes: () => ({}),
    async perform({ project, job, signal }) {
      const errand = job.spec as unknown as Errand
      try {
        // The spec contains no errand if the actor no longer has the job.
        const perform = table[errand.errand ?? 'none']
        const result = await perform(asking, project, errand as never, signal)
        return isRefusal(result)
          ? refusedOutcome(result)
          : { status: 'completed', result: { ...result } }
      } catch (error) {
        if (signal.aborted) return NOT_OURS
        throw error
      }
    },
  }
}
