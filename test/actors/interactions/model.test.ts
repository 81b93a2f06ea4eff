/**
 * Random orders of answers, repeats, answers by others, cancellations and the passage of time.
 * Invariants: there is at most one outcome, which equals the model's; the waiting run is notified
 * exactly once, or never if the run withdrew the question.
 */
import fc from 'fast-check'
import t from 'tap'
import { isSatisfied, outcomeOf } from '../../../protocol/interactions/resolve.ts'
import { START } from '../../support/given.ts'
import { type After, type Asked, asked, by, record } from './story.ts'

type Step =
  | { readonly do: 'answer'; readonly who: number; readonly value: boolean }
  | { readonly do: 'cancel' | 'withdraw' | 'wake' | 'delete' }
  | { readonly do: 'pass'; readonly ms: number }
interface Case {
  readonly targets: number
  readonly policy: 'any_of' | 'all_of' | 'quorum'
  readonly threshold: number
  readonly confirm: boolean
  readonly expires: number | undefined
  readonly steps: readonly Step[]
}
const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'stranger']

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      who: fc.integer({ min: 0, max: 7 }),
      value: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('wake' as const, 'delete' as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('cancel' as const, 'withdraw' as const) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.integer({ min: 0, max: 400 }),
    }),
  },
)
const cases: fc.Arbitrary<Case> = fc.integer({ min: 1, max: 7 }).chain((targets) =>
  fc.record({
    targets: fc.constant(targets),
    policy: fc.constantFrom('any_of', 'all_of', 'quorum'),
    threshold: fc.integer({ min: 1, max: targets }),
    confirm: fc.boolean(),
    expires: fc.option(fc.integer({ min: 1, max: 1000 }), { nil: undefined }),
    steps: fc.array(step, { maxLength: 40 }),
  }),
)

class Model {
  status = 'pending'
  outcome: unknown
  readonly answers: { who: string; value: boolean }[] = []
  readonly #case: Case
  constructor(one: Case) {
    this.#case = one
  }
  answer(who: string, value: boolean, late: boolean): void {
    const { targets, policy, threshold, confirm } = this.#case
    if (
      this.status !== 'pending' ||
      late ||
      !names.slice(0, targets).includes(who) ||
      this.answers.some((one) => one.who === who)
    )
      return
    this.answers.push({ who, value })
    if (this.answers.length < (policy === 'any_of' ? 1 : policy === 'all_of' ? targets : threshold))
      return
    this.status = 'completed'
    this.outcome =
      policy === 'any_of'
        ? value
        : confirm
          ? !this.answers.some((one) => !one.value)
          : this.answers.map((one) => ({ responder_user_id: one.who, value: one.value }))
  }
  end(status: string): void {
    if (this.status === 'pending') this.status = status
  }
}

t.test('there is one outcome, it equals the model, and it is sent once', async (t) => {
  void fc.assert(
    fc.property(cases, (one) => {
      const { targets, policy, threshold, confirm, expires, steps } = one
      const model = new Model(one)
      let scene: Asked = asked({
        kind: 'request_approval',
        target_user_ids: names.slice(0, targets),
        resolution_policy: { type: policy, ...(policy === 'quorum' && { threshold }) },
        spec: confirm ? { mode: 'confirm' } : undefined,
        run_id: 'run_1',
        signal_name: 'done',
        ...(expires !== undefined && { expires_at: new Date(START + expires).toISOString() }),
      })
      let at = START
      let told = 0
      let withdrawn = false
      let frozen: string | undefined
      let deleted = false
      for (const next of steps) {
        const late = expires !== undefined && at >= START + expires
        let after: After | undefined
        switch (next.do) {
          case 'pass':
            at += next.ms
            break
          case 'answer': {
            const who = names[next.who] ?? ''
            after = scene.when(
              'interaction.respond',
              { value: next.value, roles: [] },
              { at, ...by(who) },
            )
            if (!deleted) model.answer(who, next.value, late)
            break
          }
          case 'wake':
            after = scene.when('wake', {}, { at, ...by('system') })
            if (late) model.end('expired')
            break
          case 'cancel':
            after = scene.when('interaction.cancel', {}, { at, ...by('boss') })
            if (!late) model.end('cancelled')
            break
          case 'withdraw':
            after = scene.when('interaction.withdraw', {}, { at, ...by('system') })
            if (model.status === 'pending') withdrawn = true
            model.end('cancelled')
            break
          case 'delete':
            after = scene.when('interaction.delete', {}, { at, ...by('boss') })
            if (model.status !== 'pending') deleted = true
            break
        }
        if (!after) continue
        told += after.tells.filter(({ name }) => name === 'interaction.settled').length
        scene = after
        const now = record(scene)
        t.equal(now.status, model.status)
        t.strictSame(now.outcome, model.outcome)
        t.strictSame(
          now.responses.map(({ responder_user_id, value }) => ({ who: responder_user_id, value })),
          model.answers,
        )
        t.equal(told, model.status === 'pending' || withdrawn ? 0 : 1)
        if (frozen !== undefined)
          t.equal(JSON.stringify(now), frozen, 'an ended interaction never changes')
        if (model.status !== 'pending') frozen = JSON.stringify(now)
        if (!t.passing()) throw new Error('the model disagrees')
      }
      const resolved = scene.history.filter(({ type }) => type === 'interaction.resolved').length
      if (resolved !== (model.status === 'pending' ? 0 : 1))
        throw new Error(`it was resolved ${resolved} times`)
    }),
    { numRuns: 400 },
  )
})

t.test('more answers never undo a satisfied policy, and each person counts once', async (t) => {
  void fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 7 }),
      fc.array(fc.integer({ min: 0, max: 6 })),
      fc.constantFrom('any_of' as const, 'all_of' as const, 'quorum' as const),
      fc.integer({ min: 1, max: 7 }),
      (count, order, type, threshold) => {
        const targets = names.slice(0, count)
        const people = order.filter((who) => who < count).map((who) => names[who] ?? '')
        const policy = { type, threshold: Math.min(threshold, count) }
        let before = false
        for (let n = 0; n <= people.length; n++) {
          const now = isSatisfied(policy, targets, people.slice(0, n))
          if (before && !now) return false
          if (now !== isSatisfied(policy, targets, [...new Set(people.slice(0, n))])) return false
          before = now
        }
        return true
      },
    ),
  )
  t.equal(
    outcomeOf({ type: 'any_of' }, undefined, [
      { responder_user_id: 'a', value: 0 },
      { responder_user_id: 'b', value: 1 },
    ]),
    0,
  )
})
