/** `baton chaos --turns`: turns of agents with tools, during which shard nodes, gateways and executors are killed; then the question whether a promise was broken. */
import { fileURLToPath } from 'node:url'
import { StartFault } from '../process/fault.ts'
import { findServer } from '../nats/server/install.ts'

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
/** Conversations that go on at once, turns of one, and turns for each strike. */
const SESSIONS = 32
const TURNS_OF_ONE = 4
const TURNS_PER_STRIKE = 15
/** Seconds for which jobs are leased: short, so that what an executor had is soon made by another one. */
const LEASE = 6

/** Run it; the process ends with 0 when every promise was kept. */
export async function runTurnChaos(turns: number, seed: number): Promise<void> {
  const say = (line: string) => void process.stdout.write(`${line}\n`)
  const { path } = await findServer(process.env, (line) => process.stderr.write(`${line}\n`))
  process.env['BATON_NATS_SERVER'] = path
  const [sessions, strikes] = [
    Math.max(1, Math.min(SESSIONS, Math.ceil(turns / TURNS_OF_ONE))),
    Math.max(3, Math.ceil(turns / TURNS_PER_STRIKE)),
  ]
  say(
    `${turns} turns over ${sessions} sessions and ${strikes} strikes, seed ${seed}; repeat it with: npm run chaos -- --turns ${turns} --seed ${seed}`,
  )
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(name, () =>
      stop.abort(new StartFault('Chaos was stopped before its end; nothing is judged.')),
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
      lease: LEASE,
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
