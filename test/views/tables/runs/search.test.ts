/** Search, filters and orders of the list of runs, compared with a scan of all runs. */
import t from 'tap'
import {
  ask,
  at,
  each,
  event,
  moved,
  run,
  runIds,
  started,
  stepBorn,
  viewOf,
} from '../../support/journal.ts'

t.test('runs are found by text, by times, by failed step and by end', (t) => {
  const view = viewOf(
    started('run_1', 1, { external_id: 'Order-100%' }),
    started('run_2', 2, { name: 'Import of "May"' }),
    started('run_3', 3, { input: { text: 'timed out' } }),
    started('run_4', 4),
    run('run_4', [
      event('step.started', { step: 'load', row: stepBorn('run_4', 'load', 0) }),
      event('step.failed', { step: 'load', row: { status: 'failed' } }),
    ]),
    run('run_2', [
      event('step.started', { step: 'load', row: stepBorn('run_2', 'load', 0) }),
      event('step.completed', { step: 'load', row: { status: 'completed' } }),
    ]),
    moved('run_4', 'failed', {
      error_type: 'timeout',
      error_message: 'The call timed out',
      completed_at: at(10),
    }),
    moved('run_2', 'completed', { completed_at: at(30) }),
    moved('run_1', 'cancelled', { completed_at: at(20) }),
  )
  t.strictSame(runIds(view, { q: 'order-1' }), ['run_1'], 'the external id')
  t.strictSame(runIds(view, { q: '00%' }), ['run_1'], 'a percent sign means itself')
  t.strictSame(runIds(view, { q: '%%' }), [])
  t.strictSame(runIds(view, { q: '"may"' }), ['run_2'], 'the name')
  t.strictSame(runIds(view, { q: 'TIMED OUT' }), ['run_4'], 'the error, but not the input')
  t.strictSame(runIds(view, { q: 'run_', status: ['queued'] }), ['run_3'])
  t.strictSame(runIds(view, { failed_step: 'load' }), ['run_4'])
  t.strictSame(runIds(view, { created_after: at(2), created_before: at(4) }), ['run_3', 'run_2'])
  t.strictSame(runIds(view, { ended_after: at(20) }), ['run_2', 'run_1'])
  t.strictSame(runIds(view, { ended_before: at(20), status: ['failed', 'completed'] }), ['run_4'])
  t.strictSame(runIds(view, { sort: 'ended' }), ['run_2', 'run_1', 'run_4'])
  t.strictSame(runIds(view, { sort: 'ended', order: 'asc' }), ['run_4', 'run_1', 'run_2'])
  t.strictSame(runIds(view, { order: 'asc' }), ['run_1', 'run_2', 'run_3', 'run_4'])
  t.strictSame(runIds(view, { order: 'asc', status: ['queued', 'failed'] }), ['run_3', 'run_4'])
  const first = ask(view, 'run.list', { sort: 'ended', limit: 2 })
  t.strictSame(runIds(view, { sort: 'ended', limit: 2, after: first.position }), ['run_4'])
  t.match(ask(view, 'run.list', { created_after: '2026-02-31T00:00:00Z' }), {
    refused: 'bad_request',
  })
  for (const [filter, count] of [
    [{}, 4],
    [{ status: ['failed', 'queued'] }, 2],
    [{ q: 'run_' }, 4],
    [{ ended_after: at(20) }, 2],
    [{ failed_step: 'load' }, 1],
  ] as const)
    t.strictSame(ask(view, 'run.count', filter), { count, more: false }, JSON.stringify(filter))
  t.strictSame(
    runIds(viewOf(...[1, 2].map((n) => started(`run_0000000000000000000000000${n}`, n))), {
      q: 'run_00000000000000000000000001',
    }),
    ['run_00000000000000000000000001'],
    'a whole id is looked up',
  )
  // A run that failed and is queued again has not ended.
  const journal = viewOf(
    started('run_1', 1),
    moved('run_1', 'failed', { completed_at: at(2) }),
    moved('run_1', 'queued', { completed_at: null }),
  )
  t.strictSame(runIds(journal, { sort: 'ended' }), [])
  t.end()
})

t.test('a search returns the same runs as a scan of all, in pages and in lanes', (t) => {
  const statuses = ['queued', 'failed', 'completed', 'cancelled'] as const
  const view = viewOf(
    ...Array.from({ length: 1400 }, (_, i) =>
      started(`run_${String(i).padStart(4, '0')}`, i % 700, {
        status: statuses[i % 4] as 'queued',
        ...(i % 4 > 0 && { completed_at: at((i * 7919) % 1400) }),
        name: i % 3 === 0 ? 'Wanted' : 'Other',
      }),
    ),
  )
  const whole = (input: object) => {
    const found: string[] = []
    let after: unknown
    do {
      const page = ask(view, 'run.list', { ...input, limit: 50, ...(after ? { after } : {}) })
      found.push(...(each(page, 'id') as string[]))
      after = page.position
    } while (after)
    return found
  }
  const all = whole({})
  t.equal(all.length, 1400)
  const wanted = (id: string) => Number(id.slice(4)) % 3 === 0
  const ofStatus = (id: string) => Number(id.slice(4)) % 4 < 2
  t.strictSame(whole({ q: 'wanted' }), all.filter(wanted))
  t.strictSame(
    whole({ q: 'wanted', status: ['queued', 'failed'] }),
    all.filter((id) => wanted(id) && ofStatus(id)),
  )
  t.strictSame(whole({ q: 'wanted', order: 'asc' }), all.filter(wanted).reverse())
  t.strictSame(ask(view, 'run.count', { q: 'wanted' }), {
    count: all.filter(wanted).length,
    more: false,
  })
  t.equal(whole({ sort: 'ended' }).length, 1050)
  t.end()
})
