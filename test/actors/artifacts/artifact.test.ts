/** The artifact actor, command by command. */
import t from 'tap'
import { limits } from '../../../protocol/artifacts/schema.ts'
import { given, START, typesOf } from '../../support/given.ts'
import {
  actor,
  admin,
  bytes,
  DOCX,
  fresh,
  ID,
  lease,
  other,
  owner,
  ready,
  reserved,
  SHA,
  type State,
  upload,
} from './story.ts'

const erased = { erase: [upload.blob, `${upload.blob}.md`] }
const toQuota = (name: string, input: object) => ({
  tell: { to: { kind: 'organization', id: 'org_1', project: 'org_1' }, name, input },
})

t.test('a reservation is pending, private and has a deadline', async (t) => {
  const after = reserved({ size_bytes: 7 })
  t.same(after.reply, { expires_at: START + limits.upload })
  t.equal(after.deadline(), START + limits.upload)
  t.equal(after.state.state, 'pending')
  t.match(after.state.artifact, {
    id: ID,
    visibility: 'private',
    size_bytes: 7,
    owned_by: 'user_1',
    created_by: 'user_1',
  })
  t.same(after.effects, [])
  t.same(after.ask('content'), after.state)
})
t.test('a completion may replace the name, type and metadata of the upload', async (t) => {
  const facts = { ...bytes, name: 'b.csv', mime_type: 'text/csv', metadata: { a: 1 } }
  t.match(ready({ size_bytes: 9 }, facts).state.artifact, facts)
})
t.test('an id is reserved once', async (t) => {
  for (const scene of [
    reserved(),
    ready(),
    reserved().when('artifact.abandon'),
    fresh().when('artifact.abandon'),
    ready().when('artifact.delete', { viewer: owner }),
  ])
    t.equal(scene.when('artifact.reserve', upload).refused?.refused, 'artifact_conflict')
})
t.test('renewals move the deadline of a pending upload, and only of it', async (t) => {
  const later = START + 60_000
  const renewed = reserved().when('artifact.renew', {}, { at: later })
  t.same(renewed.reply, { expires_at: later + limits.upload })
  t.equal(renewed.deadline(), later + limits.upload)
  t.equal(ready().when('artifact.renew').refused?.refused, 'artifact_conflict')
  t.equal(fresh().when('artifact.renew').refused?.refused, 'artifact_conflict')
})
t.test('a completed upload is ready, settles the quota and is published', async (t) => {
  const later = START + 5000
  const after = reserved({ size_bytes: 9 }).when('artifact.complete', bytes, { at: later })
  const record = { ...bytes, created_at: '2026-01-01T00:00:05.000Z', owned_by: 'user_1' }
  t.match(after.reply, record)
  t.equal(after.state.state, 'ready')
  t.equal(after.deadline(), undefined)
  t.same(after.tells, [])
  const [settle, publish] = after.effects
  t.same(settle, toQuota('quota.settle', { artifact: ID, bytes: 5 }))
  const meta = { artifact_id: ID, kind: 'file', content_type: 'text/plain' }
  t.same(publish, {
    tell: {
      to: { kind: 'events', id: 'prj_1' },
      name: 'source.publish',
      input: {
        event_type: 'artifact.created',
        source_kind: 'artifact',
        source_id: ID,
        event: {
          ...meta,
          name: 'reports/a.txt',
          size_bytes: 5,
          sha256: SHA,
          visibility: 'private',
        },
        meta,
        record: {
          id: ID,
          mime_type: 'text/plain',
          created_at: '2026-01-01T00:00:05.000Z',
          created_by: 'user_1',
          owned_by: 'user_1',
        },
        private_owner: 'user_1',
        depth: 0,
      },
    },
  })
})
t.test('a repeated completion answers the record, another one is refused', async (t) => {
  const again = ready().when('artifact.complete', bytes)
  t.same(again.events, [])
  t.match(again.reply, bytes)
  const changed = ready().when('artifact.complete', { ...bytes, sha256: 'cd'.repeat(32) })
  t.equal(changed.refused?.refused, 'artifact_conflict')
  t.equal(fresh().when('artifact.complete', bytes).refused?.refused, 'artifact_conflict')
})
t.test('the upload of a worker is shared, and completed only under its lease', async (t) => {
  const pending = reserved({ lease, owner: 'svc_1' })
  for (const wrong of [undefined, { job_id: 'job_1', attempt: 3 }, { job_id: 'job_2', attempt: 2 }])
    t.equal(
      pending.when('artifact.complete', { ...bytes, ...(wrong && { lease: wrong }) }).refused
        ?.refused,
      'artifact_conflict',
    )
  t.equal(
    reserved().when('artifact.complete', { ...bytes, lease: { job_id: 'job_1', attempt: 2 } })
      .refused?.refused,
    'artifact_conflict',
  )
  const after = ready({ lease, owner: 'svc_1' })
  t.match(after.reply, {
    visibility: 'shared',
    run_id: 'run_1',
    step_id: 'run_1:build',
    job_id: 'job_1',
    worker_session_id: 'wst_1',
    attempt: 2,
    owned_by: 'svc_1',
  })
  t.same(after.tells, [
    {
      to: { kind: 'run', id: 'run_1' },
      name: 'run.artifact',
      input: { artifact: after.reply, step: 'build' },
    },
  ])
  t.equal(after.effects.length, 1, 'the run publishes the source event')
})
t.test('an artifact of a session is reported to the run by an effect', async (t) => {
  const after = ready({ lease: { ...lease, session_id: 'ses_1' } })
  t.same(after.tells, [])
  t.match(after.effects[1], {
    tell: { name: 'run.artifact', input: { step: 'build', session_id: 'ses_1' } },
  })
})
t.test('the source event of a session without a run counts as private', async (t) => {
  const { run_id, step_id, step_key, ...rest } = lease
  const after = ready({ lease: { ...rest, session_id: 'ses_1' } })
  t.equal(after.state.session_id, 'ses_1')
  t.match(after.effects[1], {
    tell: { name: 'source.publish', input: { private_session: 'ses_1' } },
  })
})
t.test('an abandoned upload erases its bytes and releases the quota', async (t) => {
  const release = toQuota('quota.release', { artifact: ID, until: START + limits.upload })
  const after = reserved().when('artifact.abandon')
  t.same(after.reply, { state: 'abandoned' })
  t.same(after.effects, [erased, release])
  t.same(after.state, { state: 'abandoned' })
  t.equal(after.when('artifact.complete', bytes).refused?.refused, 'artifact_conflict')
  const due = reserved().when('wake', {}, { at: START + limits.upload })
  t.same(due.effects, [erased, release])
  t.same(typesOf(reserved().when('wake', {}, { at: START + limits.upload - 1 })), [])
})
t.test('abandoning changes nothing else', async (t) => {
  t.same(ready().when('artifact.abandon').reply, { state: 'ready' })
  t.same(ready().when('artifact.abandon').events, [])
  const kept = reserved().when('artifact.abandon', { unreserved: true })
  t.same([kept.reply, kept.events], [{ state: 'pending' }, []])
  const unused = fresh().when('artifact.abandon', { unreserved: true })
  t.same([unused.reply, unused.effects], [{ state: 'abandoned' }, []])
})
t.test('only the owner and administrators delete', async (t) => {
  const gone = ready().when('artifact.delete', { viewer: owner })
  t.equal(gone.state.state, 'deleted')
  t.equal(gone.deadline(), undefined)
  t.same(gone.effects, [
    erased,
    toQuota('quota.refund', { artifact: ID, bytes: 5, until: START + limits.refund }),
  ])
  t.equal(ready().when('artifact.delete', { viewer: admin }).state.state, 'deleted')
  t.equal(ready().when('artifact.delete', { viewer: other }).refused?.refused, 'not_found')
  t.match(ready({ lease }).when('artifact.delete', { viewer: other }).refused, {
    refused: 'permission_denied',
    details: { permission: 'service.project.admin' },
  })
  for (const scene of [fresh(), reserved(), gone, reserved().when('artifact.abandon')])
    t.equal(scene.when('artifact.delete', { viewer: admin }).refused?.refused, 'not_found')
})
t.test('the text of Office files is extracted on request', async (t) => {
  const office = { ...bytes, mime_type: DOCX }
  t.equal(ready({}, office).state.artifact?.conversion, undefined)
  t.equal(ready({}, { ...bytes, convert: true }).state.artifact?.conversion, undefined)
  const converting = ready({}, { ...office, convert: true })
  t.same(converting.state.artifact?.conversion, { state: 'converting' })
  t.equal(converting.when('artifact.delete', { viewer: owner }).refused?.refused, 'conflict')
  const job_id = converting.state.convert_job
  t.match(converting.tells, [
    {
      to: { kind: 'queue', id: /\$errands$/ },
      name: 'queue.enqueue',
      input: {
        job: { id: job_id, kind: 'errand', owner: { kind: 'artifact', id: ID }, max_losses: 3 },
      },
    },
  ])
  t.same(converting.ask('job_spec', { job_id }), {
    errand: 'convert',
    artifact_id: ID,
    blob: upload.blob,
  })
  t.same(converting.ask('job_spec', { job_id: 'job_other' }), { errand: 'none' })
  const settled = { job_id, outcome: 'completed', attempt: 1, result: { state: 'ready' } }
  t.same(converting.when('job.settled', { ...settled, job_id: 'job_other' }).events, [])
  const done = converting.when('job.settled', settled)
  t.same(done.state.artifact?.conversion, { state: 'ready' })
  t.equal(done.state.artifact?.updated_by, undefined)
  t.equal(done.deadline(), undefined)
  t.same(done.ask('job_spec', { job_id }), { errand: 'none' })
  t.same(done.when('job.settled', settled).events, [])
  t.equal(done.when('artifact.delete', { viewer: owner }).state.state, 'deleted')
})
t.test(
  'a conversion fails with the reason of the executor, or when its errand fails',
  async (t) => {
    const converting = ready({}, { ...bytes, mime_type: DOCX, convert: true })
    const job_id = converting.state.convert_job
    const result = { state: 'failed', error: 'The file is damaged.' }
    t.same(
      converting.when('job.settled', { job_id, outcome: 'completed', attempt: 1, result }).state
        .artifact?.conversion,
      result,
    )
    const failed = converting.when('job.settled', { job_id, outcome: 'failed', attempt: 3 })
    t.match(failed.state.artifact?.conversion, { state: 'failed', error: /Upload the file again/ })
  },
)
t.test('a file that is too large is not converted', async (t) => {
  const size_bytes = limits.conversion_bytes + 1
  const large = ready({}, { ...bytes, size_bytes, mime_type: DOCX, convert: true })
  t.match(large.state.artifact?.conversion, { state: 'failed', error: /32 MiB.*Split/ })
  t.same(large.tells, [])
  t.equal(large.deadline(), undefined)
})
t.test('a conversion of an earlier version has no errand, and ends at its deadline', async (t) => {
  const converting = ready({}, { ...bytes, mime_type: DOCX, convert: true })
  const old = converting.events.map(({ convert_job: _, ...event }) => event)
  const folded = given<State>(actor, ...reserved().events, ...old)
  t.equal(folded.state.convert_job, undefined)
  t.same(folded.ask('job_spec', { job_id: 'job_1' }), { errand: 'none' })
  const late = folded.when('wake', {}, { at: START + limits.conversion })
  t.match(late.state.artifact?.conversion, { state: 'failed' })
})
t.test('a conversion that is not reported fails at its deadline', async (t) => {
  const converting = ready({}, { ...bytes, mime_type: DOCX, convert: true })
  t.equal(converting.deadline(), START + limits.conversion)
  const late = converting.when('wake', {}, { at: START + limits.conversion })
  t.match(late.state.artifact?.conversion, { state: 'failed', error: /in time/ })
  t.equal(late.deadline(), undefined)
})
t.test('the deletion of a project deletes artifacts and abandons uploads', async (t) => {
  const gone = ready({}, { ...bytes, mime_type: DOCX, convert: true }).when('artifact.remove')
  t.equal(gone.state.state, 'deleted')
  t.equal(gone.deadline(), undefined)
  t.same(gone.effects[0], erased)
  const late = { outcome: 'completed', attempt: 1, result: { state: 'ready' } }
  t.same(gone.when('job.settled', { job_id: gone.state.convert_job, ...late }).events, [])
  t.same(gone.when('artifact.remove').events, [])
  t.same(reserved().when('artifact.remove').state, { state: 'abandoned' })
  t.same(fresh().when('artifact.remove').events, [])
})
