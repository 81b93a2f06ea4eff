/** Mistakes in a command line are one line: what is wrong, the nearest word that there is, and where to look. */
import type { Command } from 'commander'

/** Show usage errors of a command and of all its subcommands in one line. */
export function oneLineErrors(command: Command, path: readonly string[] = [command.name()]): void {
  command.configureOutput({
    outputError: (text, write) =>
      write(`${text.trim().replaceAll('\n', ' ')} See: ${path.join(' ')} --help\n`),
  })
  for (const child of command.commands) oneLineErrors(child, [...path, child.name()])
}
