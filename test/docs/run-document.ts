/**
 * Runs the commands of a document as a reader would: in one shell, one block after the other, in a
 * separate folder.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { bundleProgram } from '../support/bundle.ts'
import type { Block } from './blocks.ts'

/**
 * A substitute for `npm` in the scripts: it accepts `npm run [--silent] baton -- …`, and sends the
 * arguments to the host.
 */
const NPM = `#!/bin/bash
[ "$1" = run ] || { echo "npm $1 is not run by a test" >&2; exit 90; }
shift
[ "$1" = --silent ] && shift
[ "$1 $2" = "baton --" ] || { echo "npm run $1 is not run by a test" >&2; exit 90; }
shift 2
exec 3<>"/dev/tcp/127.0.0.1/$BATON_TEST_HOST"
printf '%s\\0' "$#" "$@" >&3
IFS= read -r code <&3 || exit 91
cat <&3
exit "$code"
`

interface Outcome {
  /** The lines of the completed blocks, counted from 1. */
  readonly done: readonly number[]
  readonly output: string
  /** The exit code of the shell, or null if a signal ended the shell. */
  readonly code: number | null
  /** The standard error of the shell and of the host. */
  readonly errors: string
}
export interface Runner {
  run(blocks: readonly Block[]): Promise<Outcome>
  stop(): Promise<void>
}

/**
 * Starts the host of the command line in a folder.
 * @param env the environment of the commands.
 * @param replace pairs of a text in the documents and the text that replaces it in the test, such
 *   as the address of the service.
 */
export async function documentRunner(
  root: string,
  folder: string,
  env: Readonly<Record<string, string>>,
  replace: readonly (readonly [written: string, here: string])[],
): Promise<Runner> {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'npm'), NPM)
  chmodSync(join(bin, 'npm'), 0o755)
  const all = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^BATON_/.test(name))),
    ...env,
    PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}`,
  }
  const program = await bundleProgram(root, 'test/docs/cli-host.ts')
  const host = spawn(process.execPath, program.args, {
    cwd: folder,
    env: all,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let remarks = ''
  host.stderr.setEncoding('utf8').on('data', (text: string) => {
    remarks += text
  })
  const port = await new Promise<string>((found, failed) => {
    createInterface(host.stdout).once('line', found)
    host.once('exit', () => failed(new Error(`the host of the command line ended: ${remarks}`)))
  })
  const here = (text: string) => replace.reduce((all, [from, to]) => all.replaceAll(from, to), text)
  return {
    run: async (blocks) => {
      const before = remarks.length
      const script = blocks.map((block) => scriptOf(block, here(block.text))).join('\n')
      const shell = spawn('bash', ['-euo', 'pipefail', '-c', script], {
        cwd: folder,
        env: { ...all, BATON_TEST_HOST: port },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      })
      let output = ''
      let errors = ''
      shell.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
      shell.stderr.setEncoding('utf8').on('data', (text: string) => {
        errors += text
      })
      const limit = setTimeout(() => endGroup(shell), 30_000)
      const code = await new Promise<number | null>((done) => shell.once('exit', done))
      clearTimeout(limit)
      endGroup(shell)
      const done = [...output.matchAll(/^@done (\d+)$/gm)].map(([, line]) => Number(line))
      return { done, output, code, errors: `${errors}${remarks.slice(before)}` }
    },
    stop: async () => {
      const ended = new Promise((done) => host.once('exit', done))
      host.kill('SIGKILL')
      await ended
      program.remove()
    },
  }
}

const scriptOf = ({ line, mark }: Block, text: string): string =>
  mark === 'background'
    ? `{ ${text}\n} &\necho; echo "@done ${line}"`
    : `${text}\necho; echo "@done ${line}"`

/** Ends a shell and its background commands, which form one process group. */
function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // The process group has already ended.
  }
}
