/**
 * Generations that the service itself performs. When an executor stops gracefully, its interrupted
 * job is claimed within seconds, by another executor or by the restarted node.
 */
import t from 'tap'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { type Processes, portsFor, processes } from '../support/processes.ts'

type Json = Readonly<Record<string, unknown>>
interface Job extends Json {
  readonly id: string
  readonly status: string
  readonly kind: string
  readonly worker_instance_id: string
  readonly claimed_at: string
}

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))
/** A script whose generation takes longer than a graceful shutdown of these nodes. */
const SLOW = 'script:\n  - delay: 60s\n    say: At last.\n'

/**
 * Returns a function that calls a gateway, which may be unavailable for a while. A failed request
 * or a server error is retried every 50 ms, about 400 times.
 */
const callerOf =
  (it: Processes, port: number) =>
  async (method: string, path: string, body?: Json): Promise<Json> => {
    for (let attempt = 0; ; attempt++) {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/projects/default${path}`, {
        method,
        headers: { authorization: `Bearer ${it.key}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }).then(
        async (response) => ({ status: response.status, text: await response.text() }),
        // The gateway is restarting.
        (error: unknown) => ({ status: 503, text: String(error) }),
      )
      if (answer.status < 300) return JSON.parse(answer.text) as Json
      if (answer.status < 500 || attempt > 400) throw new Error(`${answer.status}: ${answer.text}`)
      await pause(50)
    }
  }
type Call = ReturnType<typeof callerOf>

/**
 * Waits until the generation job of a run is claimed, and returns it. If `before` is given, waits
 * for a later claim than that one.
 */
async function claimed(call: Call, run: string, before?: Job): Promise<Job> {
  for (;;) {
    const { items } = (await call('GET', `/runs/${run}/jobs`)) as { items: readonly Job[] }
    const job = items.find(
      ({ status, kind, claimed_at }) =>
        status === 'claimed' && kind === 'llm_generation' && claimed_at !== before?.claimed_at,
    )
    if (job) return job
    await pause(20)
  }
}
/**
 * Starts a run whose agent takes a long time to answer. Returns the run's id and the claimed
 * generation job.
 */
async function begin(call: Call): Promise<{ run: string; job: Job }> {
  const { id } = await call('POST', '/agents', { name: 'slow', system_prompt: SLOW })
  const step = { id: 'ask', kind: 'agent', config: { agent_id: id, instructions: 'Go.' } }
  const run = String((await call('POST', '/runs', { spec: { steps: [step] } }))['id'])
  return { run, job: await claimed(call, run) }
}

t.setTimeout(120_000)
/**
 * Time limit for the continuation of a turn, in milliseconds. It is far shorter than a lease, but
 * far longer than the two seconds that a turn needs to continue on an idle machine.
 */
const SOON_MS = 15_000

t.test('another executor continues a turn before its lease expires', async (t) => {
  const it = await processes({})
  t.teardown(() => it.stop())
  const [port = 0] = await portsFor(1)
  await it.node('base', 'gateway,shards,views', port)
  const executors = await Promise.all(['one', 'two'].map((name) => it.node(name, 'executor')))
  const call = callerOf(it, port)
  const { run, job } = await begin(call)
  const mine = ['one', 'two'].findIndex((name) => job.worker_instance_id.includes(name))
  const started = performance.now()
  const ended = executors[mine]?.stop()
  const next = await claimed(call, run, job)
  const ms = performance.now() - started
  t.equal(next.id, job.id)
  t.ok(ms < SOON_MS, `after ${Math.round(ms)} ms`)
  t.equal(await ended, '0')
})

t.test('a turn continues after a restart without waiting for its lease to expire', async (t) => {
  const it = await processes({})
  t.teardown(() => it.stop())
  const [port = 0] = await portsFor(1)
  const node = await it.node('all', 'gateway,shards,views,executor', port)
  const call = callerOf(it, port)
  const { run, job } = await begin(call)
  t.equal(await node.stop(), '0')
  await it.node('all', 'gateway,shards,views,executor', port)
  const ready = performance.now()
  const next = await claimed(call, run, job)
  const ms = performance.now() - ready
  t.equal(next.id, job.id)
  t.ok(ms < SOON_MS, `${Math.round(ms)} ms after the node was ready`)
  t.ok(SOON_MS < (defaultTiming.lease * 1000) / 2)
})
