/**
 * Concurrency slots of an organization's plan, with two loops whose messages arrive late but in
 * order. Invariant: the limit is never exceeded.
 */
import fc from 'fast-check'
import t from 'tap'
import { defineActor, type Effect } from '../../../actors/actor.ts'
import { planActor } from '../../../actors/loops/plan/plan.ts'
import { given, typesOf } from '../../support/given.ts'
import { ORGANIZATION, Yard } from '../loops/yard.ts'
import { played } from '../support/played.ts'

const actor = (plan_concurrency?: number) =>
  defineActor(planActor({ ...(plan_concurrency !== undefined && { plan_concurrency }) }))
type Told = Extract<Effect, { tell: unknown }>['tell']

/** Two loops and the plan, with one message queue per loop and direction. */
class Town {
  readonly plan
  readonly yards: readonly Yard[]
  readonly #toPlan: Told[][] = [[], []]
  readonly #toYard: Told[][] = [[], []]
  constructor(limit: number, concurrency: readonly string[]) {
    this.plan = played(actor(limit), { project: ORGANIZATION, kind: 'plan', id: ORGANIZATION })
    this.yards = concurrency.map((rule, n) => {
      const yard = new Yard({ n, plan_concurrency: limit })
      yard.create({ concurrency: rule })
      return yard
    })
  }
  /**
   * Calls `what` with a loop. Messages that the loop sends to the plan wait until `deliver` is
   * called.
   */
  act(n: number, what: (yard: Yard) => void): void {
    const yard = this.yards[n] as Yard
    const send = yard.send.bind(yard)
    yard.send = (name, input) => {
      const answer = send(name, input)
      for (const effect of yard.effects())
        if ('tell' in effect && effect.tell.to.kind === 'plan') this.#toPlan[n]?.push(effect.tell)
      return answer
    }
    try {
      what(yard)
      yard.settle()
      // A waiting run that the loop displaces ends immediately and reports its end.
      for (const id of yard.in('ended'))
        if (Object.hasOwn(yard.state.active, id)) yard.end(id, 'cancelled')
      yard.settle()
    } finally {
      yard.send = send
    }
  }
  /** Delivers the next message between the plan and yard `n`. Returns false if none is waiting. */
  deliver(n: number, direction: 'plan' | 'yard'): boolean {
    const told = (direction === 'plan' ? this.#toPlan : this.#toYard)[n]?.shift()
    if (!told) return false
    if (direction === 'yard') this.act(n, (yard) => void yard.send(told.name, told.input as never))
    else {
      this.plan.send(told.name, told.input)
      for (const effect of this.plan.effects)
        if ('tell' in effect)
          this.#toYard[this.yards.findIndex(({ id }) => id === effect.tell.to.id)]?.push(
            effect.tell,
          )
    }
    return true
  }
  settle(): void {
    while ([0, 1].some((n) => this.deliver(n, 'plan') || this.deliver(n, 'yard')));
  }
  running(): number {
    return this.yards.reduce((sum, yard) => sum + yard.in('running', 'leaving').length, 0)
  }
}

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('start' as const), n: fc.nat(1) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      n: fc.nat(1),
      pick: fc.nat(),
      status: fc.constantFrom('completed', 'failed', 'cancelled'),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('deliver' as const),
      n: fc.nat(1),
      direction: fc.constantFrom('plan' as const, 'yard' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pause' as const), n: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('go on' as const), n: fc.nat(1) }) },
)

