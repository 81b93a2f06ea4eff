/** The client of `probe.mjs`: sends commands to all threads of the measured processes. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Timeout for an answer in milliseconds. A thread that does not answer may have ended, and is
 * omitted.
 */
const ANSWER_WITHIN_MS = 30_000

type Command = 'count' | 'counted' | 'sample' | 'sampled' | 'allocations' | 'allocated'
/** The answer of one thread; `R` is the type of the result. */
interface Answer<R> {
  /** Name of the socket of the thread: `<process id>-<Node.js thread id>`. */
  readonly socket: string
  readonly pid: number
  /** The Linux thread id. */
  readonly task: number
  /** The name of the thread, from `threadName`. */
  readonly thread: string
  readonly result: R
}
/** Result of `counted`: bytes allocated on the heap, and pauses for garbage collection in µs. */
export interface Counted {
  readonly allocated: number
  readonly pause: number
}
export interface Probes {
  /** Flags for Node.js and settings of a process to be measured. */
  readonly node: readonly string[]
  readonly settings: Readonly<Record<string, string>>
  /**
   * Sends a command to each thread of all processes.
   * @param file returns the file in which a thread stores its result, given the name of the
   * thread's socket.
   */
  send<R = object>(name: Command, file?: (socket: string) => string): Promise<Answer<R>[]>
  close(): void
}

/**
 * Returns the name of a thread: `main`, `view` (the threads of views), `log` (the thread that
 * checkpoints write-ahead logs) or `documents`.
 * @param program file name of the program of the thread, in the sources or in the bundle.
 */
const threadName = (program: string): string =>
  /(?:^|\.)view(?:s|-thread)\./.test(program)
    ? 'view'
    : program.startsWith('log-thread')
      ? 'log'
      : program === 'main'
        ? 'main'
        : 'documents'

function ask(path: string, command: object): Promise<string | undefined> {
  return new Promise((done) => {
    let text = ''
    const socket = connect(path)
    socket.setTimeout(ANSWER_WITHIN_MS, () => socket.destroy())
    socket.on('data', (bytes) => {
      text += bytes.toString()
    })
    socket.on('error', () => {})
    socket.once('close', () => done(text === '' ? undefined : text))
    socket.write(`${JSON.stringify(command)}\n`)
  })
}

/** Creates the folder for the sockets, and the client. */
export function openProbes(): Probes {
  const folder = mkdtempSync(join(tmpdir(), 'baton-probe-'))
  const close = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', close)
  return {
    node: [`--import=${fileURLToPath(new URL('./probe.mjs', import.meta.url))}`],
    settings: { BENCH_PROBE_FOLDER: folder },
    send: async <R>(name: Command, file?: (socket: string) => string) => {
      const answers = await Promise.all(
        readdirSync(folder).map(async (socket) => {
          const text = await ask(join(folder, socket), { name, file: file?.(socket) })
          if (text === undefined) return []
          const { program, ...rest } = JSON.parse(text) as Omit<
            Answer<R>,
            'socket' | 'pid' | 'thread'
          > & {
            program: string
          }
          return [
            { ...rest, socket, pid: Number(socket.split('-')[0]), thread: threadName(program) },
          ]
        }),
      )
      return answers.flat()
    },
    close: () => {
      process.removeListener('exit', close)
      close()
    },
  }
}
