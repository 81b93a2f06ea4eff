/**
 * `baton completion`: prints scripts that complete commands, flags and the values of flags in bash,
 * zsh and fish. The scripts are generated from the command definitions.
 */
import { Argument, Command, Option } from 'commander'
import type { Shell } from './shell.ts'

const shells = ['bash', 'zsh', 'fish'] as const

interface Flag {
  /** The long flag, and the short one if there is one. */
  readonly names: readonly string[]
  /** Whether the word after the flag is its value. */
  readonly valued: boolean
  /** The possible values, if they can be listed. */
  readonly choices: readonly string[]
}
/** The valid completions after a command path: the names of its subcommands, and its flags. */
interface Place {
  readonly path: readonly string[]
  readonly commands: readonly string[]
  readonly flags: readonly Flag[]
}

/** A command that reads flags from its arguments. Each of these flags has a value. */
export class CommandWithFlags extends Command {
  readonly flags: readonly string[]
  constructor(name: string, flags: readonly string[]) {
    super(name)
    this.flags = flags
  }
}

/**
 * An option with suggested values. Unlike the choices of an option, they are neither checked nor
 * part of the help.
 */
export class OptionWithSuggestions extends Option {
  readonly suggestions: readonly string[]
  constructor(flags: string, description: string, suggestions: readonly string[]) {
    super(flags, description)
    this.suggestions = suggestions
  }
}

/** Values that contain other characters are not completed, because shells divide or change them. */
const PLAIN = /^[\w.-]+$/
function flagOf(option: Option): Flag[] {
  if (option.long == null) return []
  const choices = option instanceof OptionWithSuggestions ? option.suggestions : option.argChoices
  return [
    {
      names: [option.long, ...(option.short ? [option.short] : [])],
      valued: option.required,
      choices: choices?.filter((text) => PLAIN.test(text)) ?? [],
    },
  ]
}

/** Returns the completions for each command path of a program. Hidden commands are omitted. */
function placesOf(command: Command, path: readonly string[] = []): Place[] {
  const help = command.createHelp()
  const shown = help.visibleCommands(command)
  const further = command instanceof CommandWithFlags ? command.flags : []
  const flags = [
    ...help.visibleOptions(command).flatMap(flagOf),
    ...further.map((name) => ({ names: [name], valued: true, choices: [] })),
  ]
  return [
    { path, commands: shown.map((child) => child.name()), flags },
    ...shown.flatMap((child) => placesOf(child, [...path, child.name()])),
  ]
}

/**
 * Returns the script for bash: one case per command path. zsh runs it with `bashcompinit`. After a
 * flag with a value, only its values are offered, or files if its values cannot be listed. bash
 * passes `--flag=value` as three words.
 */
function bash(places: readonly Place[]): string {
  const cases = places.map(({ path, commands, flags }) => {
    const words = [...commands, ...flags.map(({ names }) => names[0])]
    const switches = flags.flatMap(({ names, valued }) => (valued ? [] : names))
    const choices = flags.flatMap(({ names, choices }) =>
      choices.length > 0 ? names.map((name) => `${name}=${choices.join(',')}`) : [],
    )
    return (
      `    '${path.join(' ')}') words='${words.join(' ')}' ` +
      `switches='${switches.join(' ')}' choices='${choices.join(' ')}' ;;`
    )
  })
  return `_baton() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local path='' words='' switches='' choices='' word known
  if [[ $current == '=' ]]; then current=''
  elif [[ $previous == '=' ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
    case $word in -*) break ;; esac
    known="$path\${path:+ }$word"
    case " $_baton_paths " in *"|$known|"*) path=$known ;; *) break ;; esac
  done
  case $path in
${cases.join('\n')}
  esac
  case $previous in -*)
    case " $switches " in *" $previous "*) ;; *)
      words=''
      for word in $choices; do
        if [[ \${word%%=*} == "$previous" ]]; then words=\${word#*=}; words=\${words//,/ }; fi
      done ;;
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
_baton_paths='${places.map(({ path }) => `|${path.join(' ')}|`).join('')}'
complete -o default -F _baton baton
`
}
/** The completion system of zsh is loaded unless the user's configuration has done so. */
const zsh = (places: readonly Place[]): string =>
  '(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }\n' +
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
      ...flags.map(({ names: [long = '', short], valued, choices }) =>
        [
          `complete -c baton -n '${when}' -l ${long.slice(2)}`,
          ...(short === undefined ? [] : [`-s ${short.slice(1)}`]),
          ...(choices.length > 0 ? [`-x -a '${choices.join(' ')}'`] : valued ? ['-r'] : []),
        ].join(' '),
      ),
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
