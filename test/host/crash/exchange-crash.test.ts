/**
 * Two calls to an agent in a channel, on a node that dies at each of its steps in turn. Another
 * node continues from the last commit. Invariants: each call is answered once, in order, and the
 * session contains the same conversation as without a crash.
 */
import t from 'tap'
import { actorKinds } from '../../../actors/kinds.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Command } from '../../../protocol/entry.ts'
import type { Errand } from '../../../protocol/errand.ts'
import { makeId } from '../../../protocol/ids.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { subjects } from '../../../protocol/subjects.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { definition, message, say } from '../../actors/sessions/story.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { ToyWorld } from '../support/toy.ts'
import { dieAtEach, dying, handedTo, type Open, Told } from './dying.ts'

const bytes = new Uint8Array(10).fill(1)
const [channel, session] = [makeId('channel', 0, bytes, 0), makeId('agent_session', 0, bytes, 0)]
const kinds = actorKinds({ brand: 'Service', timing: { ...defaultTiming, lease: 3600 } })
const now = timestamp(0)
const member = (member_id: string, kind: 'user' | 'agent') => ({
  channel_id: channel,
  member_id,
  kind,
  role: 'admin',
  added_by: 'ann',
  joined_at: now,
  last_read_seq: 0,
})
const settings = {
  id: channel,
  name: 'ops',
  kind: 'channel',
  private: false,
  created_by: 'ann',
  created_at: now,
  updated_at: now,
}
const place = {
  root: session,
  generation: 0,
  session_key: 'k',
  agent_id: 'agt_1',
  agent_name: 'Bot',
}
const QUEUES = ['0.$errands', '0.default']

async function play(
  crashAt: number,
): Promise<{ steps: number; said: string[]; rows: string[]; turns: unknown[] }> {
  const world = new ToyWorld(undefined, kinds)
  const bus = new MemoryBus()
  let living: Awaited<ReturnType<typeof dying>> | undefined
  // This subscription is created before those of the owners, so it receives all commands.
  // Otherwise, an owner that has died or been replaced could receive them, and would never answer.
  bus.subscribe(subjects.shard(0, 0), (sent) => {
    const { command, commands: several = [] } = sent as { command?: Command; commands?: Command[] }
    const heard = (one: Command) =>
      Promise.race([
        living?.owner()?.submit(one),
        settleAll()
          .then(settleAll)
          .then(() => undefined),
      ]).then((answer) => answer ?? { not_owner: true })
    return command ? heard(command) : Promise.all(several.map(heard))
  })
  living = await dying(world, bus, crashAt)
  const { ask, revive, send, steps } = living
  const told = new Told(world)
  const said = (): string[] =>
    told
      .of('channel')
      .flatMap((event) =>
        event['type'] === 'message.created'
          ? [event['message'] as { seq: number; content: string; reply_to?: string }]
          : [],
      )
      .map(
        ({ seq, content, reply_to }) =>
          `${seq} ${content}${reply_to === undefined ? '' : ' below'}`,
      )

  const handed = handedTo(bus)
  const ended = new Set<string>()
  let answered = 0
  const errand = async ({ spec }: ClaimedJob): Promise<Open> => {
    const wanted = spec as unknown as Errand
    if (wanted.errand !== 'exchange') return {}
    const {
      exchange: { id: exchange_id, turn_id, asker, after_seq, through_seq },
    } = wanted
    await send('session', session, 'exchange.open', {
      place,
      exchange_id,
      turn_id,
      asker,
      definition: definition([], { timeout_seconds: 86_400 }),
      content: [say(`${after_seq} to ${through_seq}`)],
      channel: { id: channel, names: {} },
      title: '#ops',
      private: false,
    })
    return {}
  }
  await send('channel', channel, 'channel.open', {
    channel: settings,
    members: [member('ann', 'user'), member('agt_1', 'agent')],
    holder: makeId('channel_name', 0, bytes, 0),
  })
  for (const content of ['one', 'two'])
    await send('channel', channel, 'channel.send', {
      id: channel,
      content,
      mentioned: ['agt_1'],
      may_invoke: false,
    })
  for (let round = 0; said().length < 4; round++) {
    if (round > 60)
      throw new Error(`dying at step ${crashAt} it does not end: ${said().join(', ')}`)
    for (const queue of QUEUES) {
      const jobs = (await ask('queue', queue, 'waiting', { limit: 10 })) as JobHeader[]
      if (jobs.length > 0)
        await send('queue', queue, 'queue.claim', {
          gateway: 'g',
          takes: jobs.map(({ id }) => ({ job_id: id, session: 'w', instance: 'w' })),
        })
      await settleAll()
      await revive()
      for (const [token, job] of handed) {
        if (ended.has(token) || (job.kind === 'errand') !== (queue === '0.$errands')) continue
        ended.add(token)
        const result =
          job.kind === 'errand' ? await errand(job) : message([say(`answer ${++answered}`)])
        for (let n = 0; n < 2; n++)
          await send('queue', queue, 'queue.report', {
            job_id: job.id,
            lease_token: token,
            status: 'completed',
            result,
          })
      }
    }
    await world.clock.advance(500)
    await revive()
  }
  const rows = told
    .of('session')
    .flatMap((event) =>
      event['type'] === 'message.upsert' && event['status'] === 'final'
        ? [`${String(event['role'])} ${JSON.stringify(event['content'])}`]
        : [],
    )
  return {
    steps: steps(),
    said: said(),
    rows,
    turns: told
      .of('session')
      .filter(({ type }) => type === 'turn.upsert')
      .map(({ status }) => status),
  }
}

t.test('a node may die at any step of an exchange', { timeout: 120_000 }, async (t) => {
  const clean = await play(0)
  t.strictSame(clean.said, ['1 one', '2 two', '3 answer 1 below', '4 answer 2 below'])
  t.match(clean.rows, [/^user .*0 to 1/, /^assistant/, /^user .*1 to 3/, /^assistant/])
  t.strictSame(clean.turns, ['queued', 'running', 'completed', 'queued', 'running', 'completed'])
  await dieAtEach(t, clean, play)
})
