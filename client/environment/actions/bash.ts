/** The action that runs a command with bash. */
import { commandTimeouts } from '../../../protocol/environments/actions.ts'
import { resultSizes } from '../../../protocol/environments/result-sizes.ts'
import type { Action } from '../../worker/options.ts'
import { ActionFault, optionalText, requiredText, textMap, wholeNumber } from '../fault.ts'
import { runProgram } from '../process/run.ts'
import type { Secrets } from '../secrets.ts'
import type { Workspace } from '../workspace.ts'

export interface CommandWorld {
  readonly workspace: Workspace
  readonly variables: Readonly<Record<string, string>>
  readonly secrets: Secrets
}
/** Default and maximum size in bytes of each output stream of a command. */
export const outputLimits = { standard: resultSizes.usual, maximum: resultSizes.most } as const

/**
 * Runs a command in the workspace. Its output is also written to the log of the run. A failed
 * command does not fail the job. The result contains its exit code.
 */
export const bash =
  ({ workspace, variables, secrets }: CommandWorld): Action =>
  async (parameters, { signal, log }) => {
    const command = requiredText(parameters, 'command')
    const timeout_seconds = wholeNumber(parameters, 'timeout_seconds', {
      standard: commandTimeouts.usual,
      maximum: commandTimeouts.most,
    })
    const max_bytes = wholeNumber(parameters, 'max_output_bytes', outputLimits)
    const given = textMap(parameters, 'env')
    const wrong = Object.keys(given).find((name) => name === '' || name.includes('='))
    if (wrong !== undefined)
      throw new ActionFault('invalid_parameters', `env has the invalid name ${wrong}`)
    const cwd = await workspace.folder(optionalText(parameters, 'dir'))
    const env = { ...variables, ...given }
    // A login shell is not used, because /etc/profile would replace PATH.
    const { stdout, stderr, exit_code } = await runProgram('/bin/bash', ['-c', command], {
      cwd,
      env,
      timeout_seconds,
      max_bytes,
      signal,
      onLine: (stream, line) => log.info(line, { stream }),
      redact: (text) => secrets.redact(text),
    })
    return { stdout: secrets.redact(stdout), stderr: secrets.redact(stderr), exit_code }
  }