t.test(
  'the limit is never exceeded; finally all runs have started and all slots are free',
  async () => {
    void fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 3 }),
        fc.array(fc.constantFrom('allow', 'queue', 'skip', 'replace'), {
          minLength: 2,
          maxLength: 2,
        }),
        fc.array(step, { maxLength: 80 }),
        (limit, rules, steps) => {
          const town = new Town(limit, rules)
          const check = () => {
            if (town.running() > limit)
              throw new Error(`${town.running()} runs are under way, ${limit} may be`)
          }
          for (const one of steps) {
            if (one.do === 'start') town.act(one.n, (yard) => void yard.start())
            else if (one.do === 'deliver') town.deliver(one.n, one.direction)
            else if (one.do === 'pause' || one.do === 'go on')
              town.act(
                one.n,
                (yard) =>
                  void yard.send('loop.update', {
                    status: one.do === 'pause' ? 'paused' : 'active',
                    organization: ORGANIZATION,
                  }),
              )
            else
              town.act(one.n, (yard) => {
                const under = yard.in('running', 'leaving')
                const id = under[one.pick % Math.max(1, under.length)]
                if (id !== undefined) yard.end(id, one.status)
              })
            check()
          }
          for (const n of [0, 1])
            town.act(
              n,
              (yard) =>
                void yard.send('loop.update', { status: 'active', organization: ORGANIZATION }),
            )
          for (let guard = 0; ; guard++) {
            if (guard > 500) throw new Error('the runs never end')
            town.settle()
            check()
            const n = town.yards.findIndex((yard) => yard.in('running', 'leaving').length > 0)
            if (n < 0) break
            town.act(n, (yard) => yard.end(yard.in('running', 'leaving')[0] ?? ''))
          }
          for (const yard of town.yards)
            if (yard.in('waiting').length > 0 || Object.keys(yard.state.places).length > 0)
              throw new Error(`somebody never began: ${JSON.stringify(yard.state.places)}`)
          const places = town.plan.ask<{ given: number; waiting: number }>('places')
          if (places.given + places.waiting > 0)
            throw new Error(`places are left: ${JSON.stringify(places)}`)
        },
      ),
      { numRuns: Number(process.env['RUNS'] ?? 300) },
    )
  },
)

t.test(
  'slots are granted once and in request order, and waiting requests are retried after 60 s',
  async (t) => {
    const ask = (n: number) => ({ run_id: `run_${n}`, loop_id: 'loop_1', project: 'prj_2' })
    const full = given(actor(1))
      .when('place.ask', ask(1))
      .when('place.ask', ask(2))
      .when('place.ask', ask(3))
    t.strictSame(typesOf(full), ['place.lined_up'])
    t.strictSame(full.when('place.ask', ask(1)).events, [], 'a repeated request changes nothing')
    t.strictSame(full.when('place.ask', ask(3)).events, [])
    const next = full.when('place.return', { run_id: 'run_1' })
    t.match(next.effects, [
      {
        tell: {
          to: { kind: 'loop', id: 'loop_1', project: 'prj_2' },
          name: 'place.give',
          input: { run_id: 'run_2' },
        },
      },
    ])
    t.strictSame(
      typesOf(full.when('place.return', { run_id: 'run_2' })),
      ['place.freed'],
      'a waiting request can be withdrawn',
    )
    t.strictSame(full.when('place.return', { run_id: 'run_9' }).events, [])
    const looked = full.when('wake')
    t.equal(looked.deadline(), looked.at + 60_000)
    const raised = given(actor(3), ...full.history)
    t.equal(raised.deadline(), 0, 'the limit was raised')
    t.strictSame(typesOf(raised.when('wake')), ['place.given', 'place.given'])
    t.strictSame(
      given(actor(), ...full.history)
        .when('wake')
        .ask('places'),
      { given: 3, waiting: 0 },
      'or taken away',
    )
  },
)

t.test('a run reports the plan limit and waits for its slot', async (t) => {
  const yard = new Yard({ plan_concurrency: 2 })
  yard.create()
  yard.start()
  const [id = ''] = yard.in('waiting')
  t.match(yard.runs.get(id)?.opening, {
    queue_reason: 'plan_concurrency',
    plan_concurrency_limit: 2,
  })
  yard.send('place.give', { run_id: id })
  t.strictSame(yard.in('running'), [id])
  yard.send('place.give', { run_id: id })
  t.strictSame(yard.events, [], 'a repeated grant changes nothing')
  yard.end(id)
  t.match(yard.effects(), [
    {
      tell: { to: { kind: 'plan', id: ORGANIZATION }, name: 'place.return', input: { run_id: id } },
    },
  ])
  yard.start()
  yard.send('loop.delete', { organization: ORGANIZATION })
  t.strictSame(
    yard.events.map(({ type }) => type),
    ['loop.deleted', 'loop.stands', 'run.displaced'],
    'waiting runs end with the loop',
  )
})
