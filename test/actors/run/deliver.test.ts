/** Source events: who is given one, and how an index of what runs wait for is kept. */
import t from 'tap'
import { waitChange, type RunEvent } from '../../../protocol/api/runs.ts'
import type { Step } from '../../../protocol/spec.ts'
import { typesOf } from '../../given.ts'
import { record, started, step, wait } from './story.ts'

const waits = (config: Record<string, unknown> = {}) => wait('a', 'x', { event_type: 'row.inserted', ...config })
const event = (n: number, id = 'e1', source_id?: string) => ({ source_event_id: id, event_type: 'row.inserted', event: { n }, meta: { by: 'ada' }, ...(source_id !== undefined && { source_id }) })

t.test('an event goes on with the step that waits for its type, and only once', async (t) => {
  const scene = started([waits({ payload_mapping: { n: 'event.n', by: 'meta.by' } }), waits({ match: { n: 2 } })].map((one, i) => ({ ...one, id: `s${i}` })))
  t.strictSame(scene.ask('awaiting'), [{ wait_id: 'wait_1', event_type: 'row.inserted' }])
  const given = scene.when('event.deliver', event(2))
  t.strictSame(step(given, 's0')?.result, { n: 2, by: 'ada' })
  t.strictSame(given.when('event.deliver', event(2)).events, [], 'said again')
  t.strictSame(given.when('event.deliver', event(1, 'e2')).events, [], 'does not match')
  t.equal(record(given.when('event.deliver', event(2, 'e3'))).status, 'completed')
})

t.test('an event of another type or source changes nothing', async (t) => {
  const scene = started([waits({ source_id: 'tbl_1' })])
  t.strictSame(scene.when('event.deliver', { ...event(1), event_type: 'row.deleted' }).events, [])
  t.strictSame(scene.when('event.deliver', event(1)).events, [])
  t.equal(record(scene.when('event.deliver', event(1, 'e', 'tbl_1'))).status, 'completed')
})

t.test('one event goes on with every branch that waits for it', async (t) => {
  const scene = started([{ id: 'all', kind: 'for_each', config: { items: [1, 2, 3], steps: [waits({ match: { n: 1 } })] } } as Step])
  const after = scene.when('event.deliver', event(1))
  t.equal(record(after).status, 'completed')
  t.equal(typesOf(after).filter((type) => type === 'wait.resumed').length, 4)
})

t.test('the events of a run say which waits open and close', async (t) => {
  const index = new Map<string, string>()
  const follow = (events: readonly unknown[]) => {
    for (const one of events as RunEvent[]) {
      const change = waitChange(one)
      if (change && 'opens' in change) index.set(change.opens.wait_id, change.opens.event_type)
      else if (change) index.delete(change.closes)
    }
  }
  const scene = started([{ id: 'all', kind: 'for_each', config: { items: [1, 2], join: 'any', steps: [waits({ match: { n: '${{ item }}' } })] } } as Step, waits()])
  follow(scene.history)
  t.strictSame([...index.values()], ['row.inserted', 'row.inserted'])
  const after = scene.when('event.deliver', event(2))
  follow(after.events)
  t.equal(index.size, 1)
  follow(after.when('run.cancel').events)
  t.equal(index.size, 0)
})

t.test('of two branches that an event completes, the first wins', async (t) => {
  const scene = started([{ id: 'all', kind: 'for_each', config: { items: [1, 2], join: 'any', steps: [waits()] } } as Step])
  const after = scene.when('event.deliver', event(1))
  t.ok(typesOf(after).includes('branch.cancelled'))
  t.match(step(after, 'all')?.result, { completed: 1, failed: 0, winner: '0' })
})
