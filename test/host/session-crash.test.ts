/**
 * A turn with tools, a question and a nudge on a node that dies at every single step: another one goes on from the last commit. Each
 * action is done once, each job ends once, and the conversation is the one it would have been.
 */
import t from 'tap'
import { actorKinds } from '../../actors/kinds.ts'
import type { Shard } from '../../nodes/host/shard.ts'
import type { SessionState } from '../../actors/session/state.ts'
import type { Command, Entry, Kind } from '../../protocol/entry.ts'
import { makeId } from '../../protocol/ids.ts'
import type { JobHeader } from '../../protocol/api/jobs.ts'
import { subjects } from '../../protocol/subjects.ts'
import { defaultTiming, type ClaimedJob } from '../../protocol/worker.ts'
import { definition, message, say, tool, use } from '../actors/session/story.ts'
import { MemoryBus, settleAll } from '../memory.ts'
import { mortal } from './mortal.ts'
import { reply, ToyWorld } from './toy.ts'

type Open = Record<string, unknown>
const id = makeId('agent_session', 0, new Uint8Array(10).fill(1), 0)
const kinds = actorKinds({ brand: 'Service', timing: { ...defaultTiming, lease: 3600 } })
const defined = definition([tool('act'), tool('rm', { destructive: true })], { timeout_seconds: 86_400 })
/** What the model says, one answer after the other. */
const script = [[use('a', 'act', { n: 1 }), use('b', 'act', { n: 2 })], [use('c', 'rm', { path: '/' })], [say('done')]]

async function play(crashAt: number): Promise<{ steps: number; rows: string[]; status: unknown; done: Open }> {
  const world = new ToyWorld(undefined, kinds)
  const bus = new MemoryBus()
  const first = mortal(world.deps(bus), crashAt)
  let owner: Shard | undefined
  const replace = async () => { owner = await world.owner(0, world.deps(bus)) }
  try { owner = await world.owner(0, first.deps) } catch { await replace() }
  let commands = 0
  /** Send until it is answered, under one id. */
  const send = async (kind: Kind, to: string, name: string, input: object): Promise<unknown> => {
    const command: Command = { project: 'prj_1', kind, id: to, name, input, command_id: `c${++commands}`, origin: { at: 0, principal: { type: 'user', id: 'user_1' } } }
    for (;;) {
      const answer = await Promise.race([owner?.submit(command) ?? Promise.resolve(undefined), settleAll().then(settleAll).then(() => undefined)])
      if (answer && !('not_owner' in answer)) return reply(answer)
      await replace()
    }
  }
  const ask = async (kind: Kind, to: string, name: string, input: object): Promise<unknown> => {
    for (;;) {
      const answer = await Promise.race([owner?.ask({ project: 'prj_1', kind, id: to }, name, input).catch(() => undefined) ?? Promise.resolve(undefined), settleAll().then(settleAll).then(() => undefined)])
      if (answer && !('not_owner' in answer)) return reply(answer)
      await replace()
    }
  }
  const done: Record<string, number> = {}
  /** What a worker was handed, by lease token; it does a job once and reports everything twice. */
  const handed = new Map<string, ClaimedJob>()
  const ended = new Set<string>()
  bus.subscribe(subjects.gateway('g'), (sent) => {
    const { type, job } = sent as { type: string; job: ClaimedJob }
    if (type === 'assign') handed.set(job.lease_token, job)
    return { ok: true }
  })
  const work = async (): Promise<void> => {
    for (;;) {
      const { waiting, leased } = (await ask('queue', '0.default', 'depth', {})) as { waiting: number; leased: number }
      if (waiting + leased === 0) return
      const jobs = (await ask('queue', '0.default', 'waiting', { limit: 10 })) as JobHeader[]
      if (jobs.length > 0) await send('queue', '0.default', 'queue.claim', { gateway: 'g', takes: jobs.map((job) => ({ job_id: job.id, session: 'w', instance: 'w' })) })
      await settleAll()
      if (first.dead() && owner?.deps === first.deps) await replace()
      for (const [token, job] of handed) {
        if (ended.has(token)) continue
        ended.add(token)
        if (job.kind === 'action_execution') done[String(job.tool_call_id)] = (done[String(job.tool_call_id)] ?? 0) + 1
        const result = job.kind === 'llm_generation' ? message(script[answered++] ?? [say('more')]) : { did: job.spec['parameters'] }
        for (let n = 0; n < 2; n++) await send('queue', '0.default', 'queue.report', { job_id: job.id, lease_token: token, status: 'completed', result })
      }
    }
  }
  let answered = 0
  const place = { root: id, generation: 0, session_key: 'k', agent_id: 'agt_1', agent_name: 'Bot' }
  await send('session', id, 'agent.invoke', { agent_ref: { id: 'agt_1' }, input: { content: [say('go')], idempotency_key: 'k' }, place, definition: defined })
  await send('session', id, 'session.nudge', { session_id: id, content: 'hurry', content_hash: 'h', definition: defined })
  await work()
  await world.clock.advance(2100)
  if (first.dead() && owner?.deps === first.deps) await replace()
  const events = () => world.journal.messages.flatMap(({ data }) => (JSON.parse(new TextDecoder().decode(data)) as { entries: Entry[] }).entries).flatMap((entry) => (entry.kind === 'session' ? (entry.events as unknown as Open[]) : []))
  const [question] = events().filter(({ type, status }) => type === 'interaction.upsert' && status === 'pending')
  await send('interaction', String(question?.['id']), 'interaction.respond', { value: true, roles: [] })
  await work()
  await world.clock.advance(2100)
  const rows = events().flatMap((event) => (event['type'] === 'message.upsert' && event['status'] === 'final' ? [`${String(event['sequence'])} ${String(event['role'])} ${JSON.stringify(event['content'])}`] : []))
  const status = events().filter(({ type }) => type === 'turn.upsert').map((event) => event['status'])
  const state = (await ask('session', id, 'standing', {})) as { session: SessionState['record'] }
  return { steps: first.steps(), rows: [...rows, `version ${state.session?.version}`], status, done }
}

t.test('a node may die at any step of a turn', { timeout: 280_000 }, async (t) => {
  const clean = await play(0)
  t.strictSame(clean.done, { a: 1, b: 1, c: 1 })
  t.strictSame(clean.status, ['queued', 'running', 'waiting', 'queued', 'running', 'completed'])
  t.equal(clean.rows.length, 8)
  t.ok(clean.steps > 50, `${clean.steps} steps to die at`)
  for (let at = 1; at <= clean.steps; at++) {
    const crashed = await play(at)
    if (JSON.stringify({ ...crashed, steps: 0 }) !== JSON.stringify({ ...clean, steps: 0 })) t.strictSame({ ...crashed, steps: at }, { ...clean, steps: at }, `dying at step ${at}`)
  }
})
