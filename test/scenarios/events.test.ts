import t from 'tap'
import { service } from '../service.ts'
import { ended, fieldsOf, idsOf, listOf, timelineOf } from './given.ts'

const s = await service()
t.teardown(() => s.stop())
/** A workflow that waits for an event. */
const awaiting = (config: Record<string, unknown> = {}, step: Record<string, unknown> = {}): Record<string, unknown> =>
  ({ steps: [{ id: 'gate', kind: 'wait_for_event', config: { event_type: 'order.paid', ...config }, ...step }] })
/** A run that waits: its timeline says so. */
const waits = async (config: Record<string, unknown> = {}, step: Record<string, unknown> = {}): Promise<unknown> => {
  const { id } = await s.ok('run.start', { spec: awaiting(config, step) })
  await s.follow('run.events', { id }, ({ event }) => event === 'wait.opened')
  return id
}
const publish = (more: Record<string, unknown> = {}, options = {}) => s.ok('event.publish', { event_type: 'order.paid', ...more }, options)

t.test('an event that is published goes on with the runs that wait for it, and is listed', async (t) => {
  const runs = [await waits(), await waits({ payload_mapping: { order: 'event.order', by: 'meta.by' } })]
  const made = await publish({ event: { order: 7 }, meta: { by: 'ada', tags: ['a'] }, source_id: 'shop' })
  t.match(made, { source_event_id: /^sevt_/, status: 'accepted' })
  t.match((await ended(s, runs[0]))['result'], { gate: { event: { order: 7 }, meta: { by: 'ada', tags: ['a'] } } })
  t.strictSame((await ended(s, runs[1]))['result'], { gate: { order: 7, by: 'ada' } })
  const record = await s.ok('event.get', { id: made['source_event_id'] })
  t.match(record, { id: made['source_event_id'], event_type: 'order.paid', source_kind: 'custom', source_id: 'shop', event: { order: 7 }, meta: { by: 'ada', tags: ['a'] }, resumed_waits: 2, fired_triggers: 0 })
  t.strictSame(listOf(await s.ok('event.list', { event_type: 'order.paid' }))[0], record)
  await s.refused('event.get', { id: 'sevt_00000000000000000000000000' }, 404, 'not_found')
})
void fieldsOf
void idsOf
void timelineOf
