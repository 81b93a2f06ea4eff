/**
 * Shortens command-line usage errors to one line: the error, the closest valid name, and the help
 * command.
 */
import type { Command } from 'commander'
import { closest } from '../suggest.ts'
import { connectionFlags } from './connection/connection.ts'

/** Returns the error for an unknown name, with the closest known name if one is close. */
export function unknownName(kind: string, name: string, known: readonly string[]): string {
  const meant = closest(name, known)
  return `error: unknown ${kind} '${name}'${meant === undefined ? '' : ` (Did you mean ${meant}?)`}`
}

/**
 * Adds `baton help`, which accepts the whole path of a command, such as `help workflow create`. The
 * help command of commander accepts one name only.
 */
export function addHelp(program: Command): void {
  program
    .command('help')
    .description('Show the help of a command')
    .argument('[command...]', 'name of the command, such as workflow create')
    .addHelpText('after', '\nExample:\n  $ baton help workflow create\n')
    .action((path: readonly string[]) => {
      let command = program
      for (const name of path) {
        const children = command.commands
        const child = children.find((one) => [one.name(), ...one.aliases()].includes(name))
        if (child) command = child
        else
          command.error(
            unknownName(
              'command',
              name,
              command
                .createHelp()
                .visibleCommands(command)
                .map((one) => one.name()),
            ),
          )
      }
      command.outputHelp()
    })
}

/**
 * Returns advice for an error about a connection flag, such as `--project`, that precedes the
 * operation, and for `--json` in place of a format; otherwise an empty text.
 */
function advice(error: string, command: Command): string {
  const flag = /unknown option '--([a-z]+)/.exec(error)?.[1]
  if (flag === 'json' && command.options.some(({ long }) => long === '--format'))
    return ' Write -o json.'
  return flag !== undefined && connectionFlags.includes(flag)
    ? ` Write --${flag} after the operation, as in: baton run list --${flag} <value>.`
    : ''
}

/** Configures a command and its subcommands to show usage errors on one line. */
export function oneLineErrors(command: Command, path: readonly string[] = [command.name()]): void {
  command.configureOutput({
    outputError: (text, write) =>
      write(
        `${text.trim().replaceAll('\n', ' ')}${advice(text, command)} See: ${path.join(' ')} --help\n`,
      ),
  })
  for (const child of command.commands) oneLineErrors(child, [...path, child.name()])
}
