import { View } from '../../views/view.ts'
import { rmSync } from 'node:fs'
import { Journal, started, run, event, stepBorn, queue, queued, claimed, ended, jobBorn, born, spec, at } from './journal.ts'
import { makeId } from '../../protocol/ids.ts'
import { randomBytes } from 'node:crypto'
const N = 10000
const journal = new Journal()
const project = 'prj_' + 'A'.repeat(26)
const ids = Array.from({ length: N }, (_, i) => makeId('run', 1.9e12 + i * 5, randomBytes(9)))
const PER = 20
for (let i = 0; i < N; i += PER) {
  const chunk = ids.slice(i, i + PER)
  journal.commit(0, ...chunk.flatMap((id, k) => {
    const job = id.replace('run_', 'job_')
    const payload = { step: 'mail', wait_id: 'wait_123', wait_kind: 'worker', job_id: job, action: 'send_mail', queue: 'default', subject: job }
    return [run(id, [event('run.created', { run: born(id, i + k, { definition_id: 'wfd_1', initiated_by: 'ci', input: { to: 'someone', n: k } }), spec }), event('run.started', { payload: { run_id: id, definition_id: 'wfd_1' }, run: { status: 'running', started_at: at(i) } }),
      event('step.started', { step: 'mail', payload: { step: 'mail', kind: 'action' }, row: stepBorn(id, 'mail', 0, { parameters: { to: 'x' } }) }), event('action.called', { step: 'mail', payload: { action: 'send_mail', parameters: { to: 'someone' }, job_id: job } }),
      event('step.suspended', { step: 'mail', payload, row: { status: 'suspended', job_id: job, inputs: { to: 'someone' } } }), event('wait.opened', { step: 'mail', payload }), event('run.suspended', { step: 'mail', payload, run: { status: 'suspended' } })], { project }),
      queue([queued(jobBorn(job, id, i + k))], { project })]
  }))
}
for (let i = 0; i < N; i += PER) journal.commit(0, queue(ids.slice(i, i + PER).map((id) => claimed(id.replace('run_', 'job_'), 's1', 'w1', 60)), { project }))
for (let i = 0; i < N; i += PER) journal.commit(0, ...ids.slice(i, i + PER).flatMap((id) => {
  const job = id.replace('run_', 'job_')
  return [queue([ended(job, 'completed', { result: { ok: true } })], { project }), run(id, [event('action.completed', { step: 'mail', payload: { action: 'send_mail', job_id: job, result: { ok: true } } }), event('wait.resumed', { step: 'mail', payload: { step: 'mail' }, row: { waiting_on: null } }), event('run.resumed', { run: { status: 'running' } }), event('step.resumed', { step: 'mail', row: { status: 'running' } }), event('step.completed', { step: 'mail', payload: { output: { ok: true } }, row: { status: 'completed', result: { ok: true } } }), event('run.completed', { payload: { output: {}, status: 'completed' }, run: { status: 'completed', result: { mail: { ok: true } } } })], { project })]
}))
const bytes = journal.messages.map((m) => ({ ...m, data: new TextEncoder().encode(JSON.stringify(m.data)) }))
rmSync('/tmp/vb', { recursive: true }); (await import('node:fs')).mkdirSync('/tmp/vb')
const view = View.open('/tmp/vb/v.sqlite')
const t0 = performance.now(); const c0 = process.cpuUsage()
let entries = 0
const B = Number(process.argv[2] ?? 25)
for (let i = 0; i < bytes.length; i += B) entries += view.apply(bytes.slice(i, i + B))
const c = process.cpuUsage(c0); const s = (c.user + c.system) / 1e6; console.log('wall', (performance.now() - t0) / 1000, 'user', c.user / 1e6, 'sys', c.system / 1e6)
const events = journal.messages.flatMap((m) => m.data.entries).reduce((n, e) => n + e.events.length, 0)
console.log({ entries, events, s, perS: entries / s, eventsPerS: events / s, runEntriesPerS: 2 * N / s, runsPerS: N / s })
const q0 = performance.now(); for (let i = 0; i < 200; i++) view.ask('run.list', project, { queue: 'default', status: ['completed'], limit: 50 }); console.log('list ms', (performance.now() - q0) / 200)
const size = (await import('node:fs')).statSync('/tmp/vb/v.sqlite').size; console.log('MB', size / 1e6, 'B/run', size / N)
view.close()
