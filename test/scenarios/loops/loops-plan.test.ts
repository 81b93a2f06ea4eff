/**
 * The organization's limit on the concurrent runs of all loops, over real HTTP. Runs above the
 * limit wait in one FIFO queue for all projects, and report why they wait.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, until } from '../support/given.ts'

const s = await service({ BATON_PLAN_CONCURRENCY: '2' })
t.teardown(() => s.stop())
type Open = Record<string, unknown>
const steps = [{ id: 'gate', kind: 'wait_for_event', config: { event_type: 'signal.go' } }]
const reaches = (run: Open, status: string, at: Open = {}) =>
  until(
    () => s.ok('run.get', { id: run['id'], ...at }),
    (found) => found['status'] === status,
  )

t.test("loop runs above the organization's limit start in FIFO order", async (t) => {
  const other = { project: 'other' }
  await s.ok('project.create', { name: 'Other', handle: 'other' })
  const here = await s.ok('loop.create', { name: 'Here', steps })
  const there = await s.ok('loop.create', { ...other, name: 'There', steps })
  const start = (loop: Open, at: Open = {}) => s.ok('loop.start', { id: loop['id'], ...at })
  const [a, b] = [await start(here), await start(there, other)]
  t.match(a, { plan_concurrency_limit: 2 })
  await reaches(a, 'suspended')
  await reaches(b, 'suspended', other)
  const [c, d] = [await start(there, other), await start(here)]
  t.match(await s.ok('run.get', { id: c['id'], ...other }), {
    status: 'queued',
    queue_reason: 'plan_concurrency',
  })
  t.match(await s.ok('run.get', { id: d['id'] }), {
    status: 'queued',
    queue_reason: 'plan_concurrency',
  })
  await s.ok('run.signal', { id: a['id'], name: 'go' })
  t.match(await ended(s, a['id']), { status: 'completed' })
  t.match(await reaches(c, 'suspended', other), { queue_reason: undefined })
  t.match(await s.ok('run.get', { id: d['id'] }), { status: 'queued' })
  await s.ok('run.cancel', { id: b['id'], ...other })
  await reaches(d, 'suspended')
  const free = await s.ok('run.start', { spec: { steps } })
  t.match(await reaches(free, 'suspended'), { status: 'suspended' }, 'workflow runs do not count')
  const last = await start(here)
  await s.ok('loop.delete', { id: here['id'] })
  t.match(
    await ended(s, last['id']),
    { status: 'cancelled' },
    'a waiting run is cancelled with its loop',
  )
})
