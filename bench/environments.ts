/**
 * Measures environments of the provider `local`: the time from creation to the result of the first
 * command, the time to wake a stopped environment, the time of a command in a live environment, and
 * the cost of idle environments. For comparison, it also measures the same command and the start of
 * Node.js in `bwrap` alone. Even an environment without coordination needs at least these times for
 * a command and for waking.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { client } from '../client/client.ts'
import type { Environment } from '../protocol/environments/schema.ts'
import { startBaton } from './support/baton.ts'
import {
  type Figures,
  inFlight,
  inTurn,
  pause,
  percentile,
  type Terms,
  withEachSync,
} from './support/measure.ts'
import { cpuSeconds, resident } from './support/processes.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about = 'environments: first command after creation and after waking, idle cost'

const exec = promisify(execFile)
const MIB = 1_048_576
/** Number of idle environments, and how many of them are created concurrently. */
const IDLE = { quick: 10, full: 100, concurrency: 4 } as const
/** Milliseconds between two reads of an environment's record. */
const LOOK_MS = 10
/** Seconds over which the cost of idle environments is measured. */
const IDLE_SECONDS = { quick: 10, full: 60 } as const

const both = (times: readonly number[]) => ({
  p50: percentile(times, 0.5),
  p99: percentile(times, 0.99),
})

async function measureBaton(sync: string, { quick, profile }: Terms): Promise<Figures> {
  const server = await startBaton({
    sync,
    profile,
    settings: { BATON_HOST_LIMIT: '1000', BATON_UNSAFE_LOCAL: 'on' },
  })
  const at = client({
    url: [`http://127.0.0.1:${server.port}`],
    key: server.key,
    project: 'default',
  })
  const run = async (environment_id: string, command: string) => {
    const done = await at.action.invoke({
      action_name: 'environment.bash',
      environment_id,
      input: { command },
      timeout_seconds: 60,
    })
    if (done.status !== 'completed') throw new Error(`the command was not run: ${done.error}`)
  }
  const until = async (id: string, holds: (one: Environment) => boolean) => {
    for (;;) {
      const one = await at.environment.get({ environment_id: id, include: ['worker_state'] })
      if (holds(one)) return
      if (one.status === 'failed') throw new Error(`the environment failed: ${one.error}`)
      await pause(LOOK_MS)
    }
  }
  const count = quick ? 5 : 25
  try {
    const ids: string[] = []
    const created = await inFlight(1, count, async () => {
      const { id } = await at.environment.create({})
      ids.push(id)
      await run(id, 'true')
    })
    const live = await inFlight(1, count * 4, (i) => run(ids[i % ids.length] ?? '', 'true'))
    await inFlight(4, ids.length, (i) => at.environment.delete({ environment_id: ids[i] ?? '' }))
    const sleeping = await at.environment.create({})
    await at.environment.start_worker({ environment_id: sleeping.id, keep_warm: 'on-demand' })
    const woken: number[] = []
    for (let i = 0; i <= count; i++) {
      const started = performance.now()
      await run(sleeping.id, 'true')
      if (i > 0) woken.push(performance.now() - started)
      await until(sleeping.id, ({ worker_state }) => worker_state === 'stopped')
    }
    const idle = quick ? IDLE.quick : IDLE.full
    const seconds = quick ? IDLE_SECONDS.quick : IDLE_SECONDS.full
    const used = () => {
      const { server: served = 0, store = 0 } = cpuSeconds(server.processes)
      return served + store
    }
    const spentIn = async () => {
      const from = used()
      await pause(seconds * 1000)
      return used() - from
    }
    const without = await spentIn()
    const before = memoryOf(server.processes.server)
    await inFlight(IDLE.concurrency, idle, async () => {
      const { id } = await at.environment.create({})
      await until(id, ({ status }) => status === 'ready')
    })
    const memory = memoryOf(server.processes.server) - before
    const spent = (await spentIn()) - without
    const [c, l, w] = [both(created), both(live), both(woken)]
    return {
      created_p50: c.p50,
      created_p99: c.p99,
      live_p50: l.p50,
      live_p99: l.p99,
      woken_p50: w.p50,
      woken_p99: w.p99,
      idle,
      idle_cpu: (spent * 1000) / (seconds / 60) / idle,
      idle_memory: memory / MIB / idle,
    }
  } finally {
    await server.stop()
  }
}
const memoryOf = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + resident(pid), 0)

/** The `bwrap` arguments for a sandbox with the same namespaces as the provider's sandbox. */
const sandbox = ['--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--dev', '/dev']
async function measurePlain({ quick }: Terms): Promise<Figures> {
  const count = quick ? 10 : 50
  const command = await inFlight(1, count, () => exec('bwrap', [...sandbox, 'bash', '-c', 'true']))
  const node = await inFlight(1, count, () =>
    exec('bwrap', [...sandbox, process.execPath, '-e', '']),
  )
  const [c, n] = [both(command), both(node)]
  return { live_p50: c.p50, live_p99: c.p99, woken_p50: n.p50, woken_p99: n.p99 }
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const measured = await inTurn(
    [
      ['bwrap alone', () => measurePlain(terms)],
      ...withEachSync((sync) => measureBaton(sync, terms)),
    ],
    terms,
    ({ created_p50, woken_p50, live_p50 }) =>
      [created_p50, woken_p50, live_p50].map((time) => ms(time ?? Number.NaN)).join(' / '),
  )
  const pair = (figures: Figures, name: string) =>
    cell(ms(figures[`${name}_p50`] ?? Number.NaN), ms(figures[`${name}_p99`] ?? Number.NaN))
  return (
    table(
      [
        'ms, p50 / p99',
        'create → first command',
        'stopped → first command',
        'command in a live one',
        'idle: CPU ms per minute',
        'idle: MiB',
      ],
      measured.map(([name, figures]) => [
        name,
        pair(figures, 'created'),
        pair(figures, 'woken'),
        pair(figures, 'live'),
        ms(figures['idle_cpu'] ?? Number.NaN),
        ms(figures['idle_memory'] ?? Number.NaN),
      ]),
    ) +
    note(
      'The command is `true` in bash. For bwrap alone, the second column is the start of Node.js in ' +
        'a sandbox, and the third one a bash in a new sandbox.',
      `Idle cost: of ${whole(measured[1]?.[1]['idle'] ?? Number.NaN)} prepared environments without ` +
        'a worker, each, above that of the server (all roles) and its NATS server without them.',
    )
  )
}
