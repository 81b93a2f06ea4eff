/**
 * The common part of the processes that measure peers: starts a store in a separate folder,
 * produces the same load for every peer, and prints the figures as JSON in the last line of output.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endOnSignals, endWithUs } from '../../nodes/process/ending.ts'
import { type Amount, load, type Work } from './measure.ts'
import { family } from './processes.ts'

interface Asked {
  readonly amount: Amount
  readonly steps: number
}
/**
 * Parses the arguments of this process: the amount of work and the number of steps to measure, and
 * the remaining arguments (`rest`).
 */
export function asked(): Asked & { readonly rest: readonly string[] } {
  endOnSignals()
  const [first = '{}', ...rest] = process.argv.slice(2)
  return { ...(JSON.parse(first) as Asked), rest }
}

/**
 * Creates a temporary folder, owned by the given user if one is given. It is deleted when this
 * process exits.
 */
export function folderFor(user?: { readonly uid: number; readonly gid: number }): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-peer-'))
  if (user) chownSync(folder, user.uid, user.gid)
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
/** Starts a server that ends with this process. If the server ends first, this process exits. */
export function startStore(
  program: string,
  args: readonly string[],
  options: {
    readonly env?: Record<string, string>
    readonly uid?: number
    readonly gid?: number
    readonly cwd?: string
    readonly end?: NodeJS.Signals
  } = {},
): ChildProcess {
  const { env, end = 'SIGKILL', ...rest } = options
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', process.env['BATON_BENCH_LOUD'] ? 'inherit' : 'ignore'],
    ...rest,
    env: { ...process.env, ...env },
  })
  endWithUs(child, end)
  child.once('exit', (code) => {
    process.stderr.write(`${program} ended by itself (${code})\n`)
    process.exit(1)
  })
  return child
}
/**
 * Repeats an attempt every 200 ms until it succeeds. Rejects with the last error after about 300
 * failures.
 */
export async function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (tries > 300) throw error
      await new Promise((again) => setTimeout(again, 200))
    }
  }
}
/**
 * Measures, prints the figures, and exits.
 * @param parts the server and store processes of the peer. The peer's client and worker run in this
 * process and count as part of the load.
 */
export async function report(
  work: Work,
  amount: Amount,
  parts: { readonly server?: ChildProcess; readonly store?: ChildProcess },
): Promise<never> {
  const of = (child: ChildProcess | undefined): number[] =>
    child?.pid === undefined ? [] : family(child.pid)
  const figures = await load(work, amount, () => ({
    ...(parts.server && { server: of(parts.server) }),
    ...(parts.store && { store: of(parts.store) }),
    load: [process.pid],
  }))
  process.stdout.write(`${JSON.stringify(figures)}\n`)
  process.exit(0)
}
