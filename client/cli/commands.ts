/**
 * The client commands of `baton`: those that call a server, and those for profiles and completion.
 * Commands that start a server are in `nodes/`.
 */
import { type Command, InvalidArgumentError } from 'commander'
import { api } from '../../protocol/api.ts'
import { isId } from '../../protocol/ids.ts'
import { followChannel, followRun, type StreamReset } from '../follow.ts'
import { addArtifacts } from './artifacts/artifacts.ts'
import { addApply } from './blueprints/apply.ts'
import { addBlueprintExport } from './blueprints/export.ts'
import { addCompletion } from './completion.ts'
import { clientFor, connected } from './connection/connection.ts'
import { addLogin } from './connection/login.ts'
import { addProfiles } from './connection/profile.ts'
import { addSignInLink } from './connection/sign-in-link.ts'
import { addCall, addGroups } from './derived.ts'
import { addEnvironmentWorker } from './environment-worker.ts'
import { addEnvironments } from './environments/environments.ts'
import { addRunLogs } from './logs.ts'
import type { Environment } from './mistake.ts'
import { addRunBulk } from './runs/bulk.ts'
import { processShell, type Shell } from './shell.ts'
import { addStreams } from './streams.ts'
import { addExport } from './tables/export.ts'
import { addImport } from './tables/import.ts'
import { channelLine, lineOf } from './timeline.ts'
import { addWorker } from './work.ts'

/**
 * Adds the client commands to a program.
 * @param env environment variables.
 * @param shell the terminal; by default that of this process.
 */
export function addClientCommands(
  program: Command,
  env: Environment,
  shell: Shell = processShell(env),
): void {
  addWorker(program, shell)
  addEnvironmentWorker(program, shell)
  addFollow(program, shell)
  addRunLogs(program, shell)
  addArtifacts(program, shell)
  addEnvironments(program, shell)
  addStreams(program, shell)
  addApply(program, shell)
  addBlueprintExport(program, shell)
  addRunBulk(program, shell)
  addCall(program, shell)
  addGroups(program, shell)
  addFiles(program, shell)
  addProfiles(program, shell)
  addLogin(program, shell)
  addSignInLink(program, shell)
  addCompletion(program, shell)
}

/** Adds the commands that transfer rows between tables and files. */
function addFiles(program: Command, shell: Shell): void {
  const table = program.commands.find((command) => command.name() === 'table')
  if (!table) throw new Error('The group of tables has no command.')
  addImport(table, shell)
  addExport(table, shell)
}

function addFollow(program: Command, shell: Shell): void {
  const command = connected(
    program
      .command('follow')
      .description('Follow the timeline of a run until it ends, or a channel from now on')
      .argument('<run-or-channel-id>'),
  )
    .option('--json', 'print one JSON object per line')
    .option('--after <sequence>', 'start after this event', cursor)
    .addHelpText(
      'after',
      '\nExample:\n  $ baton follow run_01JZ3M0Q0R8XG4V2T6Y9ABCDEF\n' +
        'Exits with 0 if the run completed, and with 1 if it failed or was cancelled.\n',
    )
  command.action(
    shell.guarded(async (id: string) => {
      const { json, after } = command.opts<{ json?: true; after?: number }>()
      const options = {
        ...(after !== undefined && { after }),
        onReconnect: (reason: string) => shell.note(`(${reason}; reconnecting)`),
      }
      const baton = clientFor(command, shell.env)
      // Like `requireService`, but without a request for an invalid id.
      await (isId(id, 'channel')
        ? baton.channel.get({ id })
        : baton.transport.call(api['run.events'], { id, limit: 1 }))
      let last = ''
      const show = (type: string, data: unknown, line: () => string) => {
        if (type === 'stream.reset') shell.note(RESETS[(data as StreamReset).reason])
        else if (json) shell.print(JSON.stringify(data))
        else if (type === 'generation.delta') return
        else shell.print(line())
        if (Object.hasOwn(ENDS, type)) last = type
      }
      if (isId(id, 'channel'))
        for await (const { data, type } of followChannel(baton, id, options))
          show(type, data, () => channelLine(data))
      else {
        for await (const { data, type } of followRun(baton, id, options))
          show(type, data, () => lineOf(data))
        // With --after, the event that ended the run may not have been shown.
        const end = ENDS[last] ?? (await baton.run.get({ id })).status
        if (end !== 'completed') process.exitCode = 1
      }
    }),
  )
}
/** The notes for the reasons of a reset. */
const RESETS: Readonly<Record<StreamReset['reason'], string>> = {
  cursor_too_old: '(events before this one are no longer stored)',
  cursor_too_new: '(the service has lost its latest events; following from before the loss)',
}
/** The status of a run after each event that ends it. */
const ENDS: Readonly<Record<string, string>> = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
}
const cursor = (text: string): number => {
  if (!/^\d{1,16}$/.test(text))
    throw new InvalidArgumentError('It must be the sequence number of an event.')
  return Number(text)
}
