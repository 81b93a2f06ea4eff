/** Triggers that start runs of loops automatically: requests, events and schedules. */
import { createHmac } from 'node:crypto'
import t from 'tap'
import { service } from '../../support/service.ts'
import { ended, listOf, until } from '../support/given.ts'

const s = await service()
t.teardown(() => s.stop())
const nap = (duration = '0') => [{ id: 'nap', kind: 'sleep', config: { duration } }]
const triggersOf = (loop: Record<string, unknown>) =>
  listOf(loop, 'triggers') as unknown as { config: { http_handle: string } }[]
const post = (handle: string, body?: string, headers: Record<string, string> = {}, query = '') =>
  s.raw('POST', `/v1/triggers/http/${handle}${query}`, {
    key: null,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body }),
  })
const runsBy = (source_event_id: unknown) =>
  until(
    async () => listOf(await s.ok('run.list', { source_event_id: String(source_event_id) })),
    (runs) => runs.length > 0,
  )

t.test('an HTTP trigger starts one run per idempotency key with the body', async (t) => {
  const loop = await s.ok('loop.create', {
    name: 'Hooked',
    steps: nap(),
    triggers: [{ kind: 'http', key: 'hook' }],
    output: { got: '${{ event.n }}', kind: '${{ meta.trigger.kind }}' },
  })
  const handle = String(triggersOf(loop)[0]?.config.http_handle)
  t.match(handle, /^trig_/)
  const first = await until(
    () => post(handle, '{"n":7}', { 'x-idempotency-key': 'one' }),
    ({ status }) => status !== 404,
  )
  t.equal(first.status, 202)
  t.match(first.body, { source_event_id: /^sevt_/, status: 'accepted' })
  const repeats = [
    await post(handle, '{"n":8}', { 'x-idempotency-key': 'other' }, '?idempotency_key=one'),
    await post(handle, '{"n":8}', { 'idempotency-key': 'other', 'x-idempotency-key': 'one' }),
    await post(handle, '{"n":8}', { 'idempotency-key': 'one' }),
  ]
  for (const again of repeats)
    t.strictSame([again.status, again.body], [202, { ...first.body, deduped: true }])
  const [run] = await runsBy(first.body['source_event_id'])
  t.match(await ended(s, run?.['id']), {
    status: 'completed',
    result: { got: 7, kind: 'http' },
    source: { type: 'trigger' },
    meta: {
      event_type: 'http_trigger.received',
      source_event_id: first.body['source_event_id'],
      http_handle: handle,
    },
  })
  t.equal((await post(handle)).status, 202, 'an empty body counts as an empty object')
  t.equal((await post(handle, '[1]')).status, 400)
  t.equal((await post(handle, '{')).status, 400)
  t.match(await post(handle, JSON.stringify({ pad: 'x'.repeat(300_000) })), {
    status: 413,
    body: { error: { code: 'payload_too_large' } },
  })
  t.match(await post('nobody'), { status: 404, body: { error: { code: 'not_found' } } })
  t.equal((await post('%')).status, 404)
  await s.ok('loop.update', { id: loop['id'], status: 'paused' })
  t.match(await post(handle, '{}'), { status: 409, body: { error: { code: 'loop_paused' } } })
  t.strictSame(
    await post(handle, '{}', { 'x-idempotency-key': 'one' }).then(({ status, body }) => [
      status,
      body,
    ]),
    [202, { ...first.body, deduped: true }],
    'a repeat gets the first response',
  )
  t.equal((await post(handle, '{}', { 'x-idempotency-key': 'new' })).status, 409)
  await s.ok('loop.update', {
    id: loop['id'],
    status: 'active',
    triggers: [{ kind: 'http', key: 'hook', enabled: false }],
  })
  t.equal((await post(handle, '{}')).status, 404, 'a disabled trigger does not exist')
  await s.ok('loop.delete', { id: loop['id'] })
  t.equal((await post(handle, '{}')).status, 404)
})

