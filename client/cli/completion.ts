/**
 * `baton completion`: prints scripts that complete commands and flags in bash, zsh and fish. The
 * scripts are generated from the command definitions.
 */
import { Argument, type Command } from 'commander'
import type { Shell } from './shell.ts'

const shells = ['bash', 'zsh', 'fish'] as const

/** The valid completions after a command path: the names of its subcommands and its long flags. */
interface Place {
  readonly path: readonly string[]
  readonly commands: readonly string[]
  readonly flags: readonly string[]
}

/** Returns the completions for each command path of a program. Hidden commands are omitted. */
function placesOf(command: Command, path: readonly string[] = []): Place[] {
  const shown = command.createHelp().visibleCommands(command)
  const flags = command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long }) => (long ? [long] : []))
  return [
    { path, commands: shown.map((child) => child.name()), flags },
    ...shown.flatMap((child) => placesOf(child, [...path, child.name()])),
  ]
}

/** Returns the script for bash: one case per command path. zsh runs it with `bashcompinit`. */
function bash(places: readonly Place[]): string {
  const cases = places.map(
    ({ path, commands, flags }) =>
      `    '${path.join(' ')}') words='${[...commands, ...flags].join(' ')}' ;;`,
  )
  return `_baton() {
  local current=\${COMP_WORDS[COMP_CWORD]} path='' words='' word known
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) break ;; esac
    known="$path\${path:+ }$word"
    case " $_baton_paths " in *"|$known|"*) path=$known ;; *) break ;; esac
  done
  case $path in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
_baton_paths='${places.map(({ path }) => `|${path.join(' ')}|`).join('')}'
complete -o default -F _baton baton
`
}
const zsh = (places: readonly Place[]): string =>
  `autoload -U +X bashcompinit && bashcompinit\n${bash(places)}`

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, flags }) => {
    const [group, operation] = path
    const when =
      group === undefined
        ? '__fish_use_subcommand'
        : operation === undefined
          ? `__fish_seen_subcommand_from ${group}`
          : `__fish_seen_subcommand_from ${group}; and __fish_seen_subcommand_from ${operation}`
    return [
      ...(operation === undefined && commands.length > 0
        ? [`complete -c baton -n '${when}' -f -a '${commands.join(' ')}'`]
        : []),
      ...flags.map((flag) => `complete -c baton -n '${when}' -l ${flag.slice(2)}`),
    ]
  })
  return `${lines.join('\n')}\n`
}

/** Adds `baton completion` to a program. */
export function addCompletion(program: Command, shell: Shell): void {
  program
    .command('completion')
    .description('Print a script that completes commands and flags in your shell')
    .addArgument(new Argument('<shell>').choices(shells))
    .addHelpText(
      'after',
      '\nExamples:\n  $ baton completion bash >> ~/.bashrc\n' +
        '  $ baton completion zsh >> ~/.zshrc\n' +
        '  $ baton completion fish > ~/.config/fish/completions/baton.fish\n',
    )
    .action((name: (typeof shells)[number]) => {
      const places = placesOf(program)
      shell.print((name === 'fish' ? fish : name === 'zsh' ? zsh : bash)(places).trimEnd())
    })
}
