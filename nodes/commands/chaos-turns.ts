/**
 * `baton chaos --turns`: runs turns of agents with tools while shard nodes, gateways and executors
 * are killed, and then checks whether a guarantee was broken.
 */
import { fileURLToPath } from 'node:url'
import { findServer } from '../nats/server/install.ts'
import { StartFault } from '../process/fault.ts'

const module = fileURLToPath(new URL('../../test/chaos/turns/run.ts', import.meta.url))
interface Turns {
  runTurns(options: {
    turns: number
    sessions: number
    strikes: number
    seed: number
    small: boolean
    lease: number
    signal: AbortSignal
    say: (line: string) => void
  }): Promise<{ violations: readonly unknown[] }>
}
/** Maximum number of concurrent sessions. */
const MAX_SESSIONS = 32
/** Number of turns per session while there are fewer than `MAX_SESSIONS` sessions. */
const TURNS_PER_SESSION = 4
/** Number of turns per injected fault. */
const TURNS_PER_FAULT = 15
/**
 * Lease of a job in seconds. It is short, so that the jobs of a killed executor soon move to
 * another executor.
 */
const LEASE_S = 6

/** Runs the chaos test and ends the process. The exit code is 0 when every guarantee was kept. */
export async function runTurnChaos(turns: number, seed: number): Promise<void> {
  const say = (line: string) => void process.stdout.write(`${line}\n`)
  const { path } = await findServer(process.env, (line) => process.stderr.write(`${line}\n`))
  process.env['BATON_NATS_SERVER'] = path
  const [sessions, strikes] = [
    Math.max(1, Math.min(MAX_SESSIONS, Math.ceil(turns / TURNS_PER_SESSION))),
    Math.max(3, Math.ceil(turns / TURNS_PER_FAULT)),
  ]
  say(
    `${turns} turns in ${sessions} sessions with ${strikes} faults, seed ${seed}; ` +
      `repeat with: npm run chaos -- --turns ${turns} --seed ${seed}`,
  )
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () =>
      stop.abort(new StartFault('The chaos test was stopped before its end; nothing was checked.')),
    )
  const { runTurns } = (await import(module)) as Turns
  let code = 1
  try {
    const { violations } = await runTurns({
      turns,
      sessions,
      strikes,
      seed,
      small: false,
      lease: LEASE_S,
      signal: stop.signal,
      say,
    })
    if (violations.length === 0) code = 0
  } catch (error) {
    process.stderr.write(
      `${error instanceof StartFault ? error.message : (error as Error).stack}\n`,
    )
  }
  process.exit(code)
}