t.test('a custom handle belongs to one loop, and a secret requires a signature', async (t) => {
  const secret = 'a secret that nobody reads'
  const body = {
    name: 'Signed',
    steps: nap(),
    triggers: [{ kind: 'http', key: 'in', config: { http_handle: 'deploys' } }],
    settings: { http_triggers: { in: { signing_secret: secret } }, theme: 'dark' },
  }
  const loop = await s.ok('loop.create', body)
  t.match(loop['settings'], {
    http_triggers: { in: { signing_secret: '[redacted]' } },
    theme: 'dark',
  })
  t.notMatch(
    JSON.stringify([loop, await s.ok('loop.get', { id: loop['id'] }), await s.ok('audit.list')]),
    secret,
  )
  t.match(await s.refused('loop.create', { ...body, name: 'Thief' }, 409, 'already_exists'), {
    details: { http_handle: 'deploys' },
  })
  const sign = (text: string, key = secret) => ({
    'X-Service-Signature': `sha256=${createHmac('sha256', key).update(text).digest('hex')}`,
  })
  const sent = '{"version": "1.2 ü"}'
  t.match(
    await until(
      () => post('deploys', sent),
      ({ status }) => status !== 404,
    ),
    { status: 401, body: { error: { code: 'invalid_signature' } } },
  )
  t.equal((await post('deploys', sent, sign(sent, 'another secret'))).status, 401)
  t.equal((await post('deploys', `${sent} `, sign(sent))).status, 401)
  t.equal((await post('deploys', sent, sign(sent))).status, 202)
  await s.ok('loop.update', {
    id: loop['id'],
    settings: { ...(loop['settings'] as unknown as object), theme: 'light' },
  })
  t.equal(
    (await post('deploys', sent, sign(sent))).status,
    202,
    'a redacted secret in an update keeps the stored one',
  )
  await s.ok('loop.update', { id: loop['id'], settings: { theme: 'light' } })
  t.equal((await post('deploys', sent)).status, 202, 'no signature is required without a secret')
  await s.ok('loop.delete', { id: loop['id'] })
  const heir = await until(
    () =>
      s.call('loop.create', {
        name: 'Heir',
        steps: nap(),
        triggers: [{ kind: 'http', config: { http_handle: 'deploys' } }],
      }),
    ({ status }) => status === 201,
  )
  t.match(heir.body, { triggers: [{ config: { http_handle: 'deploys' } }] })
})

t.test('a secret that is the base64 of 32 bytes is decoded to these bytes', async (t) => {
  const key = Buffer.from(Array.from({ length: 32 }, (_, at) => at))
  const settings = { http_triggers: { in: { signing_secret: key.toString('base64') } } }
  await s.ok('loop.create', {
    name: 'Vector',
    steps: nap(),
    triggers: [{ kind: 'http', key: 'in', config: { http_handle: 'vector' } }],
    settings,
  })
  const sent = '{"invoice":"inv-77"}'
  const post77 = (signature: string) =>
    until(
      () => post('vector', sent, { 'X-Service-Signature': `sha256=${signature}` }),
      ({ status }) => status !== 404,
    )
  t.equal(
    (await post77('b5a085988629b87840824e1ed78279ff1356a3d1defeba1b6ba99df92e00badd')).status,
    202,
    'the published test vector',
  )
  t.equal(
    (await post77(createHmac('sha256', key.toString('base64')).update(sent).digest('hex'))).status,
    401,
    'the text of the secret is not the key',
  )
})

t.test('events start runs of the loops with matching triggers', async (t) => {
  const loop = await s.ok('loop.create', {
    name: 'Watcher',
    steps: nap(),
    triggers: [
      {
        kind: 'event',
        key: 'paid',
        config: { event_type: 'order.*', condition: 'event.total > 10' },
      },
    ],
    output: { total: '${{ event.total }}' },
  })
  const other = await s.ok('loop.create', {
    name: 'After',
    steps: nap(),
    triggers: [{ kind: 'event', config: { event_type: 'run.completed', source_id: loop['id'] } }],
    output: { of: '${{ event.loop_name }}' },
  })
  const sent = await until(
    async () => {
      const published = await s.ok('event.publish', {
        event_type: 'order.paid',
        event: { total: 12 },
      })
      await new Promise((resolve) => setTimeout(resolve, 20))
      return {
        published,
        runs: listOf(await s.ok('run.list', { source_event_id: published['source_event_id'] })),
      }
    },
    ({ runs }) => runs.length > 0,
  )
  t.match(await ended(s, sent.runs[0]?.['id']), {
    status: 'completed',
    result: { total: 12 },
    source: { type: 'trigger' },
    meta: { event_type: 'order.paid', trigger: { key: 'paid', kind: 'event' } },
  })
  const [after] = await until(
    async () => listOf(await s.ok('run.list', { loop_id: other['id'] })),
    (runs) => runs.length > 0,
  )
  t.match(await ended(s, after?.['id']), {
    result: { of: 'Watcher' },
    event: { loop_id: loop['id'], status: 'completed' },
  })
  const small = await s.ok('event.publish', { event_type: 'order.paid', event: { total: 3 } })
  t.strictSame(listOf(await s.ok('run.list', { source_event_id: small['source_event_id'] })), [])
})

t.test(
  'a condition that cannot be evaluated starts no run and is reported with the trigger',
  async (t) => {
    const triggers = [
      {
        kind: 'event',
        key: 'odd',
        config: { event_type: 'parcel.*', condition: 'event.weight / event.count > 1' },
      },
      { kind: 'schedule', key: 'later', config: { interval: '1h' } },
    ]
    const loop = await s.ok('loop.create', { name: 'Odd', steps: nap(), triggers })
    const standing = async () => listOf(await s.ok('loop.triggers', { id: loop['id'] }))
    t.match(await standing(), [
      { key: 'odd', kind: 'event', enabled: true, condition_faults: undefined },
      { key: 'later', kind: 'schedule', next_fire_at: String },
    ])
    const sent = await until(
      async () => {
        const published = await s.ok('event.publish', {
          event_type: 'parcel.sent',
          event: { weight: 3, count: 'many' },
        })
        return { published, odd: (await standing())[0] as Record<string, unknown> }
      },
      ({ odd }) => odd['condition_faults'] !== undefined,
    )
    t.match(sent.odd, {
      last_condition_fault: {
        source_event_id: sent.published['source_event_id'],
        message: String,
        at: String,
      },
    })
    t.strictSame(listOf(await s.ok('run.list', { loop_id: loop['id'] })), [])
    await s.refused('loop.triggers', { id: 'loop_00000000000000000000000000' }, 404, 'not_found')
  },
)

