/** `baton logs`: shows and follows the lines that the workers of a run printed. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { api } from '../../protocol/api.ts'
import {
  type LogFilters,
  type LogLevel,
  logLevels,
  type RunLogLine,
  type RunLogPage,
} from '../../protocol/jobs/logs.ts'
import { followLogs } from '../follow.ts'
import { escapeControls, plainText } from '../plain.ts'
import { clientFor, connected } from './connection/connection.ts'
import type { Shell } from './shell.ts'

interface Flags {
  readonly follow?: true
  readonly step?: string
  readonly job?: string
  readonly level?: LogLevel
  readonly contains?: string
  readonly tail?: number
  readonly json?: true
}
/** Number of lines per page. */
const PAGE = 200

/** Adds `baton logs` to a program. */
export function addRunLogs(program: Command, shell: Shell): void {
  const command = connected(
    program
      .command('logs')
      .description('Show the lines that the workers of a run printed, oldest first')
      .argument('<run-id>'),
  )
    .option('-f, --follow', 'show new lines until the run ends')
    .option('--step <key>', 'only lines of this step')
    .option('--job <id>', 'only lines of this job')
    .addOption(
      new Option('--level <level>', 'only lines of this level or of a more severe level').choices(
        logLevels,
      ),
    )
    .option('--contains <text>', 'only lines that contain this text, regardless of case')
    .option(
      '--tail <lines>',
      'begin with the last <lines> lines; by default with the first line',
      whole,
    )
    .option('--json', 'print one JSON object per line')
    .addHelpText(
      'after',
      '\nExample:\n  $ baton logs run_01JZ3M0Q0R8XG4V2T6Y9ABCDEF --follow --level warn\n',
    )
  command.action(
    shell.guarded(async (id: string) => {
      const { follow, step, job, level, contains, tail, json } = command.opts<Flags>()
      const filters: LogFilters = {
        ...(step !== undefined && { step_key: step }),
        ...(job !== undefined && { job_id: job }),
        ...(level !== undefined && { level }),
        ...(contains !== undefined && { contains }),
      }
      const client = clientFor(command, shell.env)
      const { transport } = client
      const show = (line: RunLogLine) => shell.print(json ? JSON.stringify(line) : logLine(line))
      const page = async (query: Record<string, unknown>) =>
        (await transport.call(api['run.logs'], { id, ...filters, ...query })) as RunLogPage

      let after = 0
      if (tail !== undefined) {
        const newest: RunLogLine[] = []
        let before: number | undefined
        for (let more = true; more && newest.length < tail; ) {
          const limit = Math.min(PAGE, tail - newest.length)
          const found = await page({ order: 'desc', limit, after: before })
          newest.push(...found.items)
          before = found.next_after
          more = found.has_more
        }
        for (const line of newest.reverse()) show(line)
        after = newest.at(-1)?.sequence ?? 0
      }
      if (follow) {
        // Like `requireService`, but without a request for an invalid id.
        await client.run.get({ id })
        const onReconnect = (reason: string) => shell.note(`(${reason}; reconnecting)`)
        for await (const { data } of followLogs(client, id, filters, { after, onReconnect }))
          show(data)
      } else if (tail === undefined)
        for (let more = true; more; ) {
          const found = await page({ after, limit: PAGE })
          for (const line of found.items) show(line)
          after = found.next_after
          more = found.has_more
        }
    }),
  )
}
const whole = (text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > 1_000_000)
    throw new InvalidArgumentError('It must be a whole number from 1 to 1000000.')
  return value
}

/** Formats a line: time, level, step, text and fields. */
function logLine({ at, level, step_key = '', text, fields }: RunLogLine): string {
  const details = fields ? `  ${escapeControls(JSON.stringify(fields))}` : ''
  return `${at.slice(11, 23)}  ${level.padEnd(5)}  ${step_key.padEnd(12)}  ${plainText(text)}${details}`.trimEnd()
}
