/**
 * A run whose step asks an agent, with the run and the session in two shards, and the node of one of them dying at every single
 * step: the run asks once for each attempt, each turn is opened once and told once, and the run ends as it would have.
 */
import t from 'tap'
import { actorKinds } from '../../actors/kinds.ts'
import type { Shard } from '../../nodes/host/shard.ts'
import type { JobHeader } from '../../protocol/api/jobs.ts'
import type { Command, Entry, Kind } from '../../protocol/entry.ts'
import { makeId } from '../../protocol/ids.ts'
import { subjects } from '../../protocol/subjects.ts'
import { defaultTiming, type ClaimedJob } from '../../protocol/worker.ts'
import { definition, message, say, use } from '../actors/session/story.ts'
import { MemoryBus, settleAll } from '../memory.ts'
import { mortal } from './mortal.ts'
import { reply, runId, ToyWorld } from './toy.ts'

type Open = Record<string, unknown>
const run = runId(1)
const session = makeId('agent_session', 0, new Uint8Array(10).fill(1), 1)
const kinds = actorKinds({ brand: 'Service', timing: { ...defaultTiming, lease: 3600 } })
const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
const spec = {
  steps: [{ id: 'ask', kind: 'agent', config: { agent_id: 'agt_1', instructions: 'Count', output_schema: schema }, retry: { max_attempts: 2 } }], output: { n: '${{ steps.ask.output.n }}' },
}
/** What the model says: nothing that fits, and in the second turn what is wanted. */
const script = [[say('what?')], [use('o', 'service_submit_output', { n: 7 })]]
/** Queues with work: looking up, and the model. */
const queues = ['0.$openings', '1.default'] as const
const shardOfQueue = (id: string): 0 | 1 => (id.startsWith('0') ? 0 : 1)

async function play(dying: 0 | 1, crashAt: number): Promise<{ steps: number; timeline: string[]; turns: unknown[]; record: unknown }> {
  const world = new ToyWorld(undefined, kinds)
  const bus = new MemoryBus()
  const first = mortal(world.deps(bus), crashAt)
  const owners: [Shard | undefined, Shard | undefined] = [undefined, undefined]
  const replace = async () => { owners[dying] = await world.owner(dying, world.deps(bus)) }
  owners[1 - dying] = await world.owner(1 - dying, world.deps(bus))
  try { owners[dying] = await world.owner(dying, first.deps) } catch { await replace() }
  /** Whoever holds the shard that dies, alive. */
  const revive = async () => { if (first.dead() && owners[dying]?.deps === first.deps) await replace() }
  let commands = 0
  const until = async (shard: 0 | 1, ask: (owner: Shard | undefined) => Promise<unknown>): Promise<unknown> => {
    for (;;) {
      const answer = (await Promise.race([ask(owners[shard]), settleAll().then(settleAll).then(() => undefined)])) as Parameters<typeof reply>[0] | undefined
      if (answer && !('not_owner' in answer)) return reply(answer)
      await (shard === dying ? replace() : revive())
    }
  }
  const send = (shard: 0 | 1, kind: Kind, to: string, name: string, input: object): Promise<unknown> => {
    const command: Command = { project: 'prj_1', kind, id: to, name, input, command_id: `c${++commands}`, origin: { at: 0, principal: { type: 'user', id: 'user_1' } } }
    return until(shard, (owner) => owner?.submit(command) ?? Promise.resolve(undefined))
  }
  const ask = (shard: 0 | 1, kind: Kind, to: string, name: string): Promise<unknown> =>
    until(shard, (owner) => owner?.ask({ project: 'prj_1', kind, id: to }, name, { limit: 10 }).catch(() => undefined) ?? Promise.resolve(undefined))

  const handed = new Map<string, { readonly queue: string; readonly job: ClaimedJob }>()
  const ended = new Set<string>()
  bus.subscribe(subjects.gateway('g'), (sent) => {
    const { type, job } = sent as { type: string; job: ClaimedJob }
    if (type === 'assign') handed.set(job.lease_token, { queue: `${job.kind === 'opening' ? 0 : 1}.${job.queue}`, job })
    return { ok: true }
  })
  let answered = 0
  /** Do what is handed out once, and say everything twice. */
  const work = async (): Promise<void> => {
    for (const queue of queues) {
      const jobs = (await ask(shardOfQueue(queue), 'queue', queue, 'waiting')) as JobHeader[]
      if (jobs.length > 0) await send(shardOfQueue(queue), 'queue', queue, 'queue.claim', { gateway: 'g', takes: jobs.map((job) => ({ job_id: job.id, session: 'w', instance: 'w' })) })
    }
    await settleAll()
    await revive()
    for (const [token, { queue, job }] of handed) {
      if (ended.has(token)) continue
      ended.add(token)
      const place = { root: session, generation: 0, session_key: 'k', agent_id: 'agt_1', agent_name: 'Bot' }
      const found = { turn_id: job.spec['turn_id'], session_id: session, place, seed: {}, definition: definition([], { timeout_seconds: 86_400 }) }
      const result = job.kind === 'opening' ? {} : message(script[answered++] ?? [say('more')])
      for (let n = 0; n < 2; n++) {
        if (job.kind === 'opening') await send(0, 'run', run, 'turn.defined', found)
        await send(shardOfQueue(queue), 'queue', queue, 'queue.report', { job_id: job.id, lease_token: token, status: 'completed', result })
      }
    }
  }
  await send(0, 'run', run, 'run.start', { project: 'prj_1', spec })
  let record: Open = {}
  for (let round = 0; round < 40; round++) {
    record = (await ask(0, 'run', run, 'get')) as Open
    if (record['status'] === 'completed' || record['status'] === 'failed') break
    await work()
    await world.clock.advance(1100)
    await settleAll()
    await revive()
  }
  const entries = world.journal.messages.flatMap(({ data }) => (JSON.parse(new TextDecoder().decode(data)) as { entries: Entry[] }).entries)
  const of = (kind: Kind): Open[] => entries.filter((entry) => entry.kind === kind).flatMap(({ events }) => events as unknown as Open[])
  return {
    steps: first.steps(), timeline: of('run').map(({ type }) => String(type)), record: { status: record['status'], result: record['result'] },
    turns: of('session').filter(({ type }) => type === 'turn.admitted' || type === 'turn.upsert').map(({ type, status }) => status ?? type),
  }
}

for (const dying of [0, 1] as const) {
  t.test(`the node of the ${dying === 0 ? 'run' : 'session'} may die at any step`, { timeout: 120_000 }, async (t) => {
    const clean = await play(dying, 0)
    t.strictSame(clean.record, { status: 'completed', result: { n: 7 } })
    t.strictSame(clean.turns, ['turn.admitted', 'queued', 'running', 'failed', 'turn.admitted', 'queued', 'running', 'completed'])
    t.equal(clean.timeline.filter((type) => type === 'turn.opened').length, 2)
    t.ok(clean.steps > 20, `${clean.steps} steps to die at`)
    for (let at = 1; at <= clean.steps; at++) {
      const crashed = await play(dying, at)
      if (JSON.stringify({ ...crashed, steps: 0 }) !== JSON.stringify({ ...clean, steps: 0 })) t.strictSame({ ...crashed, steps: at }, { ...clean, steps: at }, `dying at step ${at}`)
    }
  })
}
