/**
 * `baton chaos`: runs a cluster on this machine under load, injects faults into processes and
 * links, and then checks whether a guarantee was broken. Where possible, it runs inside separate
 * namespaces, so that all processes in them end together with the namespaces. This command deletes
 * the folder of the run unless `--keep` is set.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findServer } from '../nats/server/install.ts'
import { StartFault } from '../process/fault.ts'
import { runTurnChaos } from './chaos-turns.ts'
import { MAX_SEED, wholeNumber } from './whole-number.ts'

const at = (file: string) => fileURLToPath(new URL(`../../test/chaos/${file}`, import.meta.url))
const main = fileURLToPath(new URL('../main.ts', import.meta.url))
interface Net {
  readonly cuts: boolean
}
interface Nets {
  namespaces(): string[]
  whyNoCuts(): string | undefined
  loopback(): Net
  bridged(): Promise<Net>
}
interface Chaos {
  runChaos(options: {
    seconds: number
    rate: number
    seed: number
    net: Net
    folder: string
    binary: string
    signal: AbortSignal
    say: (line: string) => void
    accounts: boolean
  }): Promise<{ violations: readonly unknown[] }>
}
interface Given {
  readonly seconds: string
  readonly rate: string
  readonly seed?: string
  readonly links: string
  readonly keep?: true
  readonly turns?: string
  readonly accounts?: true
}
/**
 * Environment variable with the folder of the run. It is set for the child process that runs the
 * test.
 */
const INSIDE = 'BATON_CHAOS_FOLDER'

const number = (name: string, text: string, low: number, high: number): number =>
  wholeNumber('chaos', name, text, low, high)
const say = (line: string) => void process.stdout.write(`${line}\n`)

/**
 * Runs the chaos test. The exit code is 0 when every guarantee was kept.
 * @throws StartFault when the test cannot start.
 */
export async function runChaosCommand(given: Given): Promise<void> {
  const seconds = number('seconds', given.seconds, 5, 86_400)
  const rate = number('rate', given.rate, 1, 100_000)
  const seed = number('seed', given.seed ?? String(Math.floor(Math.random() * 1e9)), 0, MAX_SEED)
  if (given.turns !== undefined) return runTurnChaos(number('turns', given.turns, 1, 100_000), seed)
  if (given.links !== 'auto' && given.links !== 'off')
    throw new StartFault(`--links is ${JSON.stringify(given.links)}: it must be auto or off`)
  const accounts = given.accounts === true
  const inside = process.env[INSIDE]
  if (inside !== undefined)
    return here({ seconds, rate, seed, folder: inside, cuts: true, accounts })

  const { path } = await findServer(process.env, (line) => process.stderr.write(`${line}\n`))
  const { namespaces, whyNoCuts } = (await import(at('net.ts'))) as Nets
  const why = given.links === 'off' ? 'disabled by --links off' : whyNoCuts()
  say(
    `${seconds} s of chaos at ${rate} starts per second, seed ${seed}; ` +
      `repeat with: npm run chaos -- --seconds ${seconds} --rate ${rate} --seed ${seed}` +
      (accounts ? ' --accounts' : ''),
  )
  say(
    why === undefined
      ? 'Network links are cut: every process has a separate network namespace.'
      : `Network links are not cut (${why}); processes are only killed and paused.`,
  )
  const folder = mkdtempSync(join(tmpdir(), 'baton-chaos-'))
  const remove = () => {
    if (!given.keep) rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', remove)
  process.env['BATON_NATS_SERVER'] = path
  if (why !== undefined) return here({ seconds, rate, seed, folder, cuts: false, accounts })

  const [command = '', ...args] = namespaces()
  const child = spawn(
    command,
    [
      ...args,
      process.execPath,
      ...process.execArgv,
      main,
      'chaos',
      '--seconds',
      String(seconds),
      '--rate',
      String(rate),
      '--seed',
      String(seed),
      ...(accounts ? ['--accounts'] : []),
    ],
    {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, [INSIDE]: folder },
    },
  )
  let asked = 0
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () => {
      if (++asked > 1 || !child.connected) child.kill('SIGKILL')
      else child.send('stop')
    })
  process.exitCode = await new Promise<number>((done) =>
    child.once('exit', (code) => done(code ?? 1)),
  )
}

async function here({
  seconds,
  rate,
  seed,
  folder,
  cuts,
  accounts,
}: {
  seconds: number
  rate: number
  seed: number
  folder: string
  cuts: boolean
  accounts: boolean
}): Promise<void> {
  const stop = new AbortController()
  const end = () =>
    stop.abort(new StartFault('The chaos test was stopped before its end; nothing was checked.'))
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, end)
  // Both events stop the test: a disconnect means that the parent process has ended, and the
  // parent's only message is a stop signal.
  process.once('disconnect', end).once('message', end)
  const { bridged, loopback } = (await import(at('net.ts'))) as Nets
  const { runChaos } = (await import(at('run.ts'))) as Chaos
  const { path } = await findServer(process.env)
  let code = 1
  try {
    const { violations } = await runChaos({
      seconds,
      rate,
      seed,
      net: cuts ? await bridged() : loopback(),
      folder,
      binary: path,
      signal: stop.signal,
      say,
      accounts,
    })
    if (violations.length === 0) code = 0
  } catch (error) {
    process.stderr.write(
      `${error instanceof StartFault ? error.message : (error as Error).stack}\n`,
    )
  }
  process.exit(code)
}
