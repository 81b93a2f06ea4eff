/**
 * The terminal interface of commands: results go to standard output, remarks to standard error, and
 * errors are explained.
 */
import { createInterface } from 'node:readline'
import { isatty } from 'node:tty'
import progress from 'cli-progress'
import { plainText } from '../plain.ts'
import { explain } from './explain.ts'
import type { Environment } from './mistake.ts'

export interface Shell {
  readonly env: Environment
  /** Columns of the terminal; absent if standard output is not a terminal. */
  readonly columns?: number
  /**
   * Writes a result to standard output.
   * @param end written after the text; by default a line break.
   */
  print(text: string, end?: string): void
  /** Writes a remark to standard error. */
  note(line: string): void
  /**
   * Starts a progress bar on standard error. Absent if standard error is not a terminal.
   * @param what the items that are counted, such as `rows`.
   */
  readonly progress?: (what: string) => Progress
  /**
   * Asks a yes-or-no question. The answer is undefined if the user interrupts the program. Absent
   * if standard input or standard error is not a terminal.
   */
  readonly confirm?: (question: string) => Promise<boolean | undefined>
  /** Wraps an action. An expected failure is explained and sets the exit code to 1. */
  guarded<A extends readonly unknown[]>(
    action: (...given: A) => Promise<void>,
  ): (...given: A) => Promise<void>
}

interface Progress {
  /** Shows the completed fraction, from 0 to 1, and the number of items that are done. */
  update(part: number, count: number): void
  stop(): void
}
function startProgress(what: string): Progress {
  const bar = new progress.SingleBar(
    {
      format: `  {bar} {percentage} %, {count} ${what}`,
      clearOnComplete: true,
      hideCursor: true,
      barsize: 32,
    },
    progress.Presets.shades_classic,
  )
  bar.start(1000, 0, { count: 0 })
  clearProgress = () => {
    process.stderr.clearLine(0)
    process.stderr.cursorTo(0)
  }
  return {
    update: (part, count) => bar.update(Math.round(part * 1000), { count }),
    stop: () => {
      clearProgress = () => {}
      bar.stop()
    },
  }
}
/** Removes the line of the active progress bar, which draws it again at its next update. */
let clearProgress = (): void => {}

/**
 * Asks on standard error. Only `y` and `yes` confirm. End of input counts as no, and Ctrl-C yields
 * undefined.
 */
function confirm(question: string): Promise<boolean | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  return new Promise((answer) => {
    const end = (value: boolean | undefined) => {
      answer(value)
      lines.close()
    }
    lines.on('SIGINT', () => end(undefined))
    lines.on('close', () => answer(false))
    lines.question(`${question} [y/N] `, (text) => end(/^\s*y(es)?\s*$/i.test(text)))
  })
}

/** Ends the process, because standard output cannot be written. */
function endWithoutOutput({ code, message }: NodeJS.ErrnoException): void {
  // EPIPE: the reader has closed the pipe, as `head` does.
  if (code === 'EPIPE') process.exit(0)
  process.stderr.write(`Standard output cannot be written: ${message}\n`)
  process.exit(1)
}
/**
 * Continues a command without its remarks, for example a worker whose log is no longer read.
 */
const continueWithoutRemarks = (): void => {}

/** Handles errors of the standard streams. A further call changes nothing. */
function handleErrors(): void {
  process.stdout.off('error', endWithoutOutput).on('error', endWithoutOutput)
  process.stderr.off('error', continueWithoutRemarks).on('error', continueWithoutRemarks)
}

/**
 * Returns the shell of this process. The process exits silently if the reader of standard output
 * closes the pipe.
 */
export const processShell = (env: Environment): Shell => {
  // Remarks contain messages of other programs, which must not control the terminal.
  const note = (line: string) => {
    clearProgress()
    process.stderr.write(`${plainText(line)}\n`)
  }
  handleErrors()
  return {
    env,
    ...(process.stdout.isTTY && { columns: process.stdout.columns || 80 }),
    // The stream `process.stdin` is not used here: it makes a pipe non-blocking, so that a file
    // named `-` could not be read before its writer has written something.
    ...(isatty(0) && process.stderr.isTTY && { confirm }),
    ...(process.stderr.isTTY && { progress: startProgress }),
    note,
    print: (text, end = '\n') => void process.stdout.write(`${text}${end}`),
    guarded:
      (action) =>
      async (...given) => {
        try {
          await action(...given)
        } catch (error) {
          const explanation = explain(error, env)
          if (explanation === undefined) throw error
          note(explanation)
          process.exitCode = 1
        }
      },
  }
}
