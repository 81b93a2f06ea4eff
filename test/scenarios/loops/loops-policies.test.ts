/**
 * Runs of loops over HTTP: how many execute concurrently, what ends them, and how they continue.
 * Also covers invalid loops, and the deletion of loops.
 */
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, fieldsOf, ids, instant, listOf, timelineOf, until } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
type Open = Record<string, unknown>
const gate = [{ id: 'gate', kind: 'wait_for_event', config: { event_type: 'signal.go' } }]
const nap = [{ id: 'nap', kind: 'sleep', config: { duration: '0' } }]
const odd = [{ id: 'odd', kind: 'sleep', config: { duration: '0' }, if: 'meta.run_id' }]
const make = (more: Open): Promise<Open> =>
  s.ok('loop.create', { name: 'Loop', steps: gate, ...more })
const start = (loop: Open, more: Open = {}): Promise<Open> =>
  s.ok('loop.start', { id: loop['id'], ...more })
const get = (run: Open): Promise<Open> => s.ok('run.get', { id: run['id'] })
const reaches = (run: Open, ...statuses: string[]) =>
  until(
    () => get(run),
    ({ status }) => statuses.includes(String(status)),
  )
const go = (run: Open) => s.ok('run.signal', { id: run['id'], name: 'go' })

t.test('allow: runs execute concurrently', async (t) => {
  const loop = await make({})
  const runs = [await start(loop), await start(loop)]
  for (const run of runs) await reaches(run, 'suspended')
  for (const run of runs) await go(run)
  for (const run of runs) t.equal((await ended(s, run['id']))['status'], 'completed')
})

t.test('queue: runs execute one at a time in FIFO order', async (t) => {
  const loop = await make({ concurrency: 'queue' })
  const [a, b, c, d] = [await start(loop), await start(loop), await start(loop), await start(loop)]
  for (const run of [b, c, d])
    t.match(run, { status: 'queued', queue_reason: 'loop_policy', started_at: undefined })
  await s.ok('run.signal', { id: b['id'], name: 'go', payload: { early: true } })
  t.match(await s.ok('run.cancel_with_run', { id: c['id'] }), {
    status: 'cancelled',
    stop_reason: 'cancelled',
    queue_reason: undefined,
  })
  await go(a)
  t.match(await ended(s, b['id']), {
    status: 'completed',
    result: { gate: { event: { payload: { early: true } } } },
  })
  await reaches(d, 'suspended')
  t.match(await get(d), { queue_reason: undefined, started_at: String })
  await s.ok('run.cancel', { id: d['id'] })
  t.match(await get(c), { status: 'cancelled' })
})

t.test('skip: a start is rejected while a run is active', async (t) => {
  const loop = await make({ concurrency: 'skip' })
  const first = await start(loop)
  await s.refused('loop.start', { id: loop['id'] }, 409, 'conflict')
  await go(first)
  await ended(s, first['id'])
  await go(await start(loop))
  t.equal(listOf(await s.ok('run.list', { loop_id: loop['id'] })).length, 2)
})

t.test('replace: the newest run starts once the previous one has ended', async (t) => {
  const loop = await make({ concurrency: 'replace' })
  const [a, b, c] = [await start(loop), await start(loop), await start(loop)]
  t.match(await ended(s, a['id']), { status: 'cancelled', stop_reason: 'replaced' })
  t.match(await ended(s, b['id']), { status: 'cancelled', stop_reason: 'replaced' })
  await reaches(c, 'suspended')
  const worker = await s.worker({ worker_instance_id: 'replaced' })
  const working = await make({
    concurrency: 'replace',
    steps: [{ id: 'act', kind: 'action', config: { action_name: 'act' } }],
  })
  const held = await start(working)
  const job = await worker.job()
  const heir = await start(working)
  t.match(
    heir,
    { status: 'queued', queue_reason: 'loop_policy' },
    'two runs of the loop never execute concurrently',
  )
  await worker.report(job, { status: 'cancelled' })
  t.match(await ended(s, held['id']), { status: 'cancelled', stop_reason: 'replaced' })
  await worker.report(await worker.job(), { result: { n: 1 } })
  t.match(await ended(s, heir['id']), { status: 'completed', result: { act: { n: 1 } } })
  worker.close()
})

