/**
 * An upload of an artifact whose gateway, or the owner of one of its shards, fails at each step in
 * turn. Afterwards the client repeats the upload under the same idempotency key at another gateway.
 * Invariants: there is one record, with the sent bytes; the object store has no other file; the
 * quota is exact and nothing is pending. The artifact is published once.
 */
import { createHash } from 'node:crypto'
import t from 'tap'
import { actorKinds } from '../../../actors/kinds.ts'
import type { Outcome, World } from '../../../gateway/ports.ts'
import { createWorld } from '../../../nodes/world.ts'
import type { ArtifactEvent } from '../../../protocol/artifacts/events.ts'
import type { ArtifactRecord } from '../../../protocol/artifacts/schema.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import { makeId } from '../../../protocol/ids.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { defaultTiming } from '../../../protocol/workers/timing.ts'
import { fakeParts } from '../../support/fake-world.ts'
import { MemoryBus, settleAll } from '../../support/memory.ts'
import { ToyWorld } from '../support/toy.ts'
import { dieAtEach, dying, handedTo, Told } from './dying.ts'
import { type Failure, failingGateway, MemoryFiles, type Sent } from './upload-edge.ts'

const bytesOf = (n: number) => new Uint8Array(10).fill(n)
const ORGANIZATION = makeId('organization', 0, bytesOf(1), 0)
const PROJECT = makeId('project', 0, bytesOf(2), 1)
const RUN = makeId('run', 0, bytesOf(3), 1)
const QUEUE = '1.default'
const UPLOAD_MS = 30_000
const kinds = actorKinds({
  brand: 'Service',
  timing: { ...defaultTiming, lease: 3600 },
  artifacts: { quota_bytes: 1_000_000, upload_ms: UPLOAD_MS },
})
const bytes = Buffer.from('the bytes of the file')
const spec = { steps: [{ id: 'do', kind: 'action', config: { action_name: 'do' } }] }

class FileWorld extends ToyWorld {
  readonly files = new MemoryFiles()
  override deps(bus?: MemoryBus) {
    return { ...super.deps(bus), files: this.files }
  }
}

interface Plan {
  /** What fails at step `at`: the gateway, in one of two ways, or the owner of shard 0 or 1. */
  readonly who: Failure | 0 | 1
  readonly leased: boolean
  /** Whether the client repeats the upload under its idempotency key. */
  readonly repeats: boolean
}
interface Played {
  readonly steps: number
  readonly [fact: string]: unknown
}

