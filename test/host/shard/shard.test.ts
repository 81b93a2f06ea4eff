/** A shard's loop: batches, acknowledgements, repeats, effects, timers, snapshots and takeovers. */

import t from 'tap'
import type { AnyActor } from '../../../actors/actor.ts'
import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import type { Envelope } from '../../../protocol/entry.ts'
import { MemoryJournal, settleAll, silentLog } from '../../support/memory.ts'
import { type Count, command, counter, kinds, reply, runId, ToyWorld } from '../support/toy.ts'

const envelopes = (world: ToyWorld): Envelope[] =>
  world.journal.messages.map((message) => parseEnvelope(envelopeText(message.data)))
const get = async (
  shard: {
    ask: (
      to: { project: string; kind: 'run'; id: string },
      name: string,
      input: unknown,
    ) => Promise<unknown>
  },
  id: string,
) =>
  ((await shard.ask({ project: 'prj_1', kind: 'run', id }, 'get', {})) as { reply: unknown }).reply

t.test('commands that wait together are appended together', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  const before = world.journal.messages.length
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) => shard.submit(command(runId(i), 'add', { by: i }))),
  )
  t.same(
    answers.map(reply),
    Array.from({ length: 100 }, (_, i) => ({ count: i })),
  )
  t.ok(world.journal.messages.length - before <= 2, 'in one or two envelopes')
})

t.test('nothing is answered or published before the append is acknowledged', async (t) => {
  let release = () => {}
  const world = new ToyWorld((step) =>
    step === 'append' && hold
      ? new Promise<void>((done) => {
          release = done
        })
      : undefined,
  )
  let hold = false
  const deps = world.deps()
  const shard = await world.owner(0, deps)
  hold = true
  let answered = false
  const answer = shard.submit(command(runId(1), 'add', { by: 1 })).then((given) => {
    answered = true
    return given
  })
  await settleAll()
  t.notOk(answered)
  t.strictSame((deps.bus as unknown as { published: unknown[] }).published, [])
  hold = false
  release()
  t.same(reply(await answer), { count: 1 })
})

t.test('a command sent twice acts once and has the same answer', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  const [a, b] = await Promise.all([
    shard.submit(command(runId(1), 'add', { by: 5 }, 'same')),
    shard.submit(command(runId(1), 'add', { by: 5 }, 'same')),
  ])
  t.same(
    [reply(a), reply(b), reply(await shard.submit(command(runId(1), 'add', { by: 5 }, 'same')))],
    [{ count: 5 }, { count: 5 }, { count: 5 }],
  )
  t.match(await get(shard, runId(1)), { count: 5 })
  const next = await world.owner()
  t.same(
    reply(await next.submit(command(runId(1), 'add', { by: 5 }, 'same'))),
    { count: 5 },
    'also by the next owner',
  )
})

t.test(
  'a reply that contains a large state is computed again for a repeat and never copied',
  async (t) => {
    const showing: AnyActor = {
      ...counter,
      decide: {
        ...counter.decide,
        show: (() => ({
          events: [{ type: 'counted', by: 1 }],
          reply: (state: Count) => ({ shown: state.count }),
        })) as never,
      },
      replayReply: ((state: Count) => ({ shown: state.count })) as never,
    }
    const world = new ToyWorld(undefined, { ...kinds, run: showing })
    const shard = await world.owner()
    t.same(reply(await shard.submit(command(runId(1), 'show', {}, 'first'))), { shown: 1 })
    t.same(reply(await shard.submit(command(runId(1), 'add', { by: 4 }, 'added'))), { count: 5 })
    t.same(
      reply(await shard.submit(command(runId(1), 'show', {}, 'first'))),
      { shown: 5 },
      'acted once; as it is now',
    )
    t.same(
      reply(await shard.submit(command(runId(1), 'add', { by: 4 }, 'added'))),
      { count: 5 },
      'other replies are unchanged',
    )
    t.notMatch(JSON.stringify(envelopes(world)), /shown/)
    shard.drop()
    const next = await world.owner()
    t.same(
      reply(await next.submit(command(runId(1), 'show', {}, 'first'))),
      { shown: 5 },
      'also by another owner',
    )
  },
)