t.test('a trigger can have its own concurrency policy', async (t) => {
  const loop = await make({
    triggers: [
      { kind: 'event', key: 'wide', config: { event_type: 'lot.two' }, max_concurrent_runs: 2 },
      {
        kind: 'event',
        key: 'last',
        config: { event_type: 'lot.last' },
        concurrency_policy: 'replace',
      },
      {
        kind: 'event',
        key: 'once',
        config: { event_type: 'lot.once' },
        concurrency_policy: 'skip',
      },
    ],
  })
  const fire = async (event_type: string): Promise<Open> => {
    const { source_event_id } = await s.ok('event.publish', { event_type })
    return { source_event_id, runs: () => s.ok('run.list', { source_event_id }).then(listOf) }
  }
  const ran = async (event_type: string): Promise<Open> =>
    (
      await until(
        (
          await fire(event_type)
        )['runs'] as () => Promise<Open[]>,
        (runs) => runs.length === 1,
      )
    )[0] as Open
  const two = [await ran('lot.two'), await ran('lot.two'), await ran('lot.two')]
  t.match(
    two.map(({ queue_reason }) => queue_reason),
    [undefined, undefined, 'trigger_concurrency'],
  )
  await go(two[0] as Open)
  await reaches(two[2] as Open, 'suspended')
  const replaced = await ran('lot.last')
  const last = await ran('lot.last')
  t.match(await ended(s, replaced['id']), { stop_reason: 'replaced' })
  await reaches(last, 'suspended')
  await ran('lot.once')
  const left = (await fire('lot.once'))['runs'] as () => Promise<Open[]>
  await until(
    () =>
      s
        .ok('event.publish', { event_type: 'lot.last' })
        .then(() => s.ok('run.list', { loop_id: loop['id'], limit: 100 })),
    (list) => listOf(list).length > 6,
  )
  t.strictSame(await left(), [])
})

t.test('an idempotency key starts one run, and conflicts after the run has ended', async (t) => {
  const loop = await make({})
  const all = await Promise.all(
    Array.from({ length: 5 }, () => start(loop, { idempotency_key: ' k1 ' })),
  )
  t.equal(new Set(all.map(({ id }) => id)).size, 1)
  t.equal((await start(loop, { external_id: 'k1' }))['id'], all[0]?.['id'])
  await s.refused(
    'loop.start',
    { id: loop['id'], idempotency_key: 'a', external_id: 'b' },
    400,
    'bad_request',
  )
  await go(all[0] as Open)
  await ended(s, all[0]?.['id'])
  t.match(
    await s.refused(
      'loop.start',
      { id: loop['id'], idempotency_key: 'k1' },
      409,
      'idempotency_key_conflict',
    ),
    { details: { run_id: all[0]?.['id'], status: 'completed' } },
  )
  const head = { headers: { 'Idempotency-Key': 'h1' } }
  t.equal(
    (await s.ok('loop.start', { id: loop['id'] }, head))['id'],
    (await s.ok('loop.start', { id: loop['id'] }, head))['id'],
    'the header alone makes a start repeatable',
  )
})

t.test('an idempotency key is shared by the loops of a project', async (t) => {
  const [one, other, third] = [await make({}), await make({}), await make({})]
  const run = await start(one, { idempotency_key: 'shared' })
  const again = await s.call('loop.start', { id: other['id'], idempotency_key: 'shared' })
  t.match(again, { status: 202, body: { id: run['id'], loop_id: one['id'] } })
  t.equal((await start(third, { external_id: 'shared' }))['id'], run['id'])
  t.strictSame(listOf(await s.ok('run.list', { loop_id: other['id'] })), [])
  await go(run)
  await ended(s, run['id'])
  t.match(
    await s.refused(
      'loop.start',
      { id: other['id'], idempotency_key: 'shared' },
      409,
      'idempotency_key_conflict',
    ),
    { details: { run_id: run['id'], status: 'completed' } },
  )
  t.not((await start(other, { idempotency_key: 'else' }))['id'], run['id'])
  const workflow = await s.ok('run.start', { spec: { steps: gate }, idempotency_key: 'a workflow' })
  t.match(
    await s.refused(
      'loop.start',
      { id: other['id'], idempotency_key: 'a workflow' },
      409,
      'idempotency_key_conflict',
    ),
    { details: { run_id: workflow['id'] } },
  )
})