async function play({ who, leased, repeats }: Plan, at: number): Promise<Played> {
  const world = new FileWorld(undefined, kinds)
  const bus = new MemoryBus()
  const shard = typeof who === 'number' ? who : 0
  const stays = await world.owner(1 - shard, world.deps(bus))
  const one = await dying(world, bus, typeof who === 'number' ? at : 0, { shard, project: PROJECT })
  const told = new Told(world)
  const gateway: World = createWorld(
    fakeParts({
      settings: {
        brand: 'Service',
        shards: 2,
        deadline: 15_000,
        artifacts: { max_bytes: 1000, upload_ms: UPLOAD_MS },
      },
      organization: ORGANIZATION,
      bus,
      clock: world.clock,
      random: world.random,
    }),
  )

  /**
   * Advances the time by at most 20 s, until the promise settles or its gateway is dead. Returns
   * undefined if the promise did not settle.
   */
  async function passed<T>(promise: Promise<T>, dead = () => false): Promise<T | undefined> {
    let settled: { readonly value: T } | undefined
    void promise.then((value) => {
      settled = { value }
    })
    for (let round = 0; !settled && !dead() && round < 200; round++) {
      await settleAll()
      await one.revive()
      if (!settled) await world.clock.advance(100)
    }
    return settled?.value
  }
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 500) {
      await world.clock.advance(500)
      await one.revive()
    }
  }

  let lease: string | undefined
  if (leased) {
    const handed = handedTo(bus)
    const owner = shard === 1 ? undefined : stays
    await one.send('run', RUN, 'run.start', { project: PROJECT, spec }, owner)
    const jobs = (await one.ask('queue', QUEUE, 'waiting', { limit: 1 }, owner)) as JobHeader[]
    const takes = jobs.map(({ id }) => ({ job_id: id, session: 'w', instance: 'w' }))
    await one.send('queue', QUEUE, 'queue.claim', { gateway: 'g', takes }, owner)
    await pass(1000)
    lease = [...handed.keys()][0]
  }
  const sent: Sent = { project: PROJECT, bytes, key: 'k', ...(lease !== undefined && { lease }) }
  const first = failingGateway(
    gateway,
    world.files,
    typeof who === 'string' ? at : 0,
    who === 'dies' ? 'dies' : 'fails',
  )
  await passed(
    first.upload(sent).catch(() => undefined),
    first.dead,
  )
  if (repeats) {
    const second = failingGateway(gateway, world.files, 0, 'fails')
    for (let turn = 0; turn < 5; turn++) {
      const answer = await passed(second.upload(sent))
      if (answer && !isRefusal(answer)) break
      await pass(UPLOAD_MS / 2)
    }
  }
  await pass(2 * UPLOAD_MS)

  const records = new Map<string, ArtifactRecord>()
  const places = new Set<string>()
  for (const event of told.of('artifact') as readonly unknown[] as ArtifactEvent[])
    if (event.type === 'artifact.completed') records.set(event.id, event.artifact)
  for (const id of records.keys()) {
    const to = { project: PROJECT, kind: 'artifact', id } as const
    const kept = await passed(gateway.ask(to, 'content', {}))
    if (kept && !isRefusal(kept) && kept.state === 'ready') places.add(kept.blob)
  }
  const organization = { project: ORGANIZATION, kind: 'organization', id: ORGANIZATION } as const
  const published = told.of('events').filter(({ type }) => type === 'source.published')
  return {
    steps: typeof who === 'string' ? first.steps() : one.steps(),
    records: [...records.values()].map(({ name, sha256 }) => ({ name, sha256 })),
    files: [...world.files.values].map(([name, stored]) => [places.has(name), String(stored)]),
    quota: await passed(gateway.ask(organization, 'artifact_quota', {}) as Promise<Outcome>),
    published: published.length,
    timeline: told.of('run').filter(({ type }) => type === 'artifact.created').length,
  }
}

const sha256 = createHash('sha256').update(bytes).digest('hex')
const failures = {
  dies: 'a gateway dies',
  fails: 'a call of a gateway fails',
  0: 'the owner of the organization dies',
  1: 'the owner of the project dies',
} as const
for (const leased of [false, true])
  for (const who of ['dies', 'fails', 0, 1] as const)
    t.test(
      `${failures[who]} at any step of an upload${leased ? ' of a worker' : ''}`,
      { timeout: 120_000 },
      async (t) => {
        const plan = { who, leased, repeats: true }
        const clean = await play(plan, 0)
        t.match(clean, {
          records: [{ name: 'file', sha256 }],
          files: [[true, String(bytes)]],
          quota: { used_bytes: bytes.length, artifact_count: 1, pending_count: 0 },
          published: 1,
          timeline: leased ? 1 : 0,
        })
        t.ok(clean.steps > 15, `${clean.steps} steps`)
        await dieAtEach(t, clean, (at) => play(plan, at))
      },
    )

t.test('without a repeat, a gateway that dies leaves a whole artifact or nothing', async (t) => {
  const plan: Plan = { who: 'dies', leased: false, repeats: false }
  const whole = await play(plan, 0)
  const nothing = {
    ...whole,
    records: [],
    files: [],
    quota: { ...(whole['quota'] as object), used_bytes: 0, artifact_count: 0 },
    published: 0,
  }
  const seen = new Set<boolean>()
  for (let at = 1; at <= whole.steps; at++) {
    const left = await play(plan, at)
    const isWhole = (left['records'] as readonly unknown[]).length > 0
    seen.add(isWhole)
    t.strictSame({ ...left, steps: 0 }, { ...(isWhole ? whole : nothing), steps: 0 }, `step ${at}`)
  }
  t.equal(seen.size, 2)
})
