/**
 * Performs one command for each of several runs, and reports the outcome of each. A refusal for one
 * run does not affect the others.
 */
import type { Origin } from '../../../protocol/entry.ts'
import { errorBody, isRefusal, refuse } from '../../../protocol/errors.ts'
import { isId } from '../../../protocol/ids.ts'
import type { Caller } from '../../auth/authenticate.ts'
import type { Edge } from '../../call.ts'
import { concurrently } from '../../timing.ts'
import { recoveryExtra } from './recovery.ts'

/** Maximum number of concurrent commands of one request. */
const MAX_CONCURRENT = 16

/** The outcome of the command for one run. */
interface RunOutcome {
  readonly run_id: string
  readonly ok: boolean
  readonly status?: string
  readonly error?: { readonly code: string; readonly message: string }
}
/** The command that is performed for each run. */
interface EachRun {
  readonly project: string
  readonly caller: Caller
  /** Name of the command. */
  readonly name: string
  readonly origin: Origin
  /** Returns the id of the command for a run. It is the same when the request is repeated. */
  readonly commandId: (run_id: string, index: number) => string
  /** If present, the runs remember the command as if it had an idempotency key. */
  readonly fingerprint?: string | undefined
  readonly input: Readonly<Record<string, unknown>>
}

/** Performs the command for each id, and returns the outcomes in order. The ids are distinct. */
export const commandRuns = (
  edge: Edge,
  { project, caller, name, origin, commandId, fingerprint, input }: EachRun,
  ids: readonly string[],
): Promise<RunOutcome[]> =>
  concurrently(MAX_CONCURRENT, ids, async (run_id, index): Promise<RunOutcome> => {
    const known = !isId(run_id, 'run')
      ? refuse('not_found')
      : name === 'run.retry'
        ? await recoveryExtra(edge, caller, project, run_id)
        : {}
    const outcome = isRefusal(known)
      ? known
      : await edge.world.commandRow({
          project,
          kind: 'run',
          name,
          origin,
          ...(fingerprint !== undefined && { fingerprint }),
          id: run_id,
          command_id: commandId(run_id, index),
          input: { ...input, project, id: run_id, ...known },
        })
    if (isRefusal(outcome)) {
      const { code, message } = errorBody(outcome).error
      return { run_id, ok: false, error: { code, message } }
    }
    const status = (outcome.reply as { status?: unknown } | undefined)?.status
    return { run_id, ok: true, ...(typeof status === 'string' && { status }) }
  })