t.test('only active loops start runs, and changed steps make a new version', async (t) => {
  const loop = await s.ok('loop.create', { name: 'Sketch' })
  t.equal(loop['status'], 'draft')
  await s.refused('loop.start', { id: loop['id'] }, 409, 'loop_not_runnable')
  await s.refused('loop.update', { id: loop['id'], status: 'active' }, 400, 'bad_request')
  t.equal(
    (await s.ok('loop.update', { id: loop['id'], steps: nap, description: 'short' }))['status'],
    'active',
  )
  t.match(await start(loop), { loop_version: 2 })
  await s.ok('loop.update', { id: loop['id'], tags: { team: 'a' }, name: 'Sketch 2' })
  t.match(await start(loop), { loop_version: 2, loop_name: 'Sketch 2' })
  t.notOk('tags' in (await s.ok('loop.update', { id: loop['id'], tags: {} })))
  await s.ok('loop.update', { id: loop['id'], steps: gate, concurrency: 'queue' })
  const [under, waits] = [await start(loop), await start(loop)]
  t.match(under, { loop_version: 3 })
  await s.ok('loop.update', { id: loop['id'], status: 'paused' })
  await s.refused('loop.start', { id: loop['id'] }, 409, 'loop_paused')
  t.match(ids(listOf(await s.ok('loop.list', { status: 'paused' }))), [loop['id']])
  await s.refused(
    'loop.update',
    { id: loop['id'], status: 'deleted', name: 'Gone' },
    400,
    'bad_request',
  )
  t.equal((await s.ok('loop.update', { id: loop['id'], status: 'deleted' }))['status'], 'deleted')
  await s.refused('loop.get', { id: loop['id'] }, 404, 'not_found')
  await s.refused('loop.start', { id: loop['id'] }, 404, 'not_found')
  t.match(await ended(s, waits['id']), { status: 'cancelled', stop_reason: 'cancelled' })
  await go(under)
  t.match(await ended(s, under['id']), { status: 'completed', loop_id: loop['id'] })
  const other = await s.ok('loop.create', { name: 'Other', steps: nap })
  await s.ok('loop.delete', { id: 'Other' })
  await s.refused('loop.delete', { id: other['id'] }, 404, 'not_found')
})

t.test(
  'repeated failures pause a loop, and a failed run continues only in the version it began with',
  async (t) => {
    const loop = await make({ steps: odd, limits: { pause_after_consecutive_failures: 2 } })
    const runs = [await start(loop), await start(loop)]
    t.match(runs, [{ status: 'failed', stop_reason: 'step_failed' }, { status: 'failed' }])
    const paused = await s.ok('loop.get', { id: loop['id'] })
    t.equal(paused['status'], 'paused')
    t.ok(String(paused['updated_at']) > String(loop['updated_at']), 'the time of the pause')
    t.strictSame(
      (await timelineOf(s, runs[1]?.['id'])).slice(-2),
      ['loop.auto_paused', 'run.failed'],
      'the end is the last event',
    )
    t.match(
      (
        await s.follow(
          'run.events_stream',
          { id: runs[1]?.['id'] },
          ({ event }) => event === 'run.failed',
        )
      ).at(-2),
      { event: 'loop.auto_paused' },
      'the stream contains the pause',
    )
    t.match(listOf(await s.ok('event.list', { event_type: 'loop.auto_paused' })), [
      { event: { loop_id: loop['id'], consecutive_failures: 2, threshold: 2 } },
    ])
    await s.ok('loop.update', { id: loop['id'], status: 'active' })
    t.match(await s.ok('run.recover', { id: runs[0]?.['id'] }), { status: 'failed', attempt: 2 })
    await s.ok('loop.update', { id: loop['id'], steps: nap })
    for (const row of ['run.recover', 'run.retry'] as const)
      await s.refused(row, { id: runs[0]?.['id'] }, 409, 'run_version_superseded')
    t.match(await s.ok('run.retry_many', { run_ids: [runs[1]?.['id']] }), {
      results: [{ ok: false, error: { code: 'run_version_superseded' } }],
    })
  },
)

