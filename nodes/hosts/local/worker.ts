/** Starts a worker process through `inside.mjs`, copies its output to its log, and stops it. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Duplex, Readable } from 'node:stream'
import { ProviderFault } from '../provider.ts'
import type { LogFile } from './logs.ts'
import { identify, kill, type ProcessId } from './processes.ts'

export interface WorkerCommand {
  readonly command: readonly string[]
  readonly variables: Readonly<Record<string, string>>
  /** Descriptor of the seccomp filter. */
  readonly filter?: number
  readonly stdout: LogFile
  readonly stderr: LogFile
  readonly signal: AbortSignal
}
export interface WorkerProcess {
  readonly id: ProcessId
  /** Resolves when the outermost process has ended. */
  readonly ended: Promise<Ended>
  /**
   * Resolves when the output of the ended process and its descendants is written, or after
   * `DRAIN_TIMEOUT_MS`.
   */
  drained(): Promise<void>
  /** Asks the worker to shut down gracefully. */
  stop(): void
  /** Kills the outermost process and its group. */
  kill(): void
}
interface Ended {
  /** Absent when a signal ended the process. */
  readonly code?: number
}
/** Milliseconds within which a worker process must start. */
const START_TIMEOUT_MS = 30_000
/** Milliseconds to wait for the end of the output. An unkillable process may keep it open. */
const DRAIN_TIMEOUT_MS = 5000
/** Milliseconds to wait for the unread messages of a process that has ended. */
const LAST_WORDS_MS = 2000
/** Maximum number of characters of a start error. */
const MAX_ERROR_LENGTH = 300

/** Copies a stream to a log. If the disk is full, the log ends, but the worker continues. */
async function copy(stream: Readable, log: LogFile, see: (chunk: Buffer) => void): Promise<void> {
  let writable = true
  try {
    for await (const chunk of stream) {
      see(chunk)
      if (writable) await log.write(chunk).catch(() => (writable = false))
    }
  } catch {
    // The stream was destroyed, so there is nothing more to copy.
  }
}

/**
 * Waits until `inside.mjs` reports whether the worker has started. Resolves with undefined, or with
 * the reason why it has not.
 */
function started(
  child: ChildProcess,
  control: Duplex,
  signal: AbortSignal,
): Promise<string | undefined> {
  return new Promise((done) => {
    let text = ''
    const end = (reason?: string) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      done(reason)
    }
    const abort = () => end('the start was cancelled')
    const timer = setTimeout(() => end('it did not start in time'), START_TIMEOUT_MS)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    control.on('data', (chunk: Buffer) => {
      // The text is limited, because a program in the sandbox could write an unlimited amount.
      if (text.length <= MAX_ERROR_LENGTH) text += chunk.toString()
      if (text.startsWith('started')) end()
      else if (text.includes('\n')) end(text.replace(/^failed /, '').trim())
    })
    child.once('error', (error) => end(error.message))
    child.once('exit', (code, name) => {
      // The last messages of the process may not have been read yet, so the end of the connection
      // is awaited, for at most `LAST_WORDS_MS`.
      const ended = () => end(`it ended with ${name ?? code}`)
      if (control.readableEnded) ended()
      control.once('end', ended)
      setTimeout(ended, LAST_WORDS_MS).unref()
    })
  })
}

/**
 * Starts a worker. Resolves when its process is running.
 * @throws ProviderFault when the worker does not start. Its process group has then been killed.
 *   Other processes may remain, which the caller finds by their marker.
 */
export async function startProcess(parts: WorkerCommand): Promise<WorkerProcess> {
  const [program = '', ...args] = parts.command
  const child = spawn(program, args, {
    cwd: '/',
    env: parts.variables,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', parts.filter ?? 'ignore', 'pipe'],
  })
  const control = child.stdio[4] as Duplex
  control.on('error', () => {})
  let error = ''
  let seen = false
  const copies = [
    copy(child.stdout as Readable, parts.stdout, () => {}),
    copy(child.stderr as Readable, parts.stderr, (chunk) => {
      if (!seen && error.length < MAX_ERROR_LENGTH) error += chunk.toString()
    }),
  ]
  const ended = new Promise<Ended>((done) => {
    child.once('exit', (code) => {
      // The worker may have left processes in its group.
      if (child.pid !== undefined) kill(-child.pid)
      done(code === null ? {} : { code })
    })
    child.once('error', () => done({}))
  })
  const drained = async (): Promise<void> => {
    control.destroy()
    const close = () => {
      child.stdout?.destroy()
      child.stderr?.destroy()
    }
    const timer = setTimeout(close, DRAIN_TIMEOUT_MS)
    await Promise.all(copies)
    clearTimeout(timer)
    close()
  }
  const end = () => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    kill(-child.pid)
    kill(child.pid)
  }
  const reason = await started(child, control, parts.signal)
  const id = reason === undefined ? await identify(child.pid ?? 0) : undefined
  seen = true
  if (reason !== undefined) {
    end()
    await ended
    await drained()
    const details = error.trim().slice(0, MAX_ERROR_LENGTH)
    throw new ProviderFault(
      `The worker cannot be started: ${reason}${details === '' ? '' : ` (${details})`}.`,
    )
  }
  return {
    // A process that has already ended cannot be identified. The empty `started` matches no
    // process.
    id: id ?? { pid: child.pid ?? 0, started: '' },
    ended,
    drained,
    stop: () => void control.write('stop\n'),
    kill: end,
  }
}
