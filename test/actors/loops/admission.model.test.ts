/**
 * Random starts and ends of runs and changes to rules, compared with the rules of admission.
 * Invariants: limits hold, the runs of a trigger start in order, and every waiting run starts.
 */
import fc from 'fast-check'
import t from 'tap'
import { ruleOf } from '../../../actors/loops/admit.ts'
import type { ConcurrencyPolicy } from '../../../protocol/loops/schema.ts'
import { ORGANIZATION, Yard } from './yard.ts'

const policies: ConcurrencyPolicy[] = ['allow', 'queue', 'skip', 'replace']
const rule = fc.record({
  concurrency_policy: fc.option(fc.constantFrom(...policies), { nil: undefined }),
  max_concurrent_runs: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
})
const action = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('start' as const), by: fc.constantFrom('', 'a', 'b') }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      pick: fc.nat(),
      status: fc.constantFrom('completed', 'failed', 'cancelled'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('rule' as const),
      concurrency: fc.constantFrom(...policies),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: 'return' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'pause' as const }) },
)
const clean = (value: object) =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined))

t.test('limits hold, runs start in order, and every waiting run starts', async () => {
  void fc.assert(
    fc.property(
      fc.constantFrom(...policies),
      rule,
      rule,
      fc.array(action, { maxLength: 60 }),
      (concurrency, a, b, actions) => {
        const yard = new Yard()
        const triggers = [
          { kind: 'event', key: 'a', config: { event_type: 'x.y' }, ...clean(a) },
          { kind: 'event', key: 'b', config: { event_type: 'x.y' }, ...clean(b) },
        ]
        yard.create({ concurrency, triggers })
        let loose = false
        const limits = () => ({
          all: yard.state.record?.concurrency === 'allow' ? Infinity : 1,
          a: ruleOf(clean(a)).limit,
          b: ruleOf(clean(b)).limit,
        })
        const failed: string[] = []
        const check = () => {
          const under = yard.in('running', 'leaving')
          const of = (key: string) =>
            under.filter((id) => yard.runs.get(id)?.trigger === yard.state.trigger_ids[key]).length
          const most = limits()
          if (!loose && under.length > most.all)
            throw new Error(`${under.length} runs are under way`)
          for (const key of ['a', 'b'] as const)
            if (of(key) > most[key]) throw new Error(`${of(key)} runs of ${key} are under way`)
          if (under.length <= most.all) loose = false
          // The loop counts exactly the active runs, and queues exactly the waiting runs.
          if (
            JSON.stringify(Object.keys(yard.state.active).sort()) !== JSON.stringify(under.sort())
          )
            throw new Error('the loop counts others than those that are under way')
          if (
            JSON.stringify(yard.state.line.map(({ run_id }) => run_id)) !==
            JSON.stringify(yard.in('waiting'))
          )
            throw new Error(
              `the line is ${JSON.stringify(yard.state.line)}, but ${yard.in('waiting')} wait`,
            )
          const free = (id: string) => {
            const key = ['a', 'b'].find(
              (one) => yard.state.trigger_ids[one] === yard.runs.get(id)?.trigger,
            ) as 'a' | 'b' | undefined
            return key === undefined || of(key) < most[key]
          }
          if (
            yard.state.record?.status === 'active' &&
            under.length < most.all &&
            yard.in('waiting').some(free)
          )
            throw new Error('somebody waits although there is room')
        }
        for (const step of actions) {
          if (step.do === 'start') step.by === '' ? yard.start() : yard.fire(step.by)
          else if (step.do === 'end') {
            const under = yard.in('running', 'leaving')
            const id = under[step.pick % Math.max(1, under.length)]
            if (id !== undefined) {
              if (step.status === 'failed') failed.push(id)
              yard.end(id, step.status)
            }
          } else if (step.do === 'rule') {
            // Runs that are active when the limit is lowered may continue, so the limit may be
            // exceeded until they end.
            loose = true
            yard.send('loop.update', { concurrency: step.concurrency, organization: 'org_1' })
          } else if (step.do === 'pause') {
            yard.send('loop.update', { status: 'paused', organization: 'org_1' })
            yard.settle()
            yard.send('loop.update', { status: 'active', organization: 'org_1' })
          } else {
            const id = failed.pop()
            const run = id === undefined ? undefined : yard.runs.get(id)
            if (id !== undefined && run) {
              yard.runs.delete(id)
              run.state = 'waiting'
              yard.runs.set(id, run)
              yard.send('run.returns', {
                run_id: id,
                ...(run.trigger !== '' && { trigger_id: run.trigger }),
              })
            }
          }
          yard.settle()
          check()
        }
        const waiting = yard.in('waiting')
        const from = yard.began.length
        for (let guard = 0; yard.in('running', 'leaving').length > 0; guard++) {
          if (guard > 500) throw new Error('the runs never end')
          yard.end(yard.in('running', 'leaving')[0] ?? '')
          yard.settle()
          check()
        }
        if (yard.in('waiting').length > 0) throw new Error('somebody never began')
        const began = yard.began.slice(from)
        for (const trigger of new Set(waiting.map((id) => yard.runs.get(id)?.trigger))) {
          const mine = (list: readonly string[]) =>
            list.filter((id) => waiting.includes(id) && yard.runs.get(id)?.trigger === trigger)
          if (JSON.stringify(mine(began)) !== JSON.stringify(mine(waiting)))
            throw new Error(`they waited as ${mine(waiting)} and began as ${mine(began)}`)
        }
      },
    ),
    { numRuns: Number(process.env['RUNS'] ?? 400) },
  )
})

t.test('the limits of a deleted loop apply to its recovered runs', async (t) => {
  for (const settings of [
    { concurrency: 'queue' },
    {
      triggers: [
        { kind: 'event', key: 'k', config: { event_type: 'a.b' }, max_concurrent_runs: 1 },
      ],
    },
  ]) {
    const yard = new Yard()
    yard.create(settings)
    const trigger_id = yard.state.trigger_ids['k']
    yard.send('loop.delete', { organization: ORGANIZATION })
    const returns = (run_id: string) =>
      yard.send('run.returns', { run_id, ...(trigger_id !== undefined && { trigger_id }) })
    for (const run_id of ['run_1', 'run_2', 'run_3']) {
      yard.runs.set(run_id, { state: 'waiting', opening: {}, trigger: '' })
      returns(run_id)
    }
    t.strictSame(yard.began, ['run_1'])
    yard.end('run_1')
    t.strictSame(yard.began, ['run_1', 'run_2'])
    yard.end('run_2')
    yard.end('run_3')
    t.strictSame(yard.began, ['run_1', 'run_2', 'run_3'])
    t.strictSame([yard.state.active, yard.state.line, yard.state.returned], [{}, [], {}])
  }
})

t.test(
  'a deleted loop displaces its waiting runs, but none that was recovered since',
  async (t) => {
    const yard = new Yard()
    yard.create({ concurrency: 'queue' })
    for (let i = 0; i < 120; i++) yard.start()
    const [running = ''] = yard.began
    yard.send('loop.delete', { organization: ORGANIZATION })
    yard.runs.set('run_1', { state: 'waiting', opening: {}, trigger: '' })
    yard.send('run.returns', { run_id: 'run_1' })
    yard.end(running)
    yard.settle()
    t.strictSame(yard.began, [running, 'run_1'])
    t.strictSame(yard.in('waiting', 'leaving'), [])
  },
)