t.test('a limit stops a run, which continues only with a raised limit', async (t) => {
  const slow = await make({ limits: { wall_clock_timeout: '300ms' } })
  const run = await start(slow)
  t.match(run, { wall_clock_deadline_at: String })
  t.match(await ended(s, run['id']), { status: 'failed', stop_reason: 'wall_clock_exceeded' })
  await s.refused('run.recover', { id: run['id'] }, 400, 'limit_not_raised')
  t.match(
    await s.ok('run.recover', { id: run['id'], wall_clock_extend_seconds: 60, reason: 'again' }),
    { status: 'suspended', attempt: 2, stop_reason: undefined },
  )
  await go(run)
  t.match(await ended(s, run['id']), { status: 'completed', stop_reason: 'completed', attempt: 2 })
  const many = await make({
    steps: [...nap, { ...nap[0], id: 'second' }],
    limits: { max_steps: 1 },
  })
  t.match(await ended(s, (await start(many))['id']), {
    status: 'failed',
    stop_reason: 'step_limit_reached',
  })
  t.match(await start(await make({ limits: { budget_usd: 0.5, max_agent_turns: 3 } })), {
    credit_budget: 50,
    credit_spent: 0,
    max_agent_turns: 3,
    agent_turns_used: 0,
  })
  t.match(await start(await make({ limits: { budget_usd: 0.5 } }), { credit_budget: 7 }), {
    credit_budget: 7,
  })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'loop.start',
        { id: slow['id'], credit_budget: 1, budget_usd: 1 },
        400,
        'bad_request',
      ),
    ),
    ['credit_budget'],
  )
  const naps = await make({ steps: [{ id: 'nap', kind: 'sleep', config: { duration: '1h' } }] })
  t.match(await start(naps), { status: 'suspended', wake_at: String })
})

t.test("a step starts a run of a loop under that loop's own rules", async (t) => {
  const child = await s.ok('loop.create', {
    name: 'Child',
    steps: nap,
    concurrency: 'skip',
    event: { n: { required: true } },
    output: { n: '${{ event.n }}' },
  })
  const parent = await s.ok('loop.create', {
    name: 'Parent',
    steps: [
      {
        id: 'call',
        kind: 'loop',
        config: { loop_id: child['id'], event: { n: '${{ event.n }}' } },
      },
    ],
  })
  const run = await ended(s, (await start(parent, { event: { n: 5 } }))['id'])
  const made = (run['result'] as unknown as { call: { run_id: string } }).call.run_id
  t.match(await ended(s, made), {
    status: 'completed',
    result: { n: 5 },
    parent_run_id: run['id'],
    parent_loop_id: parent['id'],
    parent_step_key: 'call',
    loop_id: child['id'],
  })
  await s.ok('loop.update', { id: child['id'], status: 'paused' })
  t.match(await ended(s, (await start(parent, { event: { n: 5 } }))['id']), {
    status: 'failed',
    error_type: 'loop_paused',
  })
  const flow = await s.ok('run.start', {
    spec: { steps: [{ id: 'call', kind: 'loop', config: { loop_id: parent['id'] } }] },
  })
  t.match(await ended(s, flow['id']), { status: 'completed' })
  await s.ok('workflow.create', { name: 'Inner', handle: 'inner', spec: instant({ in: 1 }) })
  const uses = await s.ok('loop.create', {
    name: 'Uses',
    steps: [{ id: 'call', kind: 'loop', config: { workflow_id: 'inner', wait: true } }],
  })
  t.match(await ended(s, (await start(uses))['id']), {
    status: 'completed',
    result: { call: { output: { in: 1 } } },
  })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'loop.create',
        { name: 'Bad', steps: [...nap, { kind: 'loop', config: { workflow_id: 'nowhere' } }] },
        400,
        'bad_request',
      ),
    ),
    ['steps[1].config.workflow_id'],
  )
})

