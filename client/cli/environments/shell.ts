/**
 * `baton env shell`: opens an interactive terminal in an environment, or runs one command there. If
 * standard input and output are a terminal, all keys, including Ctrl-C, are sent to the
 * environment. Otherwise, both are piped, without echo and without carriage returns.
 */
import { once } from 'node:events'
import type { Command } from 'commander'
import { openTerminal, type TerminalSession } from '../../terminal.ts'
import { clientFor, connected, connectionOf } from '../connection/connection.ts'
import { standardInput } from '../files/standard-input.ts'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { environmentId } from './find.ts'

/** Terminal size that is used if the actual size is unknown. */
const STANDARD = { columns: 80, rows: 24 } as const
/** The end of input in a terminal: Ctrl-D. */
const END_OF_INPUT = Buffer.from([4])

/** Adds `baton env shell` to the command `env`. */
export function addShell(parent: Command, shell: Shell): void {
  const command = connected(
    parent
      .command('shell')
      .description('Open a terminal in an environment, or run one command there')
      .argument('<env>', 'name or id of the environment')
      .argument('[command...]', 'program with its arguments, after --'),
  ).addHelpText(
    'after',
    '\nExamples:\n  $ baton env shell desk\n  $ baton env shell desk -- npm test\n' +
      '  $ baton env shell desk < setup.sh\n' +
      'An environment without a worker is started. The exit code is that of the program.\n',
  )
  command.action(
    shell.guarded(async (env: string, words: readonly string[]) => {
      const { transport } = clientFor(command, shell.env)
      const environment_id = await environmentId(transport, env)
      const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
      const program = isTerminal ? words : piped(words)
      const input = isTerminal ? undefined : new PipedOutput()
      const session = await openTerminal({
        ...connectionOf(command.optsWithGlobals(), shell.env),
        environment_id,
        ...sizeOf(),
        ...(program.length > 0 && { command: program }),
        onOutput: (data) => write(input ? input.strip(data) : data),
      })
      process.exitCode = await (input ? pipe(session, input.ready) : interactive(session))
    }),
  )
}

/**
 * Writes to standard output. Waits until the output has drained, which applies backpressure to the
 * program.
 */
async function write(data: Uint8Array): Promise<void> {
  if (!process.stdout.write(data)) await once(process.stdout, 'drain')
}
const sizeOf = () => ({
  columns: process.stdout.columns || STANDARD.columns,
  rows: process.stdout.rows || STANDARD.rows,
})

/** The byte that the remote shell prints after it has disabled echo. */
const READY = 0
/**
 * Drops the output of a program with piped input up to and including the byte `READY`. `ready`
 * resolves when this byte arrives.
 */
class PipedOutput {
  readonly ready: Promise<void>
  #found!: () => void
  #isReady = false
  constructor() {
    this.ready = new Promise((found) => (this.#found = found))
  }
  strip(data: Uint8Array): Uint8Array {
    if (this.#isReady) return data
    const at = data.indexOf(READY)
    if (at < 0) return new Uint8Array()
    this.#isReady = true
    this.#found()
    return data.subarray(at + 1)
  }
}

/**
 * Returns a command that disables echo and then runs `words`; by default, bash with standard input
 * as its script.
 */
const piped = (words: readonly string[]): readonly string[] => [
  '/bin/bash',
  '-c',
  'stty -echo -onlcr; printf "\\0"; exec "$@"',
  'bash',
  ...(words.length > 0 ? words : ['/bin/bash', '/dev/stdin']),
]

async function interactive(session: TerminalSession): Promise<number> {
  const { stdin, stdout } = process
  const resize = () => session.resize(sizeOf().columns, sizeOf().rows)
  const input = (data: Buffer) => {
    stdin.pause()
    void session.write(data).then(() => stdin.resume())
  }
  stdin.setRawMode(true)
  stdin.on('data', input)
  stdin.resume()
  stdout.on('resize', resize)
  // The size may have changed while the environment was started.
  resize()
  try {
    return await session.ended
  } finally {
    stdin.setRawMode(false)
    stdin.off('data', input)
    stdin.pause()
    stdout.off('resize', resize)
  }
}

async function pipe(session: TerminalSession, ready: Promise<void>): Promise<number> {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const close = () => session.close()
  for (const signal of signals) process.on(signal, close)
  let fault: unknown
  void ready
    .then(() => forward(session))
    .catch((error: unknown) => {
      fault = error
      close()
    })
  try {
    return await session.ended
  } catch (error) {
    throw fault ?? error
  } finally {
    for (const signal of signals) process.off(signal, close)
    process.stdin.destroy()
  }
}
const LINE_FEED = 10
/** Maximum number of bytes of a line. Linux drops further bytes of a line in a terminal. */
const MAX_LINE_BYTES = 4095
/**
 * Sends all of standard input, and then Ctrl-D. A single Ctrl-D ends the input only at the
 * beginning of a line, so it is sent twice after an incomplete line.
 * @throws Mistake if a line is too long.
 */
async function forward(session: TerminalSession): Promise<void> {
  let [line, length] = [1, 0]
  for await (const data of standardInput() as AsyncIterable<Buffer>) {
    for (const byte of data) {
      if (byte === LINE_FEED) [line, length] = [line + 1, 0]
      else if (++length > MAX_LINE_BYTES)
        throw new Mistake(
          `Line ${line} of the input has more than ${MAX_LINE_BYTES} bytes. ` +
            'Copy the input with `baton env cp`, and run it from that file.',
        )
    }
    await session.write(data)
  }
  await session.write(length === 0 ? END_OF_INPUT : Buffer.concat([END_OF_INPUT, END_OF_INPUT]))
}
