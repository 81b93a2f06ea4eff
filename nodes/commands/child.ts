/**
 * Runs a node of this program as a separate process, for callers that run several nodes on one
 * machine. The child writes to this process's output and sends a message when it is ready.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { programOf, sourceOf } from '../boot/program.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const loader = import.meta.resolve('@oxc-node/core/register')
/** Returns the node arguments that start this program. The program's own arguments follow them. */
export const programArguments = (): readonly string[] => programOf(root, loader)
/** Returns the node arguments that run a TypeScript file. */
export const sourceArguments = (file: string): readonly string[] => sourceOf(file, loader)

export interface Child {
  readonly pid: number
  /** Resolves when the child is ready. Rejects if it ends first. */
  readonly ready: Promise<void>
  /**
   * Resolves with the exit code, the signal that ended the child, or the error if it did not start.
   */
  readonly exited: Promise<string>
  kill(signal: NodeJS.Signals): void
}

/**
 * Starts a program of this checkout that sends a message when it is ready.
 * @param args arguments of node.
 * @param before a command that starts the program, such as one that enters a network namespace.
 */
export function startChild(
  name: string,
  args: readonly string[],
  settings: Readonly<Record<string, string>>,
  before: readonly string[] = [],
): Child {
  const [command = process.execPath, ...rest] = [...before, process.execPath, ...args]
  const child = spawn(command, rest, {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = new Promise<string>((done) => {
    child.once('exit', (code, signal) => done(signal ?? String(code)))
    child.once('error', (error) => done(error.message))
  })
  const ready = Promise.race([
    new Promise<void>((done) =>
      child.on('message', (message) => {
        // A node reports its NATS server before it is ready. Every other message means ready,
        // including the data that benchmarks send.
        if (typeof message !== 'object' || message === null || !('server' in message)) done()
      }),
    ),
    exited.then((how) => Promise.reject(new Error(`${name} did not start (${how})`))),
  ])
  ready.catch(() => {})
  return { pid: child.pid ?? 0, ready, exited, kill: (signal) => void child.kill(signal) }
}

/** Starts `baton node` with these settings, given as environment variables. */
export const startNodeProcess = (
  name: string,
  settings: Readonly<Record<string, string>>,
  before?: readonly string[],
): Child => startChild(name, [...programArguments(), 'node'], settings, before)
