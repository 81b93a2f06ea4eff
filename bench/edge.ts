/**
 * Claim: what the edge alone costs. A real gateway in a process of its own over a world that answers at once (`edge/served.ts`):
 * CPU time of that process for each request, each job of a worker, each event of a stream. Neither NATS nor disk take part.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import WebSocket from 'ws'
import type { Asked, Told } from './edge/served.ts'
import { requests, streams } from './edge/load.ts'

const RUN = 'run_01AAAAAAAAAAAAAAAAAAAAAA0C'
const served = fileURLToPath(new URL('edge/served.ts', import.meta.url))
const CONNECTIONS = 32

interface Served {
  readonly port: number
  readonly key: string
  readonly child: ChildProcess
}
type Reply<T extends Told['type']> = Extract<Told, { type: T }>
/** The next message of a type. */
const told = <T extends Told['type']>(child: ChildProcess, type: T): Promise<Reply<T>> => new Promise((done) => {
  const hear = (message: Told) => {
    if (message.type !== type) return
    child.off('message', hear)
    done(message as Reply<T>)
  }
  child.on('message', hear)
})
function ask<T extends Told['type']>(child: ChildProcess, asked: Asked, type: T): Promise<Reply<T>> {
  const reply = told(child, type)
  child.send(asked)
  return reply
}
const usage = async ({ child }: Served): Promise<number> => (await ask(child, { type: 'usage' }, 'usage')).micros

async function start(): Promise<Served> {
  const child = fork(served, { execArgv: process.execArgv, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const { port, key } = await told(child, 'ready')
  return { port, key, child }
}
const head = (line: string, { key }: Served, more = ''): string => `${line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nUser-Agent: load\r\nAccept: */*\r\n${more}\r\n`
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((again) => setTimeout(again, 2))
}

/** One load: does it `count` times and says how often it did. */
interface Load { readonly name: string; readonly unit: string; readonly count: number; run(at: Served, count: number): Promise<number> }

async function posts(at: Served, count: number): Promise<number> {
  const body = JSON.stringify({ spec: { steps: [{ kind: 'action', config: { action_name: 'send', parameters: { name: 'a name' } } }] } })
  await requests(at.port, head('POST /v1/projects/default/runs', at, `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`) + body, count, CONNECTIONS, '202')
  return count
}
async function gets(at: Served, count: number): Promise<number> {
  await requests(at.port, head(`GET /v1/projects/default/runs/${RUN}`, at), count, CONNECTIONS, '200')
  return count
}
/** Jobs through one worker that completes each at once: offered, claimed, reported, acknowledged. */
async function jobs(at: Served, count: number): Promise<number> {
  const socket = new WebSocket(`ws://127.0.0.1:${at.port}/v1/projects/default/workers/socket`, { headers: { authorization: `Bearer ${at.key}` }, perMessageDeflate: false })
  let acknowledged = 0
  await new Promise<void>((done, failed) => {
    let held = 0
    let claiming = false
    const claim = () => {
      if (claiming || held >= 64) return
      claiming = true
      socket.send(JSON.stringify({ type: 'jobs.claim', available_slots: 64 - held }))
    }
    socket.on('error', failed)
    socket.on('open', () => socket.send(JSON.stringify({ type: 'worker.register', worker_instance_id: 'bench', concurrency_limit: 64 })))
    socket.on('message', (text) => {
      const frame = JSON.parse(String(text)) as { type: string; jobs?: { id: string; lease_token: string }[] }
      if (frame.type === 'error') return failed(new Error(String(text)))
      if (frame.type === 'jobs.claimed') {
        claiming = false
        for (const { id, lease_token } of frame.jobs ?? []) {
          held++
          socket.send(JSON.stringify({ type: 'job.report', job_id: id, lease_token, status: 'completed', result: { ok: true } }))
        }
      } else if (frame.type === 'job.report.ack') {
        held--
        if (++acknowledged >= count) return done()
      }
      claim()
    })
  })
  socket.terminate()
  return acknowledged
}
/** Events of one run to its followers, entries of three events, `perTurn` entries at a time. Counted once for each follower. */
const events = (followers: number, perTurn: number) => async (at: Served, count: number): Promise<number> => {
  const run = `run_01AAAAAAAAAAAAAAAAAAAA${String(1000 + followers).slice(0, 4)}`
  const followed = await streams(at.port, head(`GET /v1/runs/${run}/events`, at, 'Accept: text/event-stream\r\n').replace('Accept: */*\r\n', ''), followers)
  const entries = Math.ceil(count / 3 / followers)
  const before = await usage(at)
  await ask(at.child, { type: 'publish', run, entries, perTurn }, 'published')
  let last = -1
  await until(() => {
    const now = followed.bytes()
    const still = now === last
    last = now
    return still
  })
  const used = (await usage(at)) - before
  followed.close()
  return -(used / (entries * 3 * followers))
}

const loads: readonly Load[] = [
  { name: 'POST …/runs, one step inline', unit: 'request', count: 15_000, run: posts },
  { name: 'GET …/runs/:id', unit: 'request', count: 20_000, run: gets },
  { name: 'worker socket: offer, claim, report, ack', unit: 'job', count: 8000, run: jobs },
  { name: 'timeline, 1 follower', unit: 'event', count: 30_000, run: events(1, 1) },
  { name: 'timeline, 1,000 followers, one entry a turn', unit: 'event and follower', count: 300_000, run: events(1000, 1) },
  { name: 'timeline, 1,000 followers, ten entries a turn', unit: 'event and follower', count: 600_000, run: events(1000, 10) },
]

/** Run the benchmark. @param times how often each load is measured; the best is shown, because others on the machine only add. @param say progress. @returns the table. */
export async function bench(times: number, say: (line: string) => void): Promise<string> {
  const at = await start()
  const best = new Map<string, number>()
  try {
    for (const { name, unit, count, run } of loads) {
      await run(at, Math.ceil(count / 3))
      for (let i = 0; i < times; i++) {
        const before = await usage(at)
        const done = await run(at, count)
        // A load that also opens connections measures itself, and says so by a negative figure.
        const micros = done < 0 ? -done : ((await usage(at)) - before) / done
        best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, micros))
      }
      say(`${name}: ${best.get(name)?.toFixed(1)} µs for each ${unit}`)
    }
  } finally {
    at.child.disconnect()
  }
  return ['| the edge without an engine | CPU µs | for each |', '|---|---|---|', ...loads.map(({ name, unit }) => `| ${name} | ${best.get(name)?.toFixed(1)} | ${unit} |`)].join('\n')
}