t.test('an actor whose snapshot fails costs its shard only time', async (t) => {
  // A BigInt, which JSON cannot represent, stands in for a text that exceeds the maximum length.
  const swollen: AnyActor = {
    ...counter,
    evolve: {
      ...counter.evolve,
      counted: ((state: Count, { by }: { by: number }) => ({
        ...state,
        count: state.count + by,
        ...(by === 13 && { size: 1n }),
      })) as never,
    },
  }
  const world = new ToyWorld(undefined, { ...kinds, run: swollen })
  const lost: string[] = []
  const said: string[] = []
  const deps = world.deps()
  const shard = await world.owner(
    0,
    {
      ...deps,
      log: {
        ...deps.log,
        error: (_: unknown, text?: string) => void said.push(text ?? ''),
      } as never,
    },
    lost,
  )
  await shard.submit(command(runId(1), 'add', { by: 13 }))
  await shard.submit(command(runId(2), 'add', { by: 2 }))
  await world.clock.advance(30_000)
  t.same(lost, [])
  t.match(said, [/actor snapshot failed/])
  t.equal(said.length, 1, 'and not tried all the time')
  t.ok(
    [...world.snapshots.values.keys()].some((key) => key.includes(runId(2))),
    'the others are stored',
  )
  await shard.submit(command(runId(2), 'add', { by: 2 }))
  shard.drop()
  const next = await world.owner(0, world.deps(), lost)
  t.same(
    reply(await next.submit(command(runId(1), 'add', { by: 1 }))),
    { count: 14 },
    'nothing is lost',
  )
  t.match(
    await next.ask({ project: 'prj_1', kind: 'run', id: runId(1) }, 'get', {}),
    { refused: 'internal' },
    'only the state that cannot be serialized is refused',
  )
  t.match(await get(next, runId(2)), { count: 4 })
  t.same(lost, [])
})

t.test('repeats of a pending command are not decided again', async (t) => {
  let release = () => {}
  let hold = false
  const world = new ToyWorld((step) =>
    step === 'append' && hold
      ? new Promise<void>((done) => {
          release = done
        })
      : undefined,
  )
  let decided = 0
  const shard = await world.owner(0, {
    ...world.deps(),
    measure: {
      commit() {},
      command() {
        decided++
      },
      offer() {},
    },
  })
  hold = true
  const asked = Array.from({ length: 5 }, () =>
    shard.submit(command(runId(1), 'add', { by: 5 }, 'same')),
  )
  await settleAll()
  asked.push(shard.submit(command(runId(1), 'add', { by: 5 }, 'same')))
  hold = false
  release()
  t.same(
    (await Promise.all(asked)).map(reply),
    asked.map(() => ({ count: 5 })),
  )
  t.equal(decided, 1)
})

t.test('a key reused with another request is refused', async (t) => {
  const shard = await new ToyWorld().owner()
  await shard.submit(command(runId(1), 'add', { by: 5 }, 'key', 'one'))
  t.match(await shard.submit(command(runId(1), 'add', { by: 6 }, 'key', 'two')), {
    refused: 'idempotency_key_conflict',
  })
})

for (const fault of ['lost', 'stored'] as const)
  t.test(`an append without an answer (${fault}) is resolved from the journal`, async (t) => {
    const world = new ToyWorld()
    const shard = await world.owner()
    world.journal.faults = [fault]
    const answer = shard.submit(command(runId(1), 'add', { by: 1 }))
    await world.clock.advance(100)
    t.same(reply(await answer), { count: 1 })
    t.equal(envelopes(world).flatMap((envelope) => envelope.entries).length, 1)
  })

