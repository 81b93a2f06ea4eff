/**
 * The number of listeners with which an event is compared. Invariant: the number depends only on
 * the listeners that may match.
 */
import t from 'tap'
import { Listeners, newConditionBudget } from '../../../actors/events/listeners.ts'
import { initialSources } from '../../../actors/events/state.ts'
import type { Publication, Watch } from '../../../protocol/events/sources.ts'

const said = (more: Partial<Publication> = {}): Publication => ({
  event_type: 'order.paid',
  source_kind: 'custom',
  source_id: 'shop',
  event: { n: 1 },
  meta: {},
  depth: 0,
  ...more,
})
const loop = (listeners: Listeners, triggers: readonly Omit<Watch, 'trigger_id'>[]) =>
  listeners.addLoop(
    'loop_1',
    triggers.map((one, i) => ({ trigger_id: `trg_${i}`, ...one })),
  )
const match = (listeners: Listeners, publication: Publication) =>
  listeners.match(publication, newConditionBudget())
const thousand = <T>(make: (i: number) => T): T[] => Array.from({ length: 1000 }, (_, i) => make(i))

t.test('an event is compared only with triggers of its type', async (t) => {
  const listeners = new Listeners(initialSources())
  loop(
    listeners,
    thousand((i) => ({ event_type: `load.type${i % 100}`, condition: `event.n > ${i}` })),
  )
  t.equal(match(listeners, said({ event_type: 'load.type7' })).compared, 10)
  t.equal(match(listeners, said({ event_type: 'load.type700' })).compared, 0)
})
t.test('triggers of the same type are selected by source', async (t) => {
  const listeners = new Listeners(initialSources())
  loop(
    listeners,
    thousand((i) => ({ event_type: 'http_trigger.received', source_id: `trig_${i}` })),
  )
  const matched = match(
    listeners,
    said({ event_type: 'http_trigger.received', source_kind: 'http_trigger', source_id: 'trig_5' }),
  )
  t.match([matched.compared, matched.fires], [1, { loop_1: ['trg_5'] }])
  const byScope = new Listeners(initialSources())
  loop(byScope, [
    { event_type: 'table.*', source_id: 'tbl_1' },
    { event_type: 'table.*', source_id: 'orders' },
    { event_type: 'table.*', source_id: 'other' },
  ])
  t.match(
    match(
      byScope,
      said({
        event_type: 'table.row',
        source_kind: 'table_row',
        source_id: 'row_1',
        meta: { table_id: 'tbl_1', table_name: 'orders' },
      }),
    ),
    { compared: 2, fires: { loop_1: ['trg_0', 'trg_1'] } },
  )
})
t.test('triggers and waits are also selected by the value that they compare first', async (t) => {
  const listeners = new Listeners(initialSources())
  loop(
    listeners,
    thousand((i) => ({ event_type: 'order.*', condition: `event.n == ${i} && event.m == 2` })),
  )
  for (const i of thousand((one) => one))
    listeners.addWait(`run_${i}`, {
      wait_id: `wait_${i}`,
      event_type: 'order.paid',
      match: { n: i },
    })
  t.match(match(listeners, said()), { compared: 2, fires: {}, wakes: { run_1: ['wait_1'] } })
  for (const i of thousand((one) => one)) listeners.removeWait(`wait_${i}`)
  t.equal(match(listeners, said()).compared, 1)
})
