/** `baton env logs`: shows and follows a log of an environment's worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { api } from '../../../protocol/api.ts'
import { addedTo } from '../../../protocol/environments/added.ts'
import {
  environmentLimits,
  logNames,
  type WorkerLogs,
} from '../../../protocol/environments/schema.ts'
import { clientFor, connected } from '../connection/connection.ts'
import type { Shell } from '../shell.ts'
import { environmentId } from './find.ts'

interface Flags {
  readonly log: string
  readonly tail: number
  readonly follow?: true
}
/** Milliseconds between two reads of a log that is followed. */
const INTERVAL = 2000
/** Adds `baton env logs` to the command `env`. */
export function addLogs(parent: Command, shell: Shell): void {
  const command = connected(
    parent
      .command('logs')
      .description('Show a log of the worker of an environment')
      .argument('<env>', 'name or id of the environment'),
  )
    .addOption(new Option('--log <name>', 'log').choices(logNames).default('worker'))
    .option('--tail <lines>', 'number of lines', lines, 200)
    .option('-f, --follow', 'show new lines until Ctrl-C')
    .addHelpText('after', '\nExample:\n  $ baton env logs desk -f\n')
  command.action(
    shell.guarded(async (env: string) => {
      const { log: log_name, tail, follow } = command.opts<Flags>()
      const { transport } = clientFor(command, shell.env)
      const environment_id = await environmentId(transport, env)
      const read = async () =>
        (await transport.call(api['environment.worker_logs'], {
          environment_id,
          log_name,
          tail,
          max_bytes: environmentLimits.log_bytes,
        })) as WorkerLogs
      let { content } = await read()
      show(shell, content)
      while (follow) {
        await sleep(INTERVAL)
        const next = (await read()).content
        show(shell, addedTo(content, next) ?? next)
        content = next
      }
    }),
  )
}
const show = (shell: Shell, text: string): void => {
  if (text !== '') shell.print(text.replace(/\n$/, ''))
}
const lines = (text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > environmentLimits.log_lines)
    throw new InvalidArgumentError(
      `It must be a whole number from 1 to ${environmentLimits.log_lines}.`,
    )
  return value
}
