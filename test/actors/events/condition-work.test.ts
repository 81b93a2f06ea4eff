/** The work of conditions: bounded for each command, whatever the number of events and triggers. */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import { Listeners, newConditionBudget } from '../../../actors/events/listeners.ts'
import { initialSources } from '../../../actors/events/state.ts'
import { defaultTriggerLimits, type Publication } from '../../../protocol/events/sources.ts'
import { given } from '../../support/given.ts'

/** A condition that takes about 48,000 units of work for `TEXT`, and one that takes about ten. */
const SLOW = 'event.text matches "^x*$"'
const FAST = 'event.n > 0'
const TEXT = 'x'.repeat(8000)
const TRIGGERS = 50
const EVENTS = 100

const triggers = [...Array<string>(TRIGGERS).fill(SLOW), FAST].map((condition, i) => ({
  trigger_id: `trg_${i}`,
  event_type: 'order.paid',
  condition,
}))
const publication = (n: number): Publication => ({
  event_type: 'order.paid',
  source_kind: 'custom',
  source_id: 'shop',
  event: { n, text: TEXT },
  meta: {},
  depth: 0,
})

t.test('the conditions of one command share a budget', async (t) => {
  const listeners = new Listeners(initialSources())
  listeners.addLoop('loop_1', triggers)
  const budget = newConditionBudget()
  const whole = budget.left
  const matched = Array.from({ length: EVENTS }, (_, i) =>
    listeners.match(publication(i + 1), budget),
  )
  t.strictSame(
    matched[0]?.fires,
    { loop_1: triggers.map(({ trigger_id }) => trigger_id) },
    'slow conditions are evaluated while there is budget',
  )
  const last = matched.at(-1)
  t.strictSame(last?.fires, { loop_1: [`trg_${TRIGGERS}`] }, 'fast conditions always are')
  t.match(last?.faulty, { trg_0: /exceeds its computation limit/ })
  const work = whole - budget.left
  t.ok(work > whole, 'the budget was used up')
  t.ok(work < whole + 100_000 + EVENTS * TRIGGERS * 2100, `${work} units`)
  const { fires } = listeners.match(publication(1), newConditionBudget())
  t.equal(fires['loop_1']?.length, TRIGGERS + 1, 'the next command has its own budget')
})

t.test('all events of a batch share the budget, and none is lost', async (t) => {
  const events = Array.from({ length: EVENTS }, (_, i) => {
    const { event_type, event } = publication(i + 1)
    return { event_type, event }
  })
  const actor = defineActor(eventsActor(defaultTriggerLimits))
  const stored = given(actor)
    .when('triggers.set', { loop_id: 'loop_1', version: 1, triggers })
    .when('event.publish_many', { events, ids: events.map((_, i) => `evt_${i}`) }).events
  const fired = stored.map((one) => (one as { fires?: Record<string, string[]> }).fires?.['loop_1'])
  t.equal(fired.length, EVENTS)
  t.equal(fired[0]?.length, TRIGGERS + 1)
  t.ok(fired.every((ids) => ids?.includes(`trg_${TRIGGERS}`)))
  t.equal(fired.at(-1)?.length, 1)
})
