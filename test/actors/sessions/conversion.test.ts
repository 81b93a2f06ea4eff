/** The conversion of a session's Office files, performed and reported by their artifacts. */
import t from 'tap'
import { limits } from '../../../protocol/artifacts/schema.ts'
import type { Attached } from '../../../protocol/sessions/attachments.ts'
import { begun, type Story, say } from './story.ts'

const file = {
  name: 'plan.docx',
  mime_type: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  size_bytes: 10,
  sha256: 'ab',
  as: 'document',
  conversion: { state: 'converting' },
}
function stored(): { readonly s: Story; readonly id: string; readonly job_id: string } {
  const s = begun()
  s.answers(say('x'))
  s.do('attachment.reserve', { file, hash: 'ab', organization: 'org_1' })
  const id = (s.last?.reply as { artifact_id?: string } | undefined)?.artifact_id ?? ''
  s.do('session.attach', { artifact_id: id })
  const kept = s.artifacts.get(id)?.state
  return { s, id, job_id: (kept?.state === 'ready' && kept.convert_job) || '' }
}
const conversionOf = (s: Story, artifact_id: string): unknown =>
  (s.session.ask('attachment', { artifact_id }) as Attached['artifact'] | null)?.conversion
const recordOf = (s: Story, id: string): unknown => {
  const kept = s.artifacts.get(id)?.state
  return kept?.state === 'ready' ? kept.artifact.conversion : undefined
}

t.test('a stored file is converted by its artifact', async (t) => {
  const { s, id, job_id } = stored()
  t.match(s.last?.reply, { artifact: { conversion: { state: 'converting' } } })
  t.match(job_id, /^job_/)
  t.same(recordOf(s, id), { state: 'converting' })
  t.match(s.artifacts.get(id)?.ask('job_spec', { job_id }), { errand: 'convert', artifact_id: id })
})

t.test('the session and the artifact record the same end, once', async (t) => {
  for (const [told, conversion] of [
    [{ outcome: 'completed', result: { state: 'ready' } }, { state: 'ready' }],
    [
      { outcome: 'completed', result: { state: 'failed', error: 'It is damaged.' } },
      { state: 'failed', error: 'It is damaged.' },
    ],
    [{ outcome: 'failed' }, { state: 'failed', error: /Upload the file again/ }],
  ] as const) {
    const { s, id, job_id } = stored()
    s.artifact(id, 'job.settled', { job_id, attempt: 1, ...told })
    t.match(conversionOf(s, id), conversion)
    t.same(recordOf(s, id), conversionOf(s, id))
    s.artifact(id, 'job.settled', { job_id, attempt: 1, outcome: 'failed' })
    t.match(conversionOf(s, id), conversion)
  }
})

t.test('a conversion that no executor ends has failed', async (t) => {
  const { s, id } = stored()
  s.pass(limits.conversion)
  s.artifact(id, 'wake', {})
  t.match(conversionOf(s, id), { state: 'failed', error: /in time/ })
  t.same(recordOf(s, id), conversionOf(s, id))
})

t.test('a deleted file is not converted', async (t) => {
  const { s, id, job_id } = stored()
  s.do('session.detach', { artifact_id: id })
  t.same(s.artifacts.get(id)?.ask('job_spec', { job_id }), { errand: 'none' })
  s.artifact(id, 'job.settled', {
    job_id,
    attempt: 1,
    outcome: 'completed',
    result: { state: 'ready' },
  })
  t.equal(conversionOf(s, id), undefined)
  s.do('attachment.converted', { artifact_id: id, conversion: { state: 'ready' } })
  t.same(s.last?.events, [])
})
