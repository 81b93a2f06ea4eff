/**
 * Measures the cost of idle workers: the server's memory per worker, and the effect on the runs of
 * another worker.
 */

import { openSocket, type Socket } from './load/socket.ts'
import { measureRuns, runOf, runsOf } from './load/work.ts'
import type { Target } from './support/baton.ts'
import { startBaton } from './support/baton.ts'
import { allowed } from './support/limits.ts'
import {
  type Amount,
  type Figures,
  inFlight,
  inTurn,
  load,
  pause,
  type Terms,
  withEachSync,
} from './support/measure.ts'
import { COLLECT, settled } from './support/memory.ts'
import { cell, ms, note, table, whole } from './support/table.ts'

export const about =
  '10,000 idle worker sockets: memory of each, and the throughput of runs beside them'

/**
 * The read buffer of an idle connection in bytes, kept small because there are many connections.
 */
const BUFFER_BYTES = 1024
/**
 * Number of workers that connect before the first memory measurement, after some runs. As a result,
 * code is loaded, pools are filled, and the young generation of V8 has its full size (two times 32
 * MiB, regardless of the number of workers).
 */
const WARM = 500

/** Registers a worker that keeps a claim open, for a queue that is never used. */
async function idleWorker(
  { port, key }: Target,
  index: number,
  lost: (reason: string) => void,
): Promise<Socket> {
  const claim = '{"type":"jobs.claim","available_slots":4}'
  let registered = () => {}
  const ready = new Promise<void>((done) => {
    registered = done
  })
  const socket = await openSocket(
    port,
    key,
    '/v1/projects/default/workers/socket',
    (text) => {
      if (text.startsWith('{"type":"jobs.claimed"')) socket.send(claim)
      else if (text.startsWith('{"type":"worker.registered"')) {
        socket.send(claim)
        registered()
      } else if (text.startsWith('{"type":"error"')) lost(text)
    },
    lost,
    BUFFER_BYTES,
  )
  socket.send(
    `{"type":"worker.register","worker_instance_id":"idle-${index}","concurrency_limit":4,"queues":["elsewhere"]}`,
  )
  await ready
  return socket
}

async function measure(
  sync: string,
  sockets: number,
  amount: Amount,
  { profile, say }: Terms,
): Promise<Figures> {
  const server = await startBaton({ sync, profile, node: COLLECT })
  const [pid = 0] = server.processes.server
  const idle: Socket[] = []
  const lost: string[] = []
  let names = 0
  /**
   * Connects an idle worker, and retries after a temporary rejection: a gateway accepts at most 200
   * connections per second on average.
   */
  const open = (name: number): Promise<Socket> =>
    idleWorker(server, name, (reason) => lost.push(reason)).catch((error: Error) => {
      if (!error.message.includes('answered 503')) throw error
      return pause(1000).then(() => open(name))
    })
  const connect = (count: number) =>
    inFlight(200, count, async () => idle.push(await open(names++)))
  try {
    const { work, stop } = await runsOf((name) => runOf(1, name), server, say)
    await inFlight(200, amount.warm, (i) => work(`grow-${i}`))
    await connect(WARM)
    const before = await settled(pid)
    const started = performance.now()
    await connect(sockets - WARM)
    const seconds = (performance.now() - started) / 1000
    await pause(3000)
    const after = await settled(pid)
    const beside = await load(work, amount, () => server.processes)
    stop()
    if (lost.length > 0)
      throw new Error(`${lost.length} idle workers were lost, the first one: ${lost[0]}`)
    return {
      each: (after - before) / (sockets - WARM) / 1024,
      registered: (sockets - WARM) / seconds,
      beside: beside.throughput,
      idle: beside.done_p50,
    }
  } finally {
    for (const socket of idle) socket.close()
    await server.stop()
  }
}
/**
 * Measures runs without and with idle workers. The runs without idle workers use a separate server,
 * because a server keeps and reuses allocated memory.
 */
async function both(sync: string, sockets: number, amount: Amount, terms: Terms): Promise<Figures> {
  const alone = await measureRuns(sync, 1, amount, terms)
  return {
    ...(await measure(sync, sockets, amount, terms)),
    alone: alone.throughput,
    idle_alone: alone.done_p50,
  }
}

/** Runs the benchmark and returns its table. */
export async function bench(terms: Terms): Promise<string> {
  const sockets = allowed(terms.quick ? 2000 : 10_000, terms.say)
  const amount: Amount = terms.quick
    ? { warm: 1000, count: 2000, idle: 50, concurrency: 200 }
    : { warm: 5000, count: 10_000, idle: 200, concurrency: 200 }
  const measured = await inTurn(
    withEachSync((sync) => both(sync, sockets, amount, terms)),
    terms,
    ({ each = 0, alone = 0, beside = 0 }) =>
      `${each.toFixed(1)} KiB each, ${whole(alone)} done/s without them, ${whole(beside)} with them`,
  )
  const lines = measured.map(
    ([name, { each = 0, registered = 0, alone = 0, beside = 0, idle_alone = 0, idle = 0 }]) => [
      name,
      `${each.toFixed(1)} KiB`,
      whole(registered),
      cell(whole(alone), whole(beside)),
      cell(ms(idle_alone), ms(idle)),
    ],
  )
  return (
    table(
      [
        `${whole(sockets)} idle workers`,
        'resident, each',
        'registered/s',
        'runs done/s: without / with them',
        'idle start → done p50 ms: without / with them',
      ],
      [...lines, ['*target (10,000)*', '≤ 4 KiB', '', '', '']],
    ) +
    note(
      'Resident memory of the server before and after, each time after collecting garbage. ' +
        'Every idle worker has a claim open, and claims again when it is answered.',
    )
  )
}
