/**
 * The terminal interface of commands: results go to standard output, remarks to standard error, and
 * errors are explained.
 */
import { explain } from './explain.ts'
import type { Environment } from './mistake.ts'

export interface Shell {
  readonly env: Environment
  /** Columns of the terminal; absent if standard output is not a terminal. */
  readonly columns?: number
  /** Writes a result to standard output. */
  print(line: string): void
  /** Writes a remark to standard error. */
  note(line: string): void
  /** Wraps an action: expected failures are explained, and the exit code becomes 1. */
  guarded<A extends readonly unknown[]>(
    action: (...given: A) => Promise<void>,
  ): (...given: A) => Promise<void>
}

/** The shell of this process. */
export const processShell = (env: Environment): Shell => {
  const note = (line: string) => void process.stderr.write(`${line}\n`)
  // EPIPE: the reader has closed the pipe, as `head` does.
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
