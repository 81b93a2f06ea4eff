/** The order of waiting jobs from several shards, as a gateway with free slots merges them. */
import fc from 'fast-check'
import t from 'tap'
import type { MaybePromise } from '../../../gateway/maybe-promise.ts'
import { COLLECT_TIMEOUT_MS, type Decided, Order } from '../../../gateway/workers/jobs/order.ts'

interface Job {
  readonly id: string
  readonly priority: number
  readonly fairness_key: string
  readonly enqueued_at: number
}
const NOW = 1_000_000
const job = (id: string, age: number, priority = 0, fairness_key = ''): Job => ({
  id,
  priority,
  fairness_key,
  enqueued_at: NOW - age,
})

/** Creates shards with waiting jobs, workers with free slots, and a manual clock. */
function scene(shards: Record<string, Job[]>) {
  const at = {
    now: NOW,
    slots: 0,
    since: 0,
    given: [] as string[],
    timers: new Set<{ readonly at: number; readonly run: () => void }>(),
    promised: new Set<string>(),
  }
  const order = new Order<Job, string>({
    fits: ({ id }) => at.slots > 0 || at.promised.has(id),
    take: ({ id }, again) => {
      if (at.promised.has(id)) return id
      if (again || at.slots === 0) return undefined
      at.slots--
      at.promised.add(id)
      at.given.push(id)
      return id
    },
    shards: 4,
    since: () => at.since,
    now: () => at.now,
    later: (ms, run) => {
      const timer = { at: at.now + ms, run }
      at.timers.add(timer)
      return () => void at.timers.delete(timer)
    },
  })
  const offer = (source: string, ahead = false): MaybePromise<Decided<Job, string>> =>
    order.offer(source, shards[source] ?? [], ahead)
  /** Removes the taken jobs from their shard once the shard's offer is answered. */
  const settled = async (source: string, answer: MaybePromise<Decided<Job, string>>) => {
    const { taken } = await answer
    shards[source] = (shards[source] ?? []).filter(({ id }) => !taken.includes(id))
  }
  const pass = (ms: number) => {
    at.now += ms
    for (const timer of [...at.timers])
      if (timer.at <= at.now) {
        at.timers.delete(timer)
        timer.run()
      }
  }
  return {
    at,
    order,
    offer,
    pass,
    /** Frees one slot. Then these shards offer their jobs, in this order. */
    async round(sources: readonly string[]) {
      at.slots++
      at.since = at.now
      const answers = sources.map((source) => settled(source, offer(source)))
      pass(COLLECT_TIMEOUT_MS)
      await Promise.all(answers)
    },
  }
}

t.test('new jobs are taken at once', async (t) => {
  const s = scene({ a: [job('1', 0), job('2', 0)] })
  s.at.slots = 3
  t.match(s.offer('a'), { taken: ['1', '2'], left: [] })
  t.ok(s.order.idle)
})

t.test('when slots become free, the oldest job of all shards comes first', async (t) => {
  const s = scene({ a: [job('young', 1500)], b: [job('old', 1800)] })
  s.at.slots = 1
  s.at.since = NOW
  const answers = [s.offer('a'), s.offer('b')]
  t.same(s.at.given, [], 'others may have older work')
  s.pass(COLLECT_TIMEOUT_MS)
  t.match(await Promise.all(answers), [{ taken: [] }, { taken: ['old'] }])
  s.at.slots = 1
  t.match(s.offer('a'), { taken: ['young'] }, 'no shard is known to have older jobs')
})

t.test('an offer waits for a shard that has older jobs, up to a time limit', async (t) => {
  const s = scene({ a: [job('new', 0)], b: [job('high', 0, 5)] })
  t.match(s.offer('b'), { taken: [], left: [{ id: 'high' }] })
  s.at.slots = 1
  const waiting = s.offer('a')
  t.type(waiting, Promise)
  t.match(s.offer('a', true), { taken: [] }, 'an offer that needs its answer at once takes nothing')
  t.match(s.offer('b'), { taken: ['high'] })
  t.match(await waiting, { taken: [] })

  const gone = scene({ a: [job('new', 0)], b: [job('high', 0, 5)] })
  void gone.offer('b')
  gone.at.slots = 1
  const alone = gone.offer('a')
  gone.pass(COLLECT_TIMEOUT_MS - 1)
  t.same(gone.at.given, [])
  gone.pass(1)
  t.match(await alone, { taken: ['new'] }, 'the other shard has found another gateway')
  gone.at.slots = 1
  t.match(gone.order.offer('a', [job('next', 0)]), { taken: ['next'] }, 'its work is forgotten')
})

t.test('a repeated offer gets the same jobs promised', async (t) => {
  const s = scene({ a: [job('1', 0), job('2', 0)] })
  s.at.slots = 1
  t.match(s.offer('a'), { taken: ['1'], left: [{ id: '2' }] })
  t.match(s.offer('a'), { taken: ['1'], left: [{ id: '2' }] })
  t.match(s.offer('a', true), { taken: ['1'] })
})

t.test('two fairness keys take turns across shards, however many jobs one has', async (t) => {
  const many = (shard: string) =>
    Array.from({ length: 50 }, (_, i) => job(`${shard}${i}`, 9000 - i, 0, 'many'))
  const s = scene({
    a: [...many('a'), job('few1', 5000, 0, 'few')],
    b: many('b'),
    c: [job('few2', 4000, 0, 'few')],
  })
  for (let n = 0; n < 4; n++) await s.round(['a', 'b', 'c'])
  t.same(s.at.given, ['a0', 'few1', 'a1', 'few2'])
})

t.test('with one slot at a time, the jobs of all shards come out in global order', async (t) => {
  const jobs = fc.uniqueArray(
    fc.record({
      shard: fc.constantFrom('a', 'b', 'c', 'd'),
      priority: fc.integer({ min: -1, max: 1 }),
      seconds: fc.integer({ min: 2, max: 60 }),
    }),
    { maxLength: 20, selector: ({ seconds }) => seconds },
  )
  await fc.assert(
    fc.asyncProperty(jobs, fc.infiniteStream(fc.integer({ min: 0, max: 3 })), async (all, dice) => {
      const named = all.map(({ shard, priority, seconds }, i) => ({
        shard,
        ...job(`${i}`, seconds * 1000, priority),
      }))
      const inOrder = [...named].sort(
        (x, y) => y.priority - x.priority || x.enqueued_at - y.enqueued_at,
      )
      const of = (name: string) => inOrder.filter(({ shard }) => shard === name)
      const s = scene({ a: of('a'), b: of('b'), c: of('c'), d: of('d') })
      for (const _ of all) {
        const sources = ['a', 'b', 'c', 'd']
        for (let n = 0; n < 4; n++) sources.push(...sources.splice(dice.next().value, 1))
        await s.round(sources)
      }
      t.same(
        s.at.given,
        inOrder.map(({ id }) => id),
      )
    }),
    { numRuns: 200 },
  )
})
