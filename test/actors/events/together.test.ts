/** Events that the service publishes together, in one command. */
import t from 'tap'
import { defineActor } from '../../../actors/actor.ts'
import { eventsActor } from '../../../actors/events/events.ts'
import { defaultTriggerLimits } from '../../../protocol/events/sources.ts'
import { given } from '../../support/given.ts'

const actor = defineActor(eventsActor(defaultTriggerLimits))

t.test('events that are published together are stored and matched one by one', async (t) => {
  const from = given(actor)
    .when('triggers.set', {
      loop_id: 'loop_1',
      version: 1,
      triggers: [{ trigger_id: 'trg_1', event_type: 'order.paid', condition: 'event.n == 2' }],
    })
    .when('hook.set', {
      webhook_id: 'hook_1',
      events: ['order.paid'],
    })
  const publications = [1, 2, 3].map((n) => ({
    event_type: 'order.paid',
    source_kind: 'shop_order',
    source_id: 'shop',
    event: { n },
    meta: {},
    record: { id: `order_${n}` },
    depth: 0,
  }))
  const { events, effects, reply } = from.when('source.publish_all', { publications })
  t.match(events, [
    { type: 'source.published', event: { n: 1 }, record: { id: 'order_1' } },
    { type: 'source.published', event: { n: 2 }, fires: { loop_1: ['trg_1'] } },
    { type: 'source.published', event: { n: 3 } },
  ])
  t.equal(new Set(events.map(({ id }) => id)).size, 3, 'each has an id of its own')
  t.strictSame(
    effects.map((effect) => 'tell' in effect && effect.tell.name),
    ['delivery.open', 'trigger.fire', 'delivery.open', 'delivery.open'],
  )
  t.equal(reply, undefined)
})
