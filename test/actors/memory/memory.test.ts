/**
 * The memory of an agent, compared with a model: versions, the feed of changes, and the eviction of
 * entries from a full memory.
 */
import fc from 'fast-check'
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { type MemoryState, memory } from '../../../actors/memory/memory.ts'
import { timestamp } from '../../../protocol/common.ts'
import {
  type MemoryChange,
  type MemoryEntry,
  memoryLimits,
} from '../../../protocol/memory/schema.ts'
import { given, START } from '../../support/given.ts'

const actor = defineActor(memory)
const fresh = () => given<MemoryState>(actor)
type Saved = { readonly type: string; readonly entry: MemoryEntry; readonly change: MemoryChange }
const save = (memory_key: string, more: object = {}) => ({
  id: 'agt_1',
  project: 'prj_1',
  memory_key,
  content: 'x',
  ...more,
})

t.test('an entry is saved, replaced as a whole and forgotten', async (t) => {
  const first = fresh().when(
    'memory.save',
    save('likes', {
      summary: 'tea',
      metadata: { from: 'chat' },
      importance: 80,
      pinned: true,
      kind: 'preference',
    }),
  )
  t.same(
    first.reply,
    {
      key: 'likes',
      kind: 'preference',
      entry_id: 'mem_1',
      importance: 80,
      pinned: true,
      version: 1,
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
      status_code: 201,
    },
    'content is added by the edge',
  )
  t.match((first.events as unknown as Saved[])[0], {
    type: 'memory.saved',
    entry: { content: 'x', summary: 'tea' },
    change: {
      id: 'mchg_1',
      agent_id: 'memory_1',
      memory_key: 'likes',
      operation: 'created',
      version: 1,
      reason: 'api',
      actor_id: 'user_1',
    },
  })
  t.notMatch(JSON.stringify(first.state), 'tea', 'the state has no content')
  const second = first.when('memory.save', save('likes'), { at: START + 1000 })
  t.match(second.reply, {
    kind: 'fact',
    importance: 50,
    pinned: false,
    version: 2,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:01.000Z',
  })
  t.notOk('status_code' in (second.reply as object))
  t.notOk(
    'summary' in ((second.events as unknown as Saved[])[0]?.entry ?? {}),
    'omitted members are removed',
  )
  const gone = second.when('memory.forget', { memory_key: 'likes' })
  t.match(gone.events, [
    {
      type: 'memory.forgotten',
      change: { operation: 'deleted', version: 3, memory_entry_id: 'mem_1', reason: 'api' },
    },
  ])
  t.same(
    gone.when('memory.forget', { memory_key: 'likes' }).events,
    [],
    'forgetting nothing is nothing',
  )
  t.match(gone.when('memory.save', save('likes')).reply, { entry_id: 'mem_2', version: 1 })
  t.match(fresh().when('memory.save', save('no spaces')).refused, { refused: 'bad_request' })
  t.match(fresh().when('memory.save', save('x'.repeat(257))).refused, { refused: 'bad_request' })
})

t.test('entries that the agent saves itself are marked, with their run', async (t) => {
  const kept = fresh().when('memory.remember', {
    memory_key: 'k',
    content: 'x',
    source_run_id: 'run_1',
  })
  t.match(kept.events, [
    { entry: { source_run_id: 'run_1' }, change: { reason: 'remembered', source_run_id: 'run_1' } },
  ])
  const gone = kept.when('memory.discard', { memory_key: 'k' })
  t.match(
    [gone.reply, gone.events],
    [{ forgotten: true }, [{ change: { reason: 'remembered', operation: 'deleted' } }]],
  )
  t.same(gone.when('memory.discard', { memory_key: 'k' }).reply, { forgotten: false })
})

t.test('a cleared memory accepts no more entries', async (t) => {
  const cleared = fresh().when('memory.save', save('a')).when('memory.clear')
  t.same(
    [
      cleared.events,
      cleared.when('memory.clear').events,
      cleared.when('memory.save', save('a')).refused,
    ],
    [[{ type: 'memory.cleared' }], [], { refused: 'not_found' }],
  )
})

t.test(
  'a full memory evicts the least important, then the oldest unchanged entries, never pinned ones',
  async (t) => {
    const entry = (n: number): MemoryEntry => ({
      key: `k${n}`,
      kind: 'fact',
      entry_id: `mem_k${n}`,
      importance: n === 7 || n === 8 ? 10 : 50,
      pinned: false,
      version: 1,
      created_at: timestamp(START + n),
      updated_at: timestamp(START + n),
    })
    const scene = given<MemoryState>(
      actor,
      ...Array.from({ length: memoryLimits.entries }, (_, n) => ({
        type: 'memory.saved',
        entry: entry(n),
      })),
    )
    const more = scene.when('memory.save', save('new', { importance: 0 }), { at: START + 5000 })
    t.match(more.events.slice(1), [
      {
        type: 'memory.forgotten',
        change: { memory_key: 'k7', reason: 'soft_cap', operation: 'deleted', version: 2 },
      },
    ])
    t.notOk('actor_id' in (more.events[1] as unknown as Saved).change, 'an eviction has no actor')
    t.same(more.when('memory.save', save('pinned', { pinned: true })).events.length, 1)
    t.match(
      more
        .when('memory.save', save('pinned', { pinned: true }))
        .when('memory.save', save('pinned'))
        .events.map(({ change }) => (change as MemoryChange).memory_key),
      ['pinned', 'new'],
      'unpinning can fill it',
    )
  },
)

t.test('versions grow, the state equals a model, and the feed lists every change', async () => {
  const command = fc.record({
    name: fc.constantFrom('memory.save', 'memory.forget', 'memory.remember', 'memory.discard'),
    key: fc.constantFrom('a', 'b', 'c', '__proto__'),
    pinned: fc.boolean(),
    importance: fc.nat(100),
  })
  void fc.assert(
    fc.property(fc.array(command, { maxLength: 30 }), (commands) => {
      let scene = fresh()
      const model = new Map<string, { version: number; importance: number; pinned: boolean }>()
      const told = new Map<string, number>()
      for (const [n, { name, key, pinned, importance }] of commands.entries()) {
        const saves = name === 'memory.save' || name === 'memory.remember'
        const outcome = scene.when(
          name,
          saves ? save(key, { pinned, importance }) : { memory_key: key },
          { at: START + n },
        )
        const before = model.get(key)
        if (saves) model.set(key, { version: (before?.version ?? 0) + 1, importance, pinned })
        else model.delete(key)
        for (const event of outcome.events as unknown as Saved[]) {
          const { change } = event
          const last = told.get(change.memory_entry_id) ?? 0
          if (change.version !== last + 1) throw new Error('a version is missing in the feed')
          told.set(change.memory_entry_id, change.version)
        }
        if (!saves && outcome.events.length !== (before ? 1 : 0)) throw new Error('forgetting')
        scene = outcome
      }
      const kept = Object.entries(scene.state.entries).map(
        ([place, { version, importance, pinned }]) => [place.slice(1), version, importance, pinned],
      )
      const wanted = [...model].map(([key, { version, importance, pinned }]) => [
        key,
        version,
        importance,
        pinned,
      ])
      if (JSON.stringify(kept.sort()) !== JSON.stringify(wanted.sort()))
        throw new Error(`${JSON.stringify(kept)} instead of ${JSON.stringify(wanted)}`)
    }),
    { numRuns: 500 },
  )
})
