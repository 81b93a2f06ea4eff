/**
 * Firings for events of private sessions and private artifacts. A firing is held while an errand
 * checks the access of the loop's last editor. It starts a run only if no other principal has
 * edited the loop in the meantime.
 */
import t from 'tap'
import type { HeldFiring } from '../../../protocol/loops/events.ts'
import { Yard } from './yard.ts'

const made = (): Yard => {
  const yard = new Yard()
  yard.create({ triggers: [{ kind: 'event', key: 'e', config: { event_type: 'order.*' } }] })
  return yard
}
const firing = (yard: Yard, id = 'sevt_1', reader?: string) => ({
  trigger_id: yard.state.trigger_ids['e'],
  source: {
    id,
    event_type: 'order.paid',
    source_kind: 'session',
    source_id: 'ses_1',
    event: { content: 'hello' },
    meta: { role: 'user' },
    depth: 0,
    private_session: 'ses_1',
    occurred_at: '',
  },
  ...(reader !== undefined && { reader }),
})
const fire = (yard: Yard, id?: string, reader?: string) =>
  void yard.send('trigger.fire', firing(yard, id, reader))
const jobs = (yard: Yard): string[] => Object.keys(yard.state.firings ?? {})
const spec = (yard: Yard, job_id = jobs(yard)[0]) =>
  yard.actor.ask?.['job_spec']?.(yard.state as never, { job_id } as never, 0)

t.test('a firing is held without its payload until its errand has ended', async (t) => {
  const yard = made()
  fire(yard)
  t.equal(yard.runs.size, 0)
  const held: HeldFiring = {
    trigger_id: yard.state.trigger_ids['e'] ?? '',
    editor: 'user_1',
    source: {
      id: 'sevt_1',
      event_type: 'order.paid',
      source_kind: 'session',
      source_id: 'ses_1',
      depth: 0,
      private_session: 'ses_1',
      occurred_at: '',
    },
  }
  t.strictSame(spec(yard), { errand: 'firing', loop_id: yard.id, ...held })
  fire(yard)
  t.equal(jobs(yard).length, 1, 'a repeat changes nothing')
  const [job_id] = jobs(yard)
  yard.send('job.settled', { job_id })
  yard.send('job.settled', { job_id })
  t.strictSame(jobs(yard), [])
  t.strictSame(spec(yard, job_id), { errand: 'none' })
})

t.test('a firing starts one run once its editor is found to be a reader', async (t) => {
  const yard = made()
  fire(yard)
  fire(yard, 'sevt_1', 'user_1')
  fire(yard, 'sevt_1', 'user_1')
  t.strictSame(
    [...yard.runs.values()].map(({ opening }) => opening['event']),
    [{ content: 'hello' }],
  )
})

t.test('the access of a new editor is checked again', async (t) => {
  const yard = made()
  fire(yard)
  yard.send('loop.update', { description: 'changed' })
  yard.state = { ...yard.state, editor: 'user_2' }
  fire(yard, 'sevt_1', 'user_1')
  t.equal(yard.runs.size, 0)
  const [job_id] = jobs(yard)
  yard.send('job.settled', { job_id })
  fire(yard, 'sevt_1', 'user_1')
  t.equal(yard.runs.size, 0)
  t.match(spec(yard), { editor: 'user_2' })
})

t.test('without a recorded editor, no firing is held or starts a run', async (t) => {
  const yard = made()
  yard.now += 1000
  yard.send('loop.update', { description: 'changed' })
  t.equal(yard.state.editor, 'user_1')
  const { editor: _, ...older } = yard.state
  yard.state = older
  fire(yard)
  fire(yard, 'sevt_1', 'user_1')
  t.strictSame([jobs(yard).length, yard.runs.size], [0, 0])
})

t.test('at most 1,000 firings are held, and the next one logs a warning', async (t) => {
  const yard = made()
  for (let n = 0; n <= 1000; n++) fire(yard, `sevt_${n}`)
  t.equal(jobs(yard).length, 1000)
  t.match(yard.effects(), [{ warn: { about: yard.id, fields: { source_event_id: 'sevt_1000' } } }])
})

t.test('an event of a private artifact starts a run only for its owner', async (t) => {
  const yard = made()
  const ofArtifact = (private_owner: string, reader?: string) => {
    const { source, ...rest } = firing(yard, 'sevt_1', reader)
    const { private_session: _, ...open } = source
    return { ...rest, source: { ...open, private_owner } }
  }
  yard.send('trigger.fire', ofArtifact('user_2'))
  yard.send('trigger.fire', ofArtifact('user_2', 'user_2'))
  t.strictSame([jobs(yard).length, yard.runs.size], [0, 0])
  yard.send('trigger.fire', ofArtifact('user_1'))
  t.equal(yard.runs.size, 0)
  t.match(spec(yard), { editor: 'user_1', source: { private_owner: 'user_1', event: undefined } })
  yard.send('trigger.fire', ofArtifact('user_1', 'user_1'))
  t.equal(yard.runs.size, 1)
})
