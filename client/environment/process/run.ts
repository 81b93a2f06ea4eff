/**
 * Runs a program and captures its output.
 *
 * Invariants:
 * R1. The program is the leader of its own session and process group.
 * R2. Before the result is returned, all processes that the program started and that `leftovers.ts`
 *     can find are killed.
 * R3. An output stream that is still open after these processes are killed delays the result by at
 *     most 1 s.
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { constants } from 'node:os'
import { ActionFault } from '../fault.ts'
import { killLeftovers, signalGroup } from './leftovers.ts'
import { Lines } from './lines.ts'
import { Capture } from './output.ts'

/**
 * Timing in milliseconds. `grace` is the time between the termination signal and the kill of a
 * program that has reached its timeout. `drain` is the time for which output streams may stay open
 * after the leftover processes have been killed.
 */
const timing = { grace: 2000, drain: 1000 } as const
/** Exit code of a program that reached its timeout, as in timeout(1). */
const TIMED_OUT = 124
/** Name of the variable that marks the processes of one command. */
const MARK = 'WORKER_COMMAND_ID'

export interface RunOptions {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly timeout_seconds: number
  /** Maximum number of bytes of each stream in the result. */
  readonly max_bytes: number
  /** Kills the program immediately when aborted. */
  readonly signal: AbortSignal
  /** Receives each line of the output while the program runs. */
  readonly onLine?: (stream: 'stdout' | 'stderr', line: string) => void
  /** Removes credentials from a line before it is divided. */
  readonly redact?: (text: string) => string
}
export interface Ended {
  readonly stdout: string
  readonly stderr: string
  /** Exit code of the program: 128 plus the signal number after a signal, 124 after a timeout. */
  readonly exit_code: number
}

/**
 * Starts a program.
 * @throws ActionFault `not_started` if the system refuses the arguments. Other failures are events
 * of the process.
 */
function started(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
) {
  try {
    return spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason =
      code === 'E2BIG'
        ? 'the command or its variables are too long; write a file, and run that'
        : message
    throw new ActionFault('not_started', reason)
  }
}

/**
 * Runs a program until it ends, reaches its timeout or is aborted.
 * @throws ActionFault `not_started` if the program cannot be started; the abort reason if the
 * signal has aborted.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  { cwd, env, timeout_seconds, max_bytes, signal, onLine, redact }: RunOptions,
): Promise<Ended> {
  signal.throwIfAborted()
  const mark = randomUUID()
  const child = started(program, args, cwd, { ...env, [MARK]: mark })
  const [stdout, stderr] = [new Capture(max_bytes), new Capture(max_bytes)]
  child.stdout.on('data', (chunk: Buffer) => stdout.add(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.add(chunk))
  if (onLine)
    for (const name of ['stdout', 'stderr'] as const) {
      const lines = new Lines((line) => onLine(name, line), redact)
      child[name].on('data', (chunk: Buffer) => lines.add(chunk)).once('close', () => lines.end())
    }
  const ended = new Promise<number>((done, failed) => {
    child.once('error', failed)
    child.once('exit', (code, name) =>
      done(code ?? 128 + (name === null ? 0 : constants.signals[name])),
    )
  })
  const closed = new Promise<void>((done) => child.once('close', () => done()))
  const group = child.pid
  if (group === undefined) {
    const { message } = await ended.then(
      () => new Error(`${program} did not start`),
      (error: Error) => error,
    )
    throw new ActionFault('not_started', message)
  }
  let timedOut = false
  const timers = [
    setTimeout(() => {
      timedOut = true
      signalGroup(group, 'SIGTERM')
      timers.push(setTimeout(() => signalGroup(group, 'SIGKILL'), timing.grace))
    }, timeout_seconds * 1000),
  ]
  const abort = () => signalGroup(group, 'SIGKILL')
  signal.addEventListener('abort', abort)
  try {
    const code = await ended
    await killLeftovers(group, `${MARK}=${mark}`)
    timers.push(
      setTimeout(() => {
        child.stdout.destroy()
        child.stderr.destroy()
      }, timing.drain),
    )
    await closed
    signal.throwIfAborted()
    if (timedOut) stderr.add(Buffer.from(`\n[killed after ${timeout_seconds} s]\n`))
    return {
      stdout: stdout.text(),
      stderr: stderr.text(),
      exit_code: timedOut ? TIMED_OUT : code,
    }
  } finally {
    for (const timer of timers) clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}
