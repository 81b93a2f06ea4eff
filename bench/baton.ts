/** Baton as a benchmark sees it: a server process of its own, HTTP to start, a worker socket to work, SSE to learn the end. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import WebSocket from 'ws'
import { freePort } from '../nodes/nats/server.ts'
import type { Work } from './measure.ts'

const main = fileURLToPath(new URL('../nodes/main.ts', import.meta.url))

/** A running server and what a load needs of it. */
export interface Bench {
  readonly url: string
  readonly key: string
  post(path: string, body: unknown): Promise<{ id: string }>
  stop(): Promise<void>
}

/** Start a server with a sync setting (`always` or an interval) in an empty folder. */
export async function startBaton(sync: string): Promise<Bench> {
  const data = mkdtempSync(join(tmpdir(), 'baton-bench-'))
  const port = await freePort()
  const child = spawn(process.execPath, [...process.execArgv, main, 'start'], {
    env: { ...process.env, BATON_DATA: data, BATON_PORT: String(port), BATON_SYNC: sync, BATON_RATE_KEY: '0', BATON_RATE_ORG: '0', BATON_LOG_LEVEL: 'warn' }, stdio: ['ignore', 'ignore', 'inherit'],
  })
  const ended = new Promise<void>((done) => child.once('exit', () => done()))
  const url = `http://127.0.0.1:${port}`
  for (let i = 0; ; i++) {
    if (await fetch(`${url}/readyz`).then((answer) => answer.ok, () => false)) break
    if (i > 300 || child.exitCode !== null) throw new Error('the server did not become ready within 30 s')
    await new Promise((again) => setTimeout(again, 100))
  }
  const key = readFileSync(join(data, 'root.key'), 'utf8').trim()
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const post = (path: string, body: unknown): Promise<{ id: string }> => new Promise((done, failed) => {
    const text = JSON.stringify(body)
    const sent = request(url + path, { method: 'POST', agent, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) } }, (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.on('end', () => {
        const reply = Buffer.concat(parts).toString()
        if ((answer.statusCode ?? 500) >= 300) failed(new Error(`${path} answered ${answer.statusCode}: ${reply}`))
        else done(JSON.parse(reply) as { id: string })
      })
    })
    sent.on('error', failed)
    sent.end(text)
  })
  return { url, key, post, stop: async () => { agent.destroy(); child.kill('SIGTERM'); await ended; rmSync(data, { recursive: true, force: true }) } }
}

/** Connect a worker that completes every job at once; tells when each run's job was executed. */
export async function instantWorker({ url, key }: Bench, slots: number, executed: (run: string) => void): Promise<() => void> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/projects/default/workers/socket`, { headers: { authorization: `Bearer ${key}` } })
  await new Promise((open) => socket.once('open', open))
  let held = 0
  let claiming = false
  const send = (frame: unknown) => socket.send(JSON.stringify(frame))
  const claim = () => {
    if (claiming || held >= slots) return
    claiming = true
    send({ type: 'jobs.claim', available_slots: slots - held })
  }
  socket.on('message', (text) => {
    const frame = JSON.parse(String(text)) as { type: string; jobs?: { id: string; run_id: string; lease_token: string }[] }
    if (frame.type === 'jobs.claimed') {
      claiming = false
      for (const job of frame.jobs ?? []) {
        held++
        executed(job.run_id)
        send({ type: 'job.report', job_id: job.id, lease_token: job.lease_token, status: 'completed', result: { ok: true } })
      }
      claim()
    } else if (frame.type === 'job.report.ack') {
      held--
      claim()
    } else if (frame.type === 'work.available' || frame.type === 'worker.registered') claim()
  })
  send({ type: 'worker.register', worker_instance_id: 'bench', concurrency_limit: slots })
  return () => socket.close()
}

/** A run of one step, from the HTTP request until the project's event stream tells its end. */
export async function runOfOneStep(bench: Bench): Promise<{ work: Work; stop: () => void }> {
  const executedAt = new Map<string, number>()
  const ended = new Map<string, () => void>()
  const early = new Set<string>()
  const stopWorker = await instantWorker(bench, 256, (run) => executedAt.set(run, performance.now()))
  const abort = new AbortController()
  const answer = await fetch(`${bench.url}/v1/projects/default/runs/events`, { headers: { authorization: `Bearer ${bench.key}`, accept: 'text/event-stream' }, signal: abort.signal })
  void (async () => {
    let rest = ''
    for await (const chunk of (answer.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      const frames = (rest + chunk).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        const data = /^data: ?(.*)$/m.exec(frame)?.[1]
        if (!data?.includes('"run_updated"') || !data.includes('"completed"')) continue
        const { run_id } = JSON.parse(data) as { run_id: string }
        const done = ended.get(run_id)
        if (done) done()
        else early.add(run_id)
      }
    }
  })().catch(() => {})
  const work: Work = async (name) => {
    const { id } = await bench.post('/v1/projects/default/runs', { spec: { steps: [{ kind: 'action', config: { action_name: 'send', parameters: { name } } }] } })
    if (!early.delete(id)) await new Promise<void>((done) => ended.set(id, done))
    ended.delete(id)
    const at = executedAt.get(id)
    executedAt.delete(id)
    return at
  }
  return { work, stop: () => { abort.abort(); stopWorker() } }
}