t.test('an invalid loop is rejected with the exact path of the field', async (t) => {
  const bad = async (body: Open, ...fields: string[]) =>
    t.strictSame(
      fieldsOf(
        await s.refused('loop.create', { name: 'Bad', steps: nap, ...body }, 400, 'bad_request'),
      ),
      fields,
    )
  await bad({ steps: [{ kind: 'sleep', config: { duration: '0' }, if: 'stpes.a' }] }, 'steps[0].if')
  await bad({ output: { a: '${{ steps.none.output }}' } }, 'output.a')
  await bad({ event: { n: { type: 'number', default: 'x' } } }, 'event.n.default')
  await bad(
    { triggers: [{ kind: 'event', config: { event_type: 'signal.x' } }] },
    'triggers[0].config.event_type',
  )
  await bad(
    { triggers: [{ kind: 'event', config: { event_type: 'a.b', condition: 'steps.x' } }] },
    'triggers[0].config.condition',
  )
  await bad(
    {
      triggers: [
        { kind: 'manual', key: 'k' },
        { kind: 'manual', key: 'k' },
      ],
    },
    'triggers[1].key',
  )
  await bad(
    { triggers: [{ kind: 'schedule', config: { interval: '9999999999h' } }] },
    'triggers[0].config.interval',
  )
  await bad({ cleanup: [{ id: 'z' }] }, 'cleanup[0].kind', 'cleanup[0].config')
  await bad({ repositories: [{ source: 'match' }] }, 'repositories[0].source')
  await bad(
    { limits: { daily_budget_usd: 1, daily_credit_budget: 1 } },
    'limits.daily_credit_budget',
  )
  await bad({ status: 'active', steps: [] }, 'status')
  await bad({ config: { model: 'large' } }, 'config.model')
  await bad({ schema_version: '2' }, 'schema_version')
  t.match(
    await s.refused(
      'loop.create',
      { name: 'Agent', steps: [{ kind: 'agent', config: { instructions: 'do' } }] },
      400,
      'bad_request',
    ),
    { details: { fields: [{ field: 'steps[0].config.agent_id' }] } },
  )
  const cleanup = [{ id: 'z', kind: 'action', note: 1, config: { action_name: 'x', more: 2 } }]
  t.match(
    await s.ok('loop.create', { name: 'Open', steps: nap, cleanup }),
    { cleanup },
    'additional members of a cleanup are stored',
  )
  const loop = await s.ok('loop.create', {
    name: 'Good',
    steps: nap,
    output: { a: '${{ steps.nap.output }}' },
  })
  t.strictSame(
    fieldsOf(
      await s.refused(
        'loop.update',
        { id: loop['id'], steps: [{ ...nap[0], id: 'other' }] },
        400,
        'bad_request',
      ),
    ),
    ['output.a'],
    'an update is validated together with the unchanged members',
  )
})

t.test('deleting a project deletes its loops', async (t) => {
  const at = { project: 'brief' }
  await s.ok('project.create', { name: 'Brief', handle: 'brief' })
  const loop = await s.ok('loop.create', {
    ...at,
    name: 'Clock',
    steps: nap,
    triggers: [
      { kind: 'schedule', config: { interval: '10s' } },
      { kind: 'http', config: { http_handle: 'brief-hook' } },
    ],
  })
  const { id } = await s.ok('project.get', at)
  await until(
    () => s.raw('POST', '/v1/triggers/http/brief-hook', { key: null, body: '{}' }),
    ({ status }) => status === 202,
  )
  await s.ok('project.delete', at)
  t.equal(
    (await s.raw('POST', '/v1/triggers/http/brief-hook', { key: null, body: '{}' })).status,
    404,
  )
  const seen = await until(
    () => s.ok('audit.list', { resource_id: loop['id'] }),
    (audit) => listOf(audit).length > 1,
  )
  t.match(
    listOf(seen).map(({ action }) => action),
    ['delete', 'create'],
    'the deletion follows a moment later',
  )
  t.ok(id)
})

t.test('an action that an active loop calls cannot be deleted', async (t) => {
  await s.ok('action.create', { name: 'held', endpoint_kind: 'worker' })
  const loop = await s.ok('loop.create', {
    name: 'Caller',
    steps: [{ id: 'call', kind: 'action', config: { action_name: 'held' } }],
  })
  t.match(await s.refused('action.delete', { action_name: 'held' }, 409, 'conflict'), {
    details: { loop_ids: [loop['id']], loop_count: 1 },
  })
  await s.ok('loop.update', { id: loop['id'], status: 'paused' })
  await s.ok('action.delete', { action_name: 'held' })
  await s.ok('action.create', { name: 'held', endpoint_kind: 'worker' })
  await s.ok('loop.update', { id: loop['id'], status: 'active' })
  await s.refused('action.delete', { action_name: 'held' }, 409, 'conflict')
  await s.ok('loop.delete', { id: loop['id'] })
  await s.ok('action.delete', { action_name: 'held' })
})
