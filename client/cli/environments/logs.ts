/** `baton env logs`: shows and follows a log of an environment's worker. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { api } from '../../../protocol/api.ts'
import { addedTo } from '../../../protocol/environments/added.ts'
import {
  environmentLimits,
  type LogName,
  logNames,
  type WorkerLogs,
} from '../../../protocol/environments/schema.ts'
import { type Code, errors } from '../../../protocol/errors.ts'
import { BatonError } from '../../errors.ts'
import { plainText } from '../../plain.ts'
import { followStreams, type StreamMessage } from '../../streams/follow.ts'
import { clientFor, connected, requireService } from '../connection/connection.ts'
import type { Shell } from '../shell.ts'
import { environmentId } from './find.ts'

interface Flags {
  readonly log: LogName
  readonly tail: number
  readonly follow?: true
}
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
      const client = clientFor(command, shell.env)
      const { transport } = client
      const environment_id = await environmentId(transport, env)
      if (!follow) {
        const { content } = (await transport.call(api['environment.worker_logs'], {
          environment_id,
          log_name,
          tail,
          max_bytes: environmentLimits.log_bytes,
        })) as WorkerLogs
        if (content !== '') shell.print(plainText(content.replace(/\n$/, '')))
        return
      }
      await requireService(client)
      const frames = followStreams(
        client,
        [
          {
            id: 'log',
            topic: 'environment_log',
            target: environment_id,
            filter: { log_name, tail },
          },
        ],
        { onReconnect: (reason) => shell.note(`(${reason}; reconnecting)`) },
      )
      let last = ''
      try {
        for await (const text of shownTexts(newTexts(frames))) {
          shell.print(text, '')
          last = text
        }
      } finally {
        if (last !== '' && !last.endsWith('\n')) shell.print('')
      }
    }),
  )
}

/**
 * Makes texts safe to show in a terminal. A line that has not ended yet is yielded up to its first
 * control sequence, because the sequence may be incomplete.
 */
export async function* shownTexts(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = ''
  for await (const text of texts) {
    rest += text
    const line = rest.lastIndexOf('\n') + 1
    const sequence = rest.slice(line).search(/[\x1b\x90\x98\x9b\x9d-\x9f]/)
    const end = sequence < 0 ? rest.length : line + sequence
    const shown = plainText(rest.slice(0, end))
    rest = rest.slice(end)
    if (shown !== '') yield shown
  }
}

/** The data of a `log.text` frame. */
interface LogText {
  readonly text: string
  readonly reset?: true
}
/**
 * Yields the text that is appended to the log of a worker. After a reconnection, the stream sends
 * the newest lines again. The part of them that was already yielded is omitted.
 * @param frames the frames of one subscription with the topic `environment_log`.
 * @throws BatonError if the service refuses the subscription, or the access is lost.
 */
export async function* newTexts(frames: AsyncIterable<StreamMessage>): AsyncGenerator<string> {
  let end = ''
  for await (const { event, data } of frames) {
    const { error } = data as { error?: { code: Code; message: string; details?: object } }
    if (error)
      throw new BatonError(errors[error.code]?.status ?? 500, error.code, error.message, {
        ...error.details,
      })
    if (event !== 'log.text') continue
    const { text, reset } = data as unknown as LogText
    const added = reset ? (addedTo(end, text) ?? text) : text
    // A frame with `reset` has at most this many bytes.
    end = (end + added).slice(-environmentLimits.log_bytes)
    yield added
  }
}
const lines = (text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > environmentLimits.log_lines)
    throw new InvalidArgumentError(
      `It must be a whole number from 1 to ${environmentLimits.log_lines}.`,
    )
  return value
}
