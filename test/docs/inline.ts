/**
 * Commands of the client in the inline code of documents. `faultOf` checks that a command exists
 * and has the flags that the document mentions.
 */
import { Command } from 'commander'
import { addClientCommands } from '../../client/cli/commands.ts'

/** Returns the inline code of a document, such as `run list`, with its line, counted from 1. */
export function inlineCode(markdown: string): { readonly line: number; readonly code: string }[] {
  let fenced = false
  return markdown.split('\n').flatMap((text, index) => {
    if (text.startsWith('```')) fenced = !fenced
    if (fenced) return []
    return [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => ({ line: index + 1, code }))
  })
}

const program = new Command('baton')
addClientCommands(
  program,
  {},
  { env: {}, print: () => {}, note: () => {}, guarded: (action) => action },
)
const childOf = (command: Command, name: string): Command | undefined =>
  command.commands.find((child) => child.name() === name)

/**
 * Returns the arguments of a command line of the client, or undefined if the code is something
 * else. The name of the program may be missing, as in `run list`.
 */
function wordsOf(code: string): string[] | undefined {
  const named = /^(?:npm run (?:--silent )?baton --|baton) (.+)$/.exec(code)?.[1]
  const words = (named ?? code).split(/\s+/)
  const [group = '', operation = ''] = words
  const parent = childOf(program, group)
  if (!parent) return undefined
  const isCommand = parent.commands.length > 0 && /^[a-z]+(-[a-z]+)*$/.test(operation)
  return named !== undefined || isCommand ? words : undefined
}

/**
 * Returns the fault of a command line in a document. Returns undefined if it has none, or if the
 * code is not a command line of the client.
 */
export function faultOf(code: string): string | undefined {
  const words = wordsOf(code)
  if (!words) return undefined
  let command = program
  for (const [index, word] of words.entries()) {
    const child = childOf(command, word)
    if (child) command = child
    else if (!word.startsWith('-') && command.commands.length > 0 && command !== program) {
      const known = command.commands.map((one) => one.name()).join(', ')
      if (index === 1 && !/[<…]/.test(word)) return `${word} is none of ${known}`
    }
  }
  // The words after `--` belong to another program.
  const end = words.indexOf('--')
  const flag = words
    .slice(0, end < 0 ? words.length : end)
    .find(
      (word) =>
        word.startsWith('--') &&
        word !== '--help' &&
        !command.options.some(({ long }) => long === word.replace(/=.*$/, '')),
    )
  return flag === undefined ? undefined : `${command.name()} has no ${flag}`
}
