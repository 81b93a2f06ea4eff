/** Runs commands of the command line in this process, against a running service. */
import { Command } from 'commander'
import { addClientCommands } from '../../../client/cli/commands.ts'
import { explain } from '../../../client/cli/explain.ts'

export interface CommandResult {
  readonly code: number
  readonly out: string
  /** Messages for people: progress, questions and explained errors. */
  readonly notes: string
}
interface Options {
  /**
   * The answer to the confirmation question. Without it, the command cannot ask, as if no terminal
   * existed.
   */
  readonly confirm?: boolean | 'interrupt'
  readonly url?: string
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Returns a function that runs a command.
 * @param home the folder of the command line's own files.
 */
export const commandRunner =
  (service: { readonly url: string; readonly key: string }, home: string) =>
  async (words: readonly string[], options: Options = {}): Promise<CommandResult> => {
    const { confirm, url = service.url, env: more } = options
    const printed: string[] = []
    const notes: string[] = []
    let code = 0
    const env = { BATON_URL: url, BATON_KEY: service.key, BATON_HOME: home, ...more }
    const program = new Command('baton')
    addClientCommands(program, env, {
      env,
      print: (line) => printed.push(line),
      note: (line) => notes.push(line),
      ...(confirm !== undefined && {
        confirm: async (question: string) => {
          notes.push(question)
          return confirm === 'interrupt' ? undefined : confirm
        },
      }),
      guarded:
        (action) =>
        async (...given) => {
          await action(...given).catch((error: Error) => {
            code = 1
            notes.push(explain(error, env) ?? String(error.stack))
          })
        },
    })
    await program.parseAsync(words, { from: 'user' })
    if (process.exitCode !== undefined) code = Number(process.exitCode)
    process.exitCode = undefined
    return { code, out: printed.join('\n'), notes: notes.join('\n') }
  }