t.test('a stale owner cannot append after a takeover', async (t) => {
  const world = new ToyWorld()
  const lost: string[] = []
  const old = await world.owner(0, world.deps(), lost)
  await old.submit(command(runId(1), 'add', { by: 1 }))
  const next = await world.owner()
  t.same(await old.submit(command(runId(1), 'add', { by: 1 })), { not_owner: true })
  t.equal(lost.length, 1)
  t.match(await get(next, runId(1)), { count: 1 })
  t.ok(
    envelopes(world).every(
      (envelope, i, all) => i === 0 || envelope.epoch >= (all[i - 1]?.epoch ?? 0),
    ),
    'epochs only grow',
  )
})

t.test('a tell inside the shard is part of the same commit', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'add', { by: 1, sibling: runId(2) }))
  t.match(
    envelopes(world)
      .at(-1)
      ?.entries.map((entry) => [entry.id, entry.events[0]?.type]),
    [
      [runId(1), 'counted'],
      [runId(2), 'heard'],
    ],
  )
})

t.test('an effect acts once on another shard, even if it is performed again', async (t) => {
  const world = new ToyWorld()
  const deps = world.deps()
  const here = await world.owner(0, deps)
  const there = await world.owner(1, { ...world.deps(deps.bus as never) })
  await here.submit(command(runId(1), 'add', { by: 1, abroad: runId(9, 1) }))
  await world.clock.advance(50)
  t.match(await get(there, runId(9, 1)), { told: 1 })
  here.drop()
  await world.owner(0, { ...world.deps(deps.bus as never) })
  await world.clock.advance(50)
  t.match(
    await get(there, runId(9, 1)),
    { told: 1 },
    'the new owner performs it again, and the receiver drops it',
  )
})

t.test('an actor is woken at its deadline, even by an owner that never loaded it', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'nap', { at: world.clock.now() + 90_000 }))
  await world.clock.advance(80_000)
  await shard.stop()
  const next = await world.owner()
  t.equal(next.instances.size, 0, 'nothing was replayed')
  await world.clock.advance(11_000)
  t.match(await get(next, runId(1)), { count: 1000 })
})

t.test('losing every snapshot changes no answer', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  for (let i = 0; i < 20; i++) await shard.submit(command(runId(i % 5), 'add', { by: i }, `k${i}`))
  await world.clock.advance(5000)
  await shard.stop()
  const same = await world.owner()
  const before = await Promise.all(
    [0, 1, 2, 3, 4].map(async (i) => JSON.stringify(await get(same, runId(i)))),
  )
  world.snapshots.values.clear()
  const next = await world.owner()
  t.same(
    await Promise.all([0, 1, 2, 3, 4].map(async (i) => JSON.stringify(await get(next, runId(i))))),
    before,
  )
  t.same(
    reply(await next.submit(command(runId(4), 'add', { by: 19 }, 'k19'))),
    { count: 4 + 9 + 14 + 19 },
    'a repeated command is still known',
  )
})

t.test('a missing snapshot is read again, and then replaced by the journal', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await world.clock.advance(5000)
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  const stored = [...world.snapshots.values].filter(([key]) => key.includes('run_'))
  const lose = () => {
    for (const [key] of stored) world.snapshots.values.delete(key)
  }
  lose()
  shard.drop()
  const said: string[] = []
  const log = {
    ...silentLog,
    warn: (_: object, text: string) => {
      said.push(text)
    },
  }
  const begin = async (after: () => void) => {
    const begun = world.owner(0, { ...world.deps(), log })
    await world.clock.advance(1000)
    after()
    await world.clock.advance(5000)
    return begun
  }
  const second = await begin(() => {
    for (const [key, value] of stored) world.snapshots.values.set(key, value)
  })
  t.match(await get(second, runId(1)), { count: 2 })
  t.same(
    said,
    ['snapshot missing; retrying', 'snapshot missing; retrying'],
    'it had only not been there yet',
  )
  await second.submit(command(runId(1), 'add', { by: 1 }))
  second.drop()
  lose()
  t.match(await get(await begin(() => {}), runId(1)), { count: 3 })
  t.equal(said.at(-1), 'snapshot missing; replaying the full journal')
})

