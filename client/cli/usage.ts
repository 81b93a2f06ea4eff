/**
 * Shortens command-line usage errors to one line: the error, the closest valid name, and the help
 * command.
 */
import type { Command } from 'commander'

/** Configures a command and its subcommands to show usage errors on one line. */
export function oneLineErrors(command: Command, path: readonly string[] = [command.name()]): void {
  command.configureOutput({
    outputError: (text, write) =>
      write(`${text.trim().replaceAll('\n', ' ')} See: ${path.join(' ')} --help\n`),
  })
  for (const child of command.commands) oneLineErrors(child, [...path, child.name()])
}
