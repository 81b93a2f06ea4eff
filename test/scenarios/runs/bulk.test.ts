/**
 * Actions on all runs that match a filter, counts and searches of runs, and retries with another
 * input.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { service } from '../../support/service.ts'
import { commandRunner } from '../support/command-line.ts'
import { acting, ended, failing, fieldsOf, ids, idsOf, listOf, sleeping } from '../support/given.ts'

const s = await service()
const home = mkdtempSync(join(tmpdir(), 'baton-bulk-'))
t.teardown(() => s.stop())
t.teardown(() => rmSync(home, { recursive: true }))
const baton = commandRunner(s, home)
const start = async (spec: unknown, more: Record<string, unknown> = {}) =>
  String((await s.ok('run.start', { spec, ...more }))['id'])
const several = (count: number, spec: unknown, workflow_type: string) =>
  Promise.all(Array.from({ length: count }, () => start(spec, { workflow_type })))
const keyed = (key: string) => ({ headers: { 'idempotency-key': key } })
const count = async (filter: object) => (await s.ok('run.count', { ...filter }))['count']

t.test('runs are counted and searched with the filters of the list', async (t) => {
  const [one = '', two = ''] = await several(2, failing(), 'odd')
  const asleep = await start(sleeping(), { workflow_type: 'odd', external_id: 'order-17' })
  const queued = await start(acting('nobody-does-this'), { workflow_type: 'odd' })
  t.strictSame(await s.ok('run.count', { workflow_type: 'odd' }), { count: 4, more: false })
  const found = async (filter: object) =>
    idsOf(await s.ok('run.list', { workflow_type: 'odd', ...filter })).sort()
  t.strictSame(await found({ failed_step: 'odd' }), [one, two].sort())
  t.strictSame(await found({ waiting_on: ['timer'] }), [asleep])
  t.strictSame(await found({ waiting_on: ['worker', 'signal'] }), [queued])
  t.strictSame(await found({ q: 'ORDER-1' }), [asleep])
  t.strictSame(await found({ q: one }), [one])
  t.strictSame(await found({ sort: 'ended' }), [one, two].sort())
  t.equal(await count({ workflow_type: 'odd', waiting_on: ['timer', 'worker'] }), 2)
  const refusal = await s.refused('run.list', { ended_after: 'noon' }, 400, 'bad_request')
  t.strictSame(fieldsOf(refusal), ['ended_after'])
  await s.ok('run.bulk', { action: 'cancel', filter: { workflow_type: 'odd' } })
})

t.test('an empty queue or an empty list of statuses matches no run', async (t) => {
  const loop = await s.ok('loop.create', { name: 'Sleeper', steps: sleeping().steps })
  const run = await s.ok('loop.start', { id: loop['id'] })
  for (const more of [{}, { q: 'Sleeper' }, { status: ['suspended'] }]) {
    t.strictSame(idsOf(await s.ok('run.list', { queue: '', ...more })), [], JSON.stringify(more))
    t.equal(await count({ queue: '', ...more }), 0, JSON.stringify(more))
  }
  const acted = await s.ok('run.bulk', { action: 'cancel', filter: { queue: '' } })
  t.strictSame(acted['results'], [])
  for (const preview of [true, false]) {
    const input = { action: 'cancel', filter: { status: [] }, preview }
    const refusal = await s.refused('run.bulk', input, 400, 'bad_request')
    t.strictSame(fieldsOf(refusal), ['filter.status'], 'an empty list of statuses')
  }
  t.match(await s.ok('run.get', { id: run['id'] }), { status: 'suspended' })
  await s.ok('run.cancel', { id: run['id'] })
})

t.test('a preview changes nothing; an action takes the runs that existed before it', async (t) => {
  const before = await several(3, sleeping(), 'nap')
  const filter = { workflow_type: 'nap' }
  const first = await s.ok('run.bulk', { action: 'cancel', filter, preview: true })
  const preview = first['preview'] as unknown as { count: number; more: boolean; runs: object[] }
  t.match(preview, { count: 3, more: false })
  t.strictSame(ids(preview.runs).sort(), [...before].sort())
  t.strictSame(first['results'], [])
  t.equal(await count({ ...filter, status: ['suspended'] }), 3)

  const later = await start(sleeping(), { workflow_type: 'nap' })
  const after = first['next']
  const done = await s.ok('run.bulk', { action: 'cancel', filter, after, reason: 'tidy' })
  const outcomes = listOf(done, 'results')
  for (const id of before)
    t.match(
      outcomes.find(({ run_id }) => run_id === id),
      { ok: true, status: 'cancelled' },
    )
  t.equal(done['next'], null)
  t.equal((await s.ok('run.get', { id: later }))['status'], 'suspended', 'a later run is not taken')
  t.strictSame(
    listOf(await s.ok('run.bulk', { action: 'cancel', filter, after }), 'results'),
    [],
    'the cancelled runs match no more',
  )
  const changed = { action: 'resume', filter, after }
  t.strictSame(fieldsOf(await s.refused('run.bulk', changed, 400, 'bad_request')), ['after'])
  const odd = { action: 'retry', filter: { status: ['completed'] } }
  t.strictSame(fieldsOf(await s.refused('run.bulk', odd, 400, 'bad_request')), ['filter.status'])
  await s.ok('run.bulk', { action: 'cancel', filter })
  t.equal((await s.ok('run.get', { id: later }))['status'], 'cancelled')
})

t.test('a repeated request retries each run once', async (t) => {
  const made = await several(2, failing(), 'again')
  const filter = { workflow_type: 'again' }
  const { next: after } = await s.ok('run.bulk', { action: 'retry', filter, preview: true })
  const retry = async () =>
    listOf(await s.ok('run.bulk', { action: 'retry', filter, after }), 'results')
  t.same(ids((await retry()).map(({ run_id }) => ({ id: run_id }))).sort(), [...made].sort())
  await retry()
  for (const id of made) {
    const [step] = listOf(await s.ok('run.steps', { id }))
    t.equal(step?.['attempt'], 2, 'the step was taken again once')
  }
  const other = await s.ok('run.bulk', { action: 'retry', filter })
  t.equal(listOf(other, 'results').length, 2, 'another action retries again')
})

t.test('a repeat under an idempotency key acts on the runs of the first request', async (t) => {
  const before = await several(3, sleeping(), 'keyed')
  const call = { action: 'cancel', filter: { workflow_type: 'keyed' } }
  const first = await s.ok('run.bulk', call, keyed('bulk-1'))
  t.same(
    listOf(first, 'results')
      .map(({ run_id }) => run_id)
      .sort(),
    [...before].sort(),
  )
  const later = await start(sleeping(), { workflow_type: 'keyed' })
  t.strictSame(await s.ok('run.bulk', call, keyed('bulk-1')), first)
  t.equal((await s.ok('run.get', { id: later }))['status'], 'suspended', 'a later run is not taken')
  const other = { ...call, reason: 'tidy' }
  await s.refused('run.bulk', other, 409, 'idempotency_key_conflict', keyed('bulk-1'))
  const second = listOf(await s.ok('run.bulk', call, keyed('bulk-2')), 'results')
  t.match(second, [{ run_id: later, ok: true, status: 'cancelled' }])
})

t.test('a repeated page of an action has the same outcomes and the same next page', async (t) => {
  const before = await several(201, sleeping(), 'paged')
  const call = { action: 'cancel', filter: { workflow_type: 'paged' } }
  const first = await s.ok('run.bulk', call, keyed('page-1'))
  t.equal(listOf(first, 'results').length, 200)
  const repeat = await s.ok('run.bulk', call, keyed('page-1'))
  t.strictSame(repeat['results'], first['results'])
  t.equal(await count({ ...call.filter, status: ['suspended'] }), 1, 'the next page is not taken')
  const page = { ...call, after: repeat['next'] }
  const last = await s.ok('run.bulk', page, keyed('page-2'))
  const taken = [...listOf(first, 'results'), ...listOf(last, 'results')]
  t.same(taken.map(({ run_id }) => run_id).sort(), [...before].sort())
  t.strictSame(await s.ok('run.bulk', page, keyed('page-2')), last)
})

t.test('the command line asks first, and acts on all pages', async (t) => {
  const many = await several(203, sleeping(), 'many')
  const words = ['run', 'bulk', 'cancel', '--workflow-type', 'many']
  const dry = await baton([...words, '--preview'])
  t.match(dry.notes, /203 runs to cancel/)
  const unsure = await baton(words)
  t.match(unsure.notes, /pass --yes/)
  t.match(await baton(words, { confirm: false }), { code: 1, notes: /Nothing was changed/ })
  t.equal(await count({ workflow_type: 'many', status: ['suspended'] }), many.length)
  t.match(await baton(words, { confirm: true }), { code: 0, out: /203 done, 0 refused/ })
  t.equal(await count({ workflow_type: 'many', status: ['cancelled'] }), many.length)
  t.match(await baton([...words, '--yes']), { code: 0, notes: /No run matches/ })
})

t.test('a retry with another input continues with it', async (t) => {
  const spec = {
    input: { n: { type: 'integer', required: true } },
    steps: [
      { id: 'early', kind: 'sleep', config: { duration: '0' } },
      {
        id: 'late',
        kind: 'check',
        config: { checks: [{ name: 'c', kind: 'expr', expr: 'input.n == 2' }] },
      },
    ],
    output: { n: '${{ input.n }}' },
  }
  const id = await start(spec, { input: { n: 1 } })
  t.match(await ended(s, id), { status: 'failed', input: { n: 1 } })
  const refusal = await s.refused('run.retry', { id, input: { n: 'two' } }, 400, 'bad_request')
  t.strictSame(fieldsOf(refusal), ['input.n'])
  t.match(await s.ok('run.retry', { id, input: { n: 2 } }), { input: { n: 2 } })
  t.match(await ended(s, id), { status: 'completed', input: { n: 2 }, result: { n: 2 } })
  const timeline = listOf(await s.ok('run.events', { id, limit: 200 }))
  t.match(
    timeline.find(({ event_type }) => event_type === 'run.resumed'),
    { payload: { input_changed: true, step: 'late' } },
  )
})
