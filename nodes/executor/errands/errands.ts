/** Errands of actors, as jobs: each is told by its owner when it is handed out, and may be done twice. */
import type { Directory } from '../../../gateway/directory.ts'
import type { World } from '../../../gateway/ports.ts'
import type { Errand } from '../../../protocol/errand.ts'
import { isRefusal, type Refusal } from '../../../protocol/errors.ts'
import { refused } from '../builtin/builtin.ts'
import type { Handler } from '../handler.ts'
import { openExchange } from './exchange.ts'
import { leaveChannels } from './leave.ts'

/** What errands are done with. */
export interface Running {
  readonly world: World
  readonly directory: Directory
}
/** Gives the result of an errand, or why it was not done. */
export type Runs<E extends Errand['errand']> = (running: Running, project: string, errand: Extract<Errand, { errand: E }>) => Promise<Readonly<Record<string, unknown>> | Refusal>

const table: { readonly [E in Errand['errand']]: Runs<E> } = { exchange: openExchange, leave: leaveChannels, none: async () => ({}) }

/** The handler of errands. */
export const errands = (running: Running): Handler => ({
  takes: () => ({}),
  async perform({ project, job }) {
    const errand = job.spec as unknown as Errand
    const result = await table[errand.errand](running, project, errand as never)
    return isRefusal(result) ? refused(result) : { status: 'completed', result: { ...result } }
  },
})
