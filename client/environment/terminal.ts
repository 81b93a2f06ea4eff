/**
 * Opens interactive terminals in the environment, based on node-pty. The package contains a native
 * addon, so it is loaded on first use. Without the package, only terminals are unavailable.
 */
import { closeSync, constants, openSync } from 'node:fs'
import type { IPty } from '@lydell/node-pty'
import type { WorkerTerminal } from '../worker/terminals.ts'
import { killLeftovers } from './process/leftovers.ts'

export interface TerminalOptions {
  /** Program with its arguments; an interactive bash if absent. */
  readonly command?: readonly string[]
  readonly columns: number
  readonly rows: number
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}
/** A program in a terminal of the environment. */
export interface Terminal extends WorkerTerminal {
  /** Sends input as if it were typed. Ctrl-C is byte 3. */
  write(data: Uint8Array | string): void
  /**
   * Sends SIGHUP, and kills the remaining processes after a grace period. `onExit` is called
   * afterwards.
   */
  close(): void
  /**
   * @param listener called once with the exit code, which is 128 plus the signal number after a
   * signal.
   */
  onExit(listener: (exit: { readonly exit_code: number }) => void): void
}

/** Milliseconds between SIGHUP and the kill of a terminal's processes. */
const KILL_DELAY_MS = 2000
/** The actual interface of the package. Its declarations lack `ptsName` and input as bytes. */
type BytePty = Omit<IPty, 'write'> & {
  write(data: string | Uint8Array): void
  /** Path of the terminal device. */
  readonly ptsName: string
}
const size = (value: number): number => Math.min(Math.max(Math.floor(value), 1), 1000)

/** Milliseconds between checks of whether the program has ended. */
const POLL_EVERY_MS = 25
const exists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const load = () => import('@lydell/node-pty')
/** Whether terminals can be opened on this machine. */
export const hasTerminals = (): Promise<boolean> =>
  load().then(
    () => true,
    () => false,
  )

/**
 * Opens a terminal.
 * @throws Error if terminals cannot be opened on this machine.
 */
export async function openTerminal({
  command = ['/bin/bash', '-i'],
  columns,
  rows,
  env,
  cwd,
}: TerminalOptions): Promise<Terminal> {
  const { spawn } = await load()
  const [program = '/bin/bash', ...args] = command
  const pty = spawn(program, args, {
    name: 'xterm-256color',
    cols: size(columns),
    rows: size(rows),
    cwd,
    env: { ...env, TERM: 'xterm-256color' },
    encoding: null,
  }) as IPty & BytePty
  let open = true
  // The worker keeps the terminal device open. Otherwise the output would end with the program, and
  // node-pty would drop output that it has read but not delivered.
  const own = openSync(pty.ptsName, constants.O_RDWR | constants.O_NOCTTY)
  let isRunning = true
  let isQuiet = false
  /**
   * Detects the end of the program. The remaining output is then read without pauses, because
   * node-pty drops output that is still unread 200 ms after the end. Pauses are not needed, because
   * the remaining output is at most what the kernel has buffered.
   */
  const watch = setInterval(() => {
    if (isRunning) {
      isRunning = exists(pty.pid)
      isQuiet = false
      if (!isRunning) pty.resume()
    } else if (isQuiet) {
      clearInterval(watch)
      closeSync(own)
    } else isQuiet = true
  }, POLL_EVERY_MS)
  pty.onData(() => {
    isQuiet = false
  })
  const exit = new Promise<number>((done) => {
    pty.onExit(({ exitCode, signal }) => {
      open = false
      done(signal === undefined || signal === 0 ? exitCode : 128 + signal)
    })
  })
  const whileOpen = (run: () => void) => {
    if (open) run()
  }
  return {
    write: (data) =>
      whileOpen(() => pty.write(typeof data === 'string' ? data : Buffer.from(data))),
    resize: (width, height) => whileOpen(() => pty.resize(size(width), size(height))),
    pause: () =>
      whileOpen(() => {
        if (isRunning) pty.pause()
      }),
    resume: () => whileOpen(() => pty.resume()),
    close: () =>
      whileOpen(() => {
        pty.resume()
        pty.kill('SIGHUP')
        const timer = setTimeout(() => void killLeftovers(pty.pid), KILL_DELAY_MS)
        void exit.then(() => clearTimeout(timer))
      }),
    onData: (listener) =>
      void pty.onData((data: string | Uint8Array) => listener(Buffer.from(data))),
    onExit: (listener) => void exit.then((exit_code) => listener({ exit_code })),
  }
}
