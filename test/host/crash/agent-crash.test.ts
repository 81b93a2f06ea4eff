/**
 * A run with an agent step, whose session is in another shard. The node of either shard dies, at
 * each of its steps in turn. Invariants: the run requests one turn per attempt; each turn is opened
 * and reported once. The run ends as it does without a crash.
 */
import t from 'tap'
import { actorKinds } from '../../../actors/kinds.ts'
import type { Kind } from '../../../protocol/entry.ts'
import { makeId } from '../../../protocol/ids.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { definition, message, say, use } from '../../actors/sessions/story.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { runId, ToyWorld } from '../support/toy.ts'
import { dieAtEach, dying, handedTo, type Open, Told } from './dying.ts'

const run = runId(1)
const session = makeId('agent_session', 0, new Uint8Array(10).fill(1), 1)
const kinds = actorKinds({ brand: 'Service', timing: { ...defaultTiming, lease: 3600 } })
const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
const spec = {
  steps: [
    {
      id: 'ask',
      kind: 'agent',
      config: { agent_id: 'agt_1', instructions: 'Count', output_schema: schema },
      retry: { max_attempts: 2 },
    },
  ],
  output: { n: '${{ steps.ask.output.n }}' },
}
/** The answers of the model. The first submits no output, and the second submits a valid output. */
const script = [[say('what?')], [use('o', 'service_submit_output', { n: 7 })]]
/**
 * The queues of the jobs: `$openings` for the errands that open turns, `default` for generations.
 */
const queues = ['0.$openings', '1.default'] as const
const shardOfQueue = (id: string): 0 | 1 => (id.startsWith('0') ? 0 : 1)

async function play(
  mortal: 0 | 1,
  crashAt: number,
): Promise<{ steps: number; timeline: string[]; turns: unknown[]; record: unknown }> {
  const world = new ToyWorld(undefined, kinds)
  const bus = new MemoryBus()
  const stays = await world.owner(1 - mortal, world.deps(bus))
  const one = await dying(world, bus, crashAt, { shard: mortal })
  const told = new Told(world)
  const send = (shard: 0 | 1, kind: Kind, to: string, name: string, input: object) =>
    one.send(kind, to, name, input, shard === mortal ? undefined : stays)
  const ask = (shard: 0 | 1, kind: Kind, to: string, name: string) =>
    one.ask(kind, to, name, { limit: 10 }, shard === mortal ? undefined : stays)

  const handed = handedTo(bus)
  const ended = new Set<string>()
  let answered = 0
  /** Executes each assigned job once and reports it twice. */
  const work = async (): Promise<void> => {
    for (const queue of queues) {
      const jobs = (await ask(shardOfQueue(queue), 'queue', queue, 'waiting')) as JobHeader[]
      if (jobs.length > 0)
        await send(shardOfQueue(queue), 'queue', queue, 'queue.claim', {
          gateway: 'g',
          takes: jobs.map((job) => ({ job_id: job.id, session: 'w', instance: 'w' })),
        })
    }
    await settleAll()
    await one.revive()
    for (const [token, job] of handed) {
      if (ended.has(token)) continue
      ended.add(token)
      const queue = `${job.kind === 'opening' ? 0 : 1}.${job.queue}`
      const place = {
        root: session,
        generation: 0,
        session_key: 'k',
        agent_id: 'agt_1',
        agent_name: 'Bot',
      }
      const found = {
        turn_id: job.spec['turn_id'],
        session_id: session,
        place,
        seed: {},
        definition: definition([], { timeout_seconds: 86_400 }),
      }
      const result = job.kind === 'opening' ? {} : message(script[answered++] ?? [say('more')])
      for (let n = 0; n < 2; n++) {
        if (job.kind === 'opening') await send(0, 'run', run, 'turn.defined', found)
        await send(shardOfQueue(queue), 'queue', queue, 'queue.report', {
          job_id: job.id,
          lease_token: token,
          status: 'completed',
          result,
        })
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
    await one.revive()
  }
  return {
    steps: one.steps(),
    timeline: told.of('run').map(({ type }) => String(type)),
    record: { status: record['status'], result: record['result'] },
    turns: told
      .of('session')
      .filter(({ type }) => type === 'turn.admitted' || type === 'turn.upsert')
      .map(({ type, status }) => status ?? type),
  }
}

for (const mortal of [0, 1] as const) {
  t.test(
    `the node of the ${mortal === 0 ? 'run' : 'session'} may die at any step`,
    { timeout: 120_000 },
    async (t) => {
      const clean = await play(mortal, 0)
      t.strictSame(clean.record, { status: 'completed', result: { n: 7 } })
      t.strictSame(clean.turns, [
        'turn.admitted',
        'queued',
        'running',
        'failed',
        'turn.admitted',
        'queued',
        'running',
        'completed',
      ])
      t.equal(clean.timeline.filter((type) => type === 'turn.opened').length, 2)
      t.ok(clean.steps > 20, `${clean.steps} steps to die at`)
      await dieAtEach(t, clean, (at) => play(mortal, at))
    },
  )
}
