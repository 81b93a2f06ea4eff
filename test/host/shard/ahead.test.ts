/**
 * Jobs that are claimed through a gateway or executor in the owner's own process: the claim is part
 * of the commit that enqueues the job, and the assignment follows the acknowledgement of that
 * commit.
 */

import t from 'tap'
import { queueActor } from '../../../actors/jobs/queue.ts'
import { answerEach } from '../../../nodes/host/effects/pushes.ts'
import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import type { Command } from '../../../protocol/entry.ts'
import type { Offer, OfferReply } from '../../../protocol/workers/messages.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { ToyWorld } from '../support/toy.ts'

let commands = 0
/**
 * Returns a command that enqueues a job.
 * @param header additional fields of the job's header.
 * @param record additional fields of the job's record.
 */
const enqueue = (id: string, header: object = {}, record: object = {}): Command => ({
  project: 'prj_1',
  kind: 'queue',
  id: '0.default',
  name: 'queue.enqueue',
  command_id: `q${++commands}`,
  origin: { at: 0, principal: { type: 'system', id: 'test' } },
  input: {
    job: {
      id,
      kind: 'action_execution',
      origin: 'run',
      executor_kind: 'worker',
      action_name: 'do',
      priority: 0,
      max_attempts: 1,
      max_losses: 1,
      enqueued_at: 0,
      fairness_key: '',
      ...header,
    },
    record: { id, status: 'queued', ...record },
  },
})
const takeAll = ({ jobs }: Offer, more: object = {}): OfferReply => ({
  gateway: 'g',
  takes: jobs.map(({ id }) => ({ job_id: id, session: 's', instance: 'i', ...more })),
})

/** Starts a shard with the real queue actor, and logs its appends and messages in order. */
async function scene(listen: (bus: MemoryBus, said: string[]) => void) {
  const said: string[] = []
  const toys = new ToyWorld().kinds
  const world = new ToyWorld(
    (step) => {
      if (step === 'append' || step === 'appended') said.push(step)
    },
    { ...toys, queue: queueActor(defaultTiming) },
  )
  const bus = new MemoryBus()
  bus.subscribe('gateway.g', (message) =>
    answerEach(message, (one) => {
      said.push(`handed ${(one as unknown as { job: { id: string } }).job.id}`)
      return { ok: true }
    }),
  )
  listen(bus, said)
  const lost: string[] = []
  const shard = await world.owner(0, world.deps(bus), lost)
  said.length = 0
  const envelopes = () =>
    world.journal.messages
      .slice(1)
      .map(({ data }) =>
        parseEnvelope(envelopeText(data)).entries.flatMap(({ events }) =>
          events.map((event) => `${event.type} ${(event as unknown as { id: string }).id}`),
        ),
      )
  return { shard, world, said, envelopes, lost, bus }
}

t.test(
  'one commit has the job and its claim, and the worker gets it after the acknowledgement',
  async (t) => {
    const { shard, said, envelopes } = await scene((bus, said) =>
      bus.subscribe('offer.prj_1.default.*', (offer) => {
        said.push('offered')
        return takeAll(offer as Offer)
      }),
    )
    await shard.submit(enqueue('job_1'))
    await settleAll()
    t.strictSame(envelopes(), [['job.queued job_1', 'job.claimed job_1']])
    t.strictSame(said, ['offered', 'append', 'appended', 'handed job_1'])
    shard.drop()
  },
)

t.test('a claim that could not be committed reaches no worker', async (t) => {
  const { shard, world, said, envelopes, lost, bus } = await scene((bus) =>
    bus.subscribe('offer.prj_1.default.*', (offer) => takeAll(offer as Offer)),
  )
  await shard.submit(enqueue('job_1'))
  await settleAll()
  const later = await world.owner(0, world.deps(bus))
  later.drop()
  said.length = 0
  t.strictSame(await shard.submit(enqueue('job_2')), { not_owner: true })
  await settleAll()
  t.strictSame(lost, ['another node owns the shard'])
  t.notOk(envelopes().flat().includes('job.queued job_2'))
  t.strictSame(said, ['append'])
})

t.test(
  'a late answer is not awaited: the job is offered again after its commit and claimed once',
  async (t) => {
    let offers = 0
    const { shard, said, envelopes } = await scene((bus) =>
      bus.subscribe('offer.prj_1.default.*', async (offer) => {
        offers++
        return takeAll(offer as Offer)
      }),
    )
    await shard.submit(enqueue('job_1'))
    await settleAll()
    t.strictSame(envelopes(), [['job.queued job_1'], ['job.claimed job_1']])
    t.equal(offers, 2)
    t.strictSame(
      said.filter((line) => line.startsWith('handed')),
      ['handed job_1'],
    )
    shard.drop()
  },
)

t.test(
  'a job of the service goes to an executor, whether its header or a gateway says so',
  async (t) => {
    const asked: string[] = []
    const { shard, envelopes } = await scene((bus) => {
      bus.subscribe('offer.prj_1.default.*', (offer) => {
        asked.push('gateway')
        return { gateway: 'g', takes: [], served: true, for: offer }
      })
      bus.subscribe('serve.prj_1.default.*', (offer) => {
        asked.push('executor')
        return takeAll(offer as Offer, { served: true })
      })
    })
    await shard.submit(enqueue('job_1', { executor_kind: 'server_worker' }))
    await shard.submit(enqueue('job_2'))
    await settleAll()
    t.strictSame(envelopes(), [
      ['job.queued job_1', 'job.claimed job_1'],
      ['job.queued job_2', 'job.claimed job_2'],
    ])
    t.strictSame(asked, ['executor', 'gateway', 'executor'])
    shard.drop()
  },
)

t.test(
  'without a free local worker, or in a full batch, the job is offered to other nodes',
  async (t) => {
    let busy = true
    const { shard, world, envelopes } = await scene((bus) =>
      bus.subscribe('offer.prj_1.default.*', (offer) =>
        busy ? { gateway: 'g', takes: [], busy: true } : takeAll(offer as Offer),
      ),
    )
    await shard.submit(enqueue('job_1'))
    await settleAll()
    t.strictSame(envelopes(), [['job.queued job_1']])
    busy = false
    await Promise.all(
      [2, 3, 4].map((n) => shard.submit(enqueue(`job_${n}`, {}, { note: 'x'.repeat(200 * 1024) }))),
    )
    await world.clock.advance(0)
    t.strictSame(envelopes().slice(1), [
      ['job.queued job_2', 'job.queued job_3', 'job.queued job_4'],
      ['job.claimed job_1', 'job.claimed job_2', 'job.claimed job_3', 'job.claimed job_4'],
    ])
    shard.drop()
  },
)
