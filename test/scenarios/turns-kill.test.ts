/** Turns of agents while the process that makes their generations, and the one that decides them, are killed: each ends as its script says, and no tool is done twice. */
import t from 'tap'
import { Worker } from '../../client/worker.ts'
import { portsFor, processes } from './processes.ts'

type Json = Readonly<Record<string, unknown>>
const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))
const AGENTS = 5
const TURNS = 20
/** The agents think for different times, so that whenever a process is killed some are in the middle of it. */
const script = (agent: number): string => `
script:
  - when: {text: "do *", step: 1}
    say: "I do {{1}}."
    delay: ${300 + agent * 600}ms
    pace: 20ms
    chunk: 2
    call: {jobs.work: {n: "{{1}}"}}
  - when: {after: jobs.work, error: true}
    say: "It failed: {{result}}"
  - when: {after: jobs.work}
    delay: 300ms
    say: "{{result.n}} is done."
`

t.setTimeout(280_000)
t.test('the executor and a shard node are killed in the middle of turns', { timeout: 280_000 }, async (t) => {
  const it = await processes({ BATON_WORKER_CADENCE: '1s', BATON_WORKER_LEASE: '5s', BATON_WORKER_POLL: '1s', BATON_WORKER_STALE: '6s', BATON_WORKER_TAKEOVER: '4s' })
  t.teardown(() => it.stop())
  const [port = 0] = await portsFor(1)
  const url = `http://127.0.0.1:${port}`
  const doomed = await it.node('shards-a', 'shards')
  await it.node('shards-b', 'shards')
  await it.node('edge', 'gateway,views', port)
  const executor = await it.node('executor-a', 'executor')

  /** Ask until the answer is final; the same request each time. */
  async function call(method: string, path: string, body?: Json): Promise<Json> {
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await fetch(`${url}/v1/projects/default${path}`, { method, headers: { authorization: `Bearer ${it.key}`, ...(body && { 'content-type': 'application/json' }) }, ...(body && { body: JSON.stringify(body) }), signal: AbortSignal.timeout(20_000) })
        const text = await answer.text()
        if (answer.status < 400) return JSON.parse(text) as Json
        if (answer.status < 500 && answer.status !== 429) throw new Error(`${path} was answered ${answer.status}: ${text}`)
      } catch (error) {
        if (attempt > 100 || (error as Error).message.includes('was answered')) throw error
      }
      await pause(100)
    }
  }
  const performed: string[] = []
  const worker = new Worker({ url, key: it.key, concurrency: TURNS, actions: { 'jobs.work': async ({ n }) => {
    await pause(200)
    performed.push(String(n))
    return { n }
  } } })
  await worker.start()
  const kit = await call('POST', '/toolkits', { name: 'jobs', actions: [{ selector_type: 'exact', selector: 'jobs.work' }] })
  const agents = await Promise.all(Array.from({ length: AGENTS }, async (_, index) => {
    const agent = await call('POST', '/agents', { name: `agent ${index}`, system_prompt: script(index), tool_presentation: 'flat' })
    await call('PUT', `/agents/${String(agent['id'])}/toolkit-assignments`, { toolkit_ids: [kit['id']] })
    return agent
  }))
  const begun = await Promise.all(Array.from({ length: TURNS }, async (_, n) => {
    const ack = await call('POST', '/agents/invoke', { agent_ref: { id: agents[n % AGENTS]?.['id'] }, session: { session_key: `chat ${n}` }, input: { content: [{ type: 'text', text: `do ${n}` }], idempotency_key: `turn ${n}` } })
    const [session, turn] = [ack['session'], ack['turn']] as [Json, Json]
    return { n, path: `/sessions/${String(session['id'])}/turns/${String(turn['id'])}`, messages: `/turns/${String(turn['id'])}/messages` }
  }))
  const reached = async (count: number) => { while (performed.length < count) await pause(10) }
  await reached(2)
  await executor.kill()
  t.comment(`the executor was killed after ${performed.length} of ${TURNS} tools were done`)
  t.ok(performed.length < TURNS)
  await it.node('executor-b', 'executor')
  await reached(TURNS / 2)
  await doomed.kill()
  t.comment(`a shard node was killed after ${performed.length}`)

  const faults: string[] = []
  for (const { n, path, messages } of begun) {
    let turn: Json = {}
    for (let look = 0; look < 400 && !['completed', 'failed', 'cancelled'].includes(String(turn['status'])); look++) {
      turn = await call('GET', path)
      await pause(100)
    }
    const { items } = (await call('GET', messages)) as { items: { role: string; content: Json[] }[] }
    const said = items.map(({ role, content }) => `${role}: ${content.map((block) => block['text'] ?? block['name'] ?? block['content']).join(' ')}`)
    const expected = [`user: do ${n}`, `assistant: I do ${n}. jobs_work`, `user: {"n":"${n}"}`, `assistant: ${n} is done.`]
    if (turn['status'] !== 'completed' || JSON.stringify(said) !== JSON.stringify(expected)) faults.push(`turn ${n} is ${JSON.stringify(turn)} ${said.join(' | ')}`)
  }
  t.strictSame(faults, [])
  t.strictSame([...performed].sort((a, b) => Number(a) - Number(b)), Array.from({ length: TURNS }, (_, n) => String(n)), 'every tool was done once')
  await worker.stop()
})
