/** The terminal as commands see it: standard output for results, standard error for remarks, and errors explained. */
import { explain } from './explain.ts'
import type { Environment } from './mistake.ts'

export interface Shell {
  readonly env: Environment
  /** Columns of the terminal that results go to; absent: they go to a file or a program. */
  readonly columns?: number
  /** Results: standard output. */
  print(line: string): void
  /** Remarks: standard error. */
  note(line: string): void
  /** An action whose expected failures are explained, and end the program with 1 when it has nothing more to do. */
  guarded<A extends readonly unknown[]>(
    action: (...given: A) => Promise<void>,
  ): (...given: A) => Promise<void>
}

/** The shell of this process. */
export const processShell = (env: Environment): Shell => {
  const note = (line: string) => void process.stderr.write(`${line}\n`)
  // The reader of the output has closed it, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(0)
  })
  return {
    env,
    ...(process.stdout.isTTY && { columns: process.stdout.columns || 80 }),
    note,
    print: (line) => void process.stdout.write(`${line}\n`),
    guarded:
      (action) =>
      async (...given) => {
        try {
          await action(...given)
        } catch (error) {
          const told = explain(error, env)
          if (told === undefined) throw error
          note(told)
          process.exitCode = 1
        }
      },
  }
}
