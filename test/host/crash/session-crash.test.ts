/**
 * A turn with tools, a question and a nudge, on a node that dies at each of its steps in turn.
 * Another node continues from the last commit. Invariants: each action is executed once; each job
 * ends once. The conversation is the same as without a crash.
 */
import t from 'tap'
import { actorKinds } from '../../../actors/kinds.ts'
import type { SessionState } from '../../../actors/sessions/state.ts'
import { makeId } from '../../../protocol/ids.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { definition, message, say, tool, use } from '../../actors/sessions/story.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { ToyWorld } from '../support/toy.ts'
import { dieAtEach, dying, handedTo, type Open, Told } from './dying.ts'

const id = makeId('agent_session', 0, new Uint8Array(10).fill(1), 0)
const kinds = actorKinds({ brand: 'Service', timing: { ...defaultTiming, lease: 3600 } })
const defined = definition([tool('act'), tool('rm', { destructive: true })], {
  timeout_seconds: 86_400,
})
const script = [
  [use('a', 'act', { n: 1 }), use('b', 'act', { n: 2 })],
  [use('c', 'rm', { path: '/' })],
  [say('done')],
]

async function play(
  crashAt: number,
): Promise<{ steps: number; rows: string[]; status: unknown; done: Open }> {
  const world = new ToyWorld(undefined, kinds)
  const bus = new MemoryBus()
  const { ask, revive, send, steps } = await dying(world, bus, crashAt)
  const told = new Told(world)
  const done: Record<string, number> = {}
  /** The assigned jobs by lease token. `work` executes each of them once and reports it twice. */
  const handed = handedTo(bus)
  const ended = new Set<string>()
  const work = async (): Promise<void> => {
    for (;;) {
      const { waiting, leased } = (await ask('queue', '0.default', 'depth')) as {
        waiting: number
        leased: number
      }
      if (waiting + leased === 0) return
      const jobs = (await ask('queue', '0.default', 'waiting', { limit: 10 })) as JobHeader[]
      if (jobs.length > 0)
        await send('queue', '0.default', 'queue.claim', {
          gateway: 'g',
          takes: jobs.map((job) => ({ job_id: job.id, session: 'w', instance: 'w' })),
        })
      await settleAll()
      await revive()
      for (const [token, job] of handed) {
        if (ended.has(token)) continue
        ended.add(token)
        if (job.kind === 'action_execution')
          done[String(job.tool_call_id)] = (done[String(job.tool_call_id)] ?? 0) + 1
        const result =
          job.kind === 'llm_generation'
            ? message(script[answered++] ?? [say('more')])
            : { did: job.spec['parameters'] }
        for (let n = 0; n < 2; n++)
          await send('queue', '0.default', 'queue.report', {
            job_id: job.id,
            lease_token: token,
            status: 'completed',
            result,
          })
      }
    }
  }
  let answered = 0
  const place = { root: id, generation: 0, session_key: 'k', agent_id: 'agt_1', agent_name: 'Bot' }
  await send('session', id, 'agent.invoke', {
    agent_ref: { id: 'agt_1' },
    input: { content: [say('go')], idempotency_key: 'k' },
    place,
    definition: defined,
  })
  await send('session', id, 'session.nudge', {
    session_id: id,
    content: 'hurry',
    content_hash: 'h',
    definition: defined,
  })
  await work()
  await world.clock.advance(2100)
  await revive()
  const events = () => told.of('session')
  const [question] = events().filter(
    ({ type, status }) => type === 'interaction.upsert' && status === 'pending',
  )
  await send('interaction', String(question?.['id']), 'interaction.respond', {
    value: true,
    roles: [],
  })
  await work()
  await world.clock.advance(2100)
  const rows = events().flatMap((event) =>
    event['type'] === 'message.upsert' && event['status'] === 'final'
      ? [
          `${String(event['sequence'])} ${String(event['role'])} ${JSON.stringify(event['content'])}`,
        ]
      : [],
  )
  const status = events()
    .filter(({ type }) => type === 'turn.upsert')
    .map((event) => event['status'])
  const state = (await ask('session', id, 'standing')) as { session: SessionState['record'] }
  return { steps: steps(), rows: [...rows, `version ${state.session?.version}`], status, done }
}

t.test('a node may die at any step of a turn', { timeout: 280_000 }, async (t) => {
  const clean = await play(0)
  t.strictSame(clean.done, { a: 1, b: 1, c: 1 })
  t.strictSame(clean.status, ['queued', 'running', 'waiting', 'queued', 'running', 'completed'])
  t.equal(clean.rows.length, 8)
  t.ok(clean.steps > 50, `${clean.steps} steps to die at`)
  await dieAtEach(t, clean, play)
})
