/** The action that reads the end of a log of the environment. */
import { join } from 'node:path'
import { resultSizes } from '../../../protocol/environments/result-sizes.ts'
import { environmentLimits, logNames } from '../../../protocol/environments/schema.ts'
import type { Action } from '../../worker/options.ts'
import { ActionFault, choice, wholeNumber } from '../fault.ts'
import { openLog, tailOf } from '../log.ts'
import type { Secrets } from '../secrets.ts'

/**
 * Creates the action that returns the end of a log.
 * @param folder the folder with the logs; undefined if the worker writes none.
 */
export const tailLog =
  (folder: string | undefined, secrets: Secrets): Action =>
  async (parameters) => {
    const log_name = choice(parameters, 'log_name', logNames)
    const tail = wholeNumber(parameters, 'tail', {
      standard: 200,
      maximum: environmentLimits.log_lines,
    })
    const max_bytes = wholeNumber(parameters, 'max_bytes', {
      standard: resultSizes.usual,
      maximum: resultSizes.most,
    })
    const handle = folder === undefined ? undefined : await openLog(folder, log_name)
    if (folder === undefined || !handle)
      throw new ActionFault('not_found', `there is no log ${log_name}`)
    try {
      const content = secrets.redact(await tailOf(handle, tail, max_bytes))
      return { log_name, path: join(folder, `${log_name}.log`), tail, content }
    } finally {
      await handle.close()
    }
  }
