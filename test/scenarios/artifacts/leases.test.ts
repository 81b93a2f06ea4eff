/**
 * Artifacts that workers upload under the lease of a job: their lineage and visibility, the events
 * of the run, and superseded leases, under which nothing is published.
 */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { service } from '../../support/service.ts'
import { listOf, until } from '../support/given.ts'
import { as, person } from '../support/people.ts'
import { hasty, start } from '../support/sockets.ts'
import { artifactClient, codeOf, type Open } from './client.ts'

t.setTimeout(60_000)
const s = await service({ ...hasty, BATON_SHARDS: '4' })
t.teardown(() => s.stop())
const { put, content, slow } = artifactClient(s.url, s.key)
const under = (job: Open, more: Record<string, string> = {}) => ({
  headers: { 'x-service-lease-token': String(job['lease_token']), ...more },
})
const pendingOf = async () => (await s.ok('artifact.quota'))['pending_count']

t.test('a worker uploads an artifact of its run', async (t) => {
  const worker = await s.worker({ action_names: ['make'] })
  const run = await start(s, 'make')
  const job = await worker.job()
  const bytes = randomBytes(400_000)
  const { status, body } = await put('out/report.txt', bytes, {
    ...under(job, { 'idempotency-key': 'of the job' }),
    chunked: true,
  })
  t.equal(status, 201)
  t.match(body, {
    visibility: 'shared',
    run_id: run['id'],
    step_id: `${String(run['id'])}:do`,
    size_bytes: bytes.length,
  })
  t.notOk('job_id' in body, 'a strict client reads the reply')
  const record = await s.ok('artifact.get', { artifact_id: body['id'] })
  t.match(record, { ...body, job_id: job['id'], attempt: 1, worker_session_id: /./, owned_by: /./ })
  const viewer = await person(s, 'viewer', 'role_viewer')
  t.same(await viewer.ok('artifact.get', { artifact_id: body['id'] }), record)
  t.ok((await content(body['id'], as(viewer))).bytes.equals(bytes))
  for (const filter of [{ run_id: run['id'] }, { step_id: body['step_id'] }])
    t.match(listOf(await viewer.ok('artifact.list', filter)), [{ id: body['id'] }])
  const events = await until(
    async () => listOf(await s.ok('run.events', { id: run['id'], limit: 200 })),
    (all) => all.some(({ event_type }) => event_type === 'artifact.created'),
  )
  t.match(
    events.filter(({ event_type }) => event_type === 'artifact.created'),
    [
      {
        payload: {
          artifact_id: body['id'],
          name: 'out/report.txt',
          content_type: 'text/plain',
          step: 'do',
        },
      },
    ],
  )
  const source = await until(
    async () => listOf(await s.ok('event.list', { event_type: 'artifact.created' })),
    (all) => all.length > 0,
  )
  t.match(source, [{ source_kind: 'artifact', source_id: body['id'] }])
  t.equal(source.length, 1)
  await worker.report(job)
  const repeat = await put(
    'again',
    Buffer.from('x'),
    under(job, { 'idempotency-key': 'of the job' }),
  )
  t.match([repeat.status, repeat.body['id']], [200, body['id']], 'also after the end of the lease')
  const late = await put('late', Buffer.from('x'), under(job))
  t.match([late.status, codeOf(late)], [409, 'lease_lost'])
  await viewer.refused('artifact.delete', { artifact_id: body['id'] }, 403, 'permission_denied')
  worker.close()
})

t.test('a lease token needs its permission, and must be one', async (t) => {
  const one = await person(s, 'no worker', 'role_viewer')
  const refused = await put('x', Buffer.from('x'), {
    ...under({ lease_token: 'lease_a.q' }),
    ...as(one),
  })
  t.match([refused.status, codeOf(refused)], [403, 'permission_denied'])
  for (const lease_token of ['x', 'lease_abc.default', 'lease_abc.=', 'lease_abc.none']) {
    const unknown = await put('x', Buffer.from('x'), under({ lease_token }))
    t.match([unknown.status, codeOf(unknown)], [409, 'lease_lost'], lease_token)
  }
})

t.test('a superseded lease publishes nothing', async (t) => {
  const first = await s.worker({ action_names: ['lose'] })
  const run = await start(s, 'lose', { attempts: 3 })
  const job = await first.job()
  const late = slow(under(job).headers)
  await until(pendingOf, (pending) => pending === 1)
  first.close()
  const second = await s.worker({ action_names: ['lose'] })
  const again = await second.job()
  t.equal(again['id'], job['id'])
  t.match(await late.finish(), /^HTTP\/1.1 409 [\s\S]*"lease_lost"/)
  t.equal(await pendingOf(), 0)
  t.same(listOf(await s.ok('artifact.list', { run_id: run['id'] })), [])
  const kept = await put('kept', Buffer.from('x'), under(again))
  t.equal(kept.status, 201)
  await second.report(again)
  const events = listOf(await s.ok('run.events', { id: run['id'], limit: 200 }))
  t.equal(events.filter(({ event_type }) => event_type === 'artifact.created').length, 1)
  second.close()
})

t.test(
  'an installation with another brand accepts the header of its brand and the usual one',
  async (t) => {
    const acme = await service({ ...hasty, BATON_BRAND: 'Acme' })
    t.teardown(() => acme.stop())
    const worker = await acme.worker({ action_names: ['make'] })
    const run = await start(acme, 'make')
    const { lease_token } = await worker.job()
    const upload = artifactClient(acme.url, acme.key)
    for (const brand of ['acme', 'service']) {
      const headers = { [`x-${brand}-lease-token`]: String(lease_token) }
      const { status, body } = await upload.put(brand, Buffer.from('x'), { headers })
      t.match([status, body['run_id']], [201, run['id']], brand)
    }
    worker.close()
  },
)
