/**
 * Performs errands, the tasks that actors delegate as jobs. The actor supplies the content of an
 * errand when its job is claimed. An errand may be performed twice.
 */
import type { CapabilityReader } from '../../../gateway/queries/agent-capabilities.ts'
import type { Errand } from '../../../protocol/errand.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import type { Handler } from '../handler.ts'
import { refused } from '../refused.ts'
import { removeArtifacts } from './artifacts.ts'
import { openExchange } from './exchange.ts'
import { fireTrigger } from './firing.ts'
import { confirmMembers, leaveChannels } from './leave.ts'

/** Performs an errand. Returns its result, or a refusal when it could not be performed. */
export type Runs<E extends Errand['errand']> = (
  asking: CapabilityReader,
  project: string,
  errand: Extract<Errand, { errand: E }>,
) => Promise<Readonly<Record<string, unknown>> | Refusal>

const table: { readonly [E in Errand['errand']]: Runs<E> } = {
  exchange: openExchange,
  leave: leaveChannels,
  confirm: confirmMembers,
  firing: fireTrigger,
  remove_artifacts: removeArtifacts,
  none: async () => ({}),
}

/** The handler of errands. */
export const errands = (asking: CapabilityReader): Handler => ({
  takes: () => ({}),
  async perform({ project, job }) {
    const errand = job.spec as unknown as Errand
    const result = await table[errand.errand](asking, project, errand as never)
    return isRefusal(result) ? refused(result) : { status: 'completed', result: { ...result } }
  },
})