t.test(
  'a request that does not match the declared event starts no run and is reported with the trigger',
  async (t) => {
    const loop = await s.ok('loop.create', {
      name: 'Strict',
      steps: nap(),
      event: { n: { type: 'number', required: true } },
      triggers: [{ kind: 'http', key: 'in', config: { http_handle: 'strict' } }],
    })
    const sent = await until(
      () => post('strict', '{"n":"q"}'),
      ({ status }) => status !== 404,
    )
    t.equal(sent.status, 202)
    const [shown] = await until(
      async () => listOf(await s.ok('loop.triggers', { id: loop['id'] })),
      ([trigger]) => trigger?.['skipped_starts'] !== undefined,
    )
    t.match(shown, {
      key: 'in',
      skipped_starts: 1,
      last_skipped_start: {
        reason: 'event.n: must be of type number, not text',
        source_event_id: sent.body['source_event_id'],
        at: String,
      },
    })
    t.strictSame(listOf(await s.ok('run.list', { loop_id: loop['id'] })), [])
    await s.ok('loop.update', { id: loop['id'], settings: { theme: 'dark' } })
    const [entry] = listOf(await s.ok('audit.list', { resource_id: loop['id'] }))
    t.strictSame(entry?.['changes'], { settings: {} })
  },
)

t.test('a schedule starts runs automatically while its loop is active', async (t) => {
  const loop = await s.ok('loop.create', {
    name: 'Clock',
    steps: nap(),
    triggers: [
      { kind: 'schedule', key: 'often', config: { interval: '10s' } },
      { kind: 'schedule', key: 'yearly', config: { cron: '0 0 1 1 *', timezone: 'Europe/Berlin' } },
    ],
  })
  const [run] = await until(
    async () => listOf(await s.ok('run.list', { loop_id: loop['id'] })),
    (runs) => runs.length > 0,
  ).catch(() =>
    until(
      async () => listOf(await s.ok('run.list', { loop_id: loop['id'] })),
      (runs) => runs.length > 0,
    ),
  )
  t.match(run, {
    source: { type: 'trigger' },
    event: { trigger_key: 'often', scheduled_at: String },
    meta: { scheduled_at: String, event_type: 'schedule.tick', source_event_id: /^sevt_/ },
  })
  for (const [config, field] of [
    [{ interval: '5s' }, 'interval'],
    [{ cron: '* * * *' }, 'cron'],
    [{ cron: '0 0 30 2 *' }, 'cron'],
    [{ cron: '@hourly', timezone: 'Mars/Olympus' }, 'timezone'],
    [{ interval: '1m', cron: '@daily' }, 'cron'],
  ] as const) {
    t.match(
      await s.refused(
        'loop.update',
        { id: loop['id'], triggers: [{ kind: 'schedule', config }] },
        400,
        'bad_request',
      ),
      { details: { fields: [{ field: `triggers[0].config.${field}` }] } },
    )
  }
})

t.test(
  'a triggered run has the triggering run in meta, and its own ids at the root run',
  async (t) => {
    const watching = await s.ok('loop.create', {
      name: 'Watching',
      steps: nap(),
      triggers: [{ kind: 'event', config: { event_type: 'run.failed' } }],
      run_name: { template: 'after ${{ meta.run_id }} in ${{ run.loop_id }}' },
      output: { failed: '${{ meta.run_id }}', me: '${{ run.id }}', loop: '${{ run.loop_id }}' },
    })
    const broken = await s.ok('loop.create', {
      name: 'Broken',
      steps: [{ kind: 'sleep', config: { duration: '0' }, if: '1 / 0 == 1' }],
    })
    const failed = await s.ok('loop.start', { id: broken['id'], meta: { run_id: 'mine' } })
    t.match(await ended(s, failed['id']), { status: 'failed', meta: { run_id: failed['id'] } })
    const [run] = await until(
      async () => listOf(await s.ok('run.list', { loop_id: watching['id'] })),
      (runs) => runs.length > 0,
    )
    t.match(await ended(s, run?.['id']), {
      name: `after ${String(failed['id'])} in ${String(watching['id'])}`,
      meta: { run_id: failed['id'], loop_id: broken['id'] },
      result: { failed: failed['id'], me: run?.['id'], loop: watching['id'] },
    })
  },
)