t.test('an owner does not start with a journal that ends too early', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  await world.clock.advance(5000)
  await shard.submit(command(runId(1), 'add', { by: 1 }, 'again'))
  shard.drop()
  // Simulates a server that was paused and still acts as leader: it reports no message after the
  // checkpoint.
  const { messages } = world.journal
  const stale = Object.assign(new MemoryJournal(), { messages, read: async function* () {} })
  await t.rejects(world.owner(0, { ...world.deps(), journal: stale }), /ends at/)
  const next = await world.owner()
  t.match(await get(next, runId(1)), { count: 2 })
  t.same(reply(await next.submit(command(runId(1), 'add', { by: 1 }, 'again'))), { count: 2 })
})

t.test('values above 256 KiB are stored outside the journal and are restored', async (t) => {
  const world = new ToyWorld()
  const shard = await world.owner()
  await shard.submit(command(runId(1), 'add', { by: 1, text: 'x'.repeat(300_000) }))
  t.equal(world.blobs.values.size, 1)
  t.ok((world.journal.messages.at(-1)?.data.byteLength ?? 0) < 10_000)
  shard.drop()
  t.match(await get(await world.owner(), runId(1)), { count: 1 })
})

t.test('a bug in an actor returns internal and affects no other command', async (t) => {
  const world = new ToyWorld()
  const lost: string[] = []
  const shard = await world.owner(0, world.deps(), lost)
  const [good, bug, after] = await Promise.all([
    shard.submit(command(runId(1), 'add', { by: 1 })),
    shard.submit(command(runId(1), 'bug')),
    shard.submit(command(runId(1), 'add', { by: 1 })),
  ])
  t.same([reply(good), bug, reply(after)], [{ count: 1 }, { refused: 'internal' }, { count: 2 }])
  t.same(await shard.submit(command(runId(1), 'tear')), { refused: 'internal' })
  t.equal(lost.length, 1, 'memory that no longer agrees with the journal is given up')
  t.match(await get(await world.owner(), runId(1)), { count: 2 })
})

t.test('memory is given up when an event cannot be applied', async (t) => {
  const world = new ToyWorld()
  const lost: string[] = []
  const shard = await world.owner(0, world.deps(), lost)
  await shard.submit(command(runId(1), 'add', { by: 1 }))
  t.same(await shard.submit(command(runId(1), 'halve')), { refused: 'internal' })
  t.equal(lost.length, 1, 'the first event of the command was applied, but is not in the journal')
  t.match(await get(await world.owner(), runId(1)), { count: 1 })
})

t.test(
  "an actor's newest commands are remembered: all with a key, a bounded number of others",
  async (t) => {
    const world = new ToyWorld()
    const shard = await world.owner()
    const send = (from: number, to: number, keyed: boolean) =>
      Promise.all(
        Array.from({ length: to - from }, (_, n) =>
          shard.submit({
            ...command(runId(1), 'add', { by: 1 }, `${keyed ? 'k' : 'c'}${from + n}`),
            ...(keyed && { fingerprint: 'f' }),
          }),
        ),
      )
    await send(0, 400, true)
    await send(0, 1000, false)
    const instance = shard.instances.loaded({ project: 'prj_1', kind: 'run', id: runId(1) })
    const kept = [...(instance?.seen?.keys() ?? [])]
    t.equal(kept.filter((id) => id.startsWith('k')).length, 400, 'those with a key for a day')
    const unkeyed = kept.filter((id) => id.startsWith('c'))
    t.strictSame(
      unkeyed,
      Array.from({ length: unkeyed.length }, (_, n) => `c${1000 - unkeyed.length + n}`),
      'the newest',
    )
    t.ok(unkeyed.length >= 256 && unkeyed.length <= 320, `${unkeyed.length}`)
    t.same(
      await send(999, 1000, false).then(([answer]) => reply(answer as never)),
      { count: 1400 },
      'a repeat is answered the same',
    )
  },
)
