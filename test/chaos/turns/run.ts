/**
 * One run of the kill test of turns: an installation, clients and kills, and then the check of what
 * the clients observed.
 */
import { linkedAbort } from '../../../client/watchdog.ts'
import { type Action, Worker } from '../../../client/worker.ts'
import { type Dice, fork } from '../../simulation/faults/dice.ts'
import { Asker, type Json } from '../ask.ts'
import { checkTurns, type Violation } from './check.ts'
import { readSessions } from './gather.ts'
import type { Execution, Strike, TurnHistory } from './history.ts'
import { TurnLoad } from './load.ts'
import { callsOf, kindOf, script, tools } from './plans.ts'
import { reportTurns } from './report.ts'
import { startTurnStack, type TurnStack } from './stack.ts'
import { strikeTurns } from './trouble.ts'

interface TurnOptions {
  readonly turns: number
  /** The number of concurrent conversations. */
  readonly sessions: number
  readonly strikes: number
  readonly seed: number
  /** Whether the installation has as few processes as possible (see stack.ts). */
  readonly small: boolean
  /** The lease of a job in seconds. */
  readonly lease: number
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}
interface TurnOutcome {
  readonly history: TurnHistory
  readonly violations: readonly Violation[]
}
/** If no turn ends for this many milliseconds, the wait for the remaining turns stops. */
const STALL_TIMEOUT_MS = 60_000
/** Milliseconds between two progress reports. */
const REPORT_EVERY_MS = 5000
/** The minimum and maximum time that a tool takes, in milliseconds. */
const WORK = [40, 160] as const
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/**
 * Runs turns on a separate installation while its processes are killed, and checks the result.
 * @throws {Error} when the installation does not start, when the final read fails, or when `signal`
 *   is aborted.
 */
export async function runTurns(options: TurnOptions): Promise<TurnOutcome> {
  const stack = await startTurnStack(options)
  const executions: Execution[] = []
  const began = performance.now()
  const now = () => performance.now() - began
  const worker = workerOf(stack, options.sessions * 2, fork(options.seed, 'work'), now, executions)
  const following = linkedAbort(options.signal)
  try {
    await worker.start()
    return await live(options, stack, now, executions, following.signal)
  } catch (error) {
    throw options.signal.aborted ? options.signal.reason : error
  } finally {
    following.abort()
    await worker.stop()
    await stack.stop()
  }
}

/**
 * Creates a worker that records its executions. It is never killed, so its records are complete.
 */
function workerOf(
  { urls, key }: TurnStack,
  concurrency: number,
  dice: Dice,
  now: () => number,
  executions: Execution[],
): Worker {
  const work =
    (fails: boolean): Action =>
    async ({ n }, { signal }) => {
      const execution: Execution = { call: String(n), at: now(), done: false }
      executions.push(execution)
      await pause(dice.between(...WORK))
      if (fails || signal.aborted) throw new Error('not done')
      execution.done = true
      return { n }
    }
  return new Worker({
    url: urls,
    key,
    concurrency,
    actions: { [tools.work]: work(false), [tools.fail]: work(true) },
  })
}

async function live(
  { turns, sessions, strikes: count, seed, signal, say }: TurnOptions,
  { urls, key, members }: TurnStack,
  now: () => number,
  executions: readonly Execution[],
  following: AbortSignal,
): Promise<TurnOutcome> {
  const asker = new Asker(urls, key, now)
  const load = new TurnLoad({
    asker,
    dice: fork(seed, 'load'),
    urls,
    key,
    agent: await agentFor(asker),
    now,
    signal: following,
  })
  const calls = Array.from({ length: turns }, (_, n) => callsOf(kindOf(n), n).length).reduce(
    (sum, one) => sum + one,
    0,
  )
  const strikes: Strike[] = []
  const oddities: string[] = []
  let calm = false
  const troubled = strikeTurns(
    {
      members,
      dice: fork(seed, 'trouble'),
      now,
      count,
      say,
      enough: () => calm || signal.aborted,
      progress: () => executions.filter(({ done }) => done).length / calls,
    },
    strikes,
  ).catch((error: unknown) => {
    oddities.push(`trouble: ${String(error)}`)
  })
  const telling = setInterval(
    () =>
      say(
        `${(now() / 1000).toFixed(0).padStart(4)} s  ${load.sent.length} sent  ` +
          `${load.ended} ended  ${executions.length} tools  ${asker.open} requests open`,
      ),
    REPORT_EVERY_MS,
  )
  const from = now()
  try {
    if (!(await ends(load, load.run(turns, sessions), now, signal)))
      oddities.push(`no turn has ended for ${STALL_TIMEOUT_MS / 1000} s`)
  } finally {
    clearInterval(telling)
    calm = true
    // Pending requests are stopped. The check reports the turns that did not end.
    asker.over = true
    await troubled
  }
  const took = now() - from
  asker.over = false

  say('reading everything afresh')
  const read = await readSessions({ load, asker, urls, key })
  const history: TurnHistory = {
    ...read,
    sent: load.sent,
    executions,
    strikes,
    oddities: [...oddities, ...load.oddities, ...read.oddities],
  }
  const violations = checkTurns(history)
  for (const line of reportTurns({ history, violations, took, again: asker.again, calls }))
    say(line)
  return { history, violations }
}
/**
 * Waits until all messages are sent and all turns have ended, and then returns true. Returns false
 * if no turn ends for `STALL_TIMEOUT_MS`.
 */
async function ends(
  load: TurnLoad,
  all: Promise<void>,
  now: () => number,
  signal: AbortSignal,
): Promise<boolean> {
  let over = false
  const done = all.finally(() => {
    over = true
  })
  done.catch(() => {})
  for (let last = { ended: -1, at: now() }; !over; await pause(50)) {
    signal.throwIfAborted()
    if (load.ended !== last.ended) last = { ended: load.ended, at: now() }
    if (now() - last.at > STALL_TIMEOUT_MS) return false
  }
  await done
  return true
}

/** Creates an agent that follows the script and may use its tools. Returns the agent's id. */
async function agentFor(asker: Asker): Promise<string> {
  const make = async (method: 'POST' | 'PUT', path: string, body: Json): Promise<string> => {
    const reply = await asker.ask(
      { method, path: `/projects/default${path}`, body, key: `made${path.replaceAll('/', '-')}` },
      false,
    )
    if (!reply || reply.status >= 300)
      throw new Error(`${path} was answered ${reply?.status} ${JSON.stringify(reply?.body)}`)
    return String(reply.body['id'])
  }
  const kit = await make('POST', '/toolkits', {
    name: 'jobs',
    actions: Object.values(tools).map((selector) => ({ selector_type: 'exact', selector })),
  })
  const agent = await make('POST', '/agents', {
    name: 'chaos',
    system_prompt: script,
    tool_presentation: 'flat',
    memory_context: { mode: 'off' },
  })
  await make('PUT', `/agents/${agent}/toolkit-assignments`, { toolkit_ids: [kit] })
  return agent
}
