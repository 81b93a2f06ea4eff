/** The conversion of the Office files of a session: its errand, its end, and deleted files. */
import t from 'tap'
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
/** A session with a stored Office file. */
function stored(): { readonly s: Story; readonly id: string; readonly job_id: string } {
  const s = begun()
  s.answers(say('x'))
  s.do('attachment.reserve', { file, hash: 'ab' })
  const id = (s.last?.reply as { artifact_id?: string } | undefined)?.artifact_id ?? ''
  s.do('session.attach', { artifact_id: id })
  const told = s.last?.tells.find(({ name }) => name === 'queue.enqueue')
  const job = (told?.input as { job?: { id: string } } | undefined)?.job
  return { s, id, job_id: job?.id ?? '' }
}
const conversionOf = (s: Story, artifact_id: string): unknown =>
  (s.session.ask('attachment', { artifact_id }) as Attached['artifact'] | null)?.conversion

t.test('the commit that stores a file enqueues its conversion', async (t) => {
  const { s, id, job_id } = stored()
  t.match(s.last?.tells, [
    {
      to: { kind: 'queue', id: /\$errands$/ },
      input: { job: { kind: 'errand', owner: { kind: 'session' }, max_losses: 3 } },
    },
  ])
  t.match(s.last?.reply, { artifact: { conversion: { state: 'converting' } } })
  t.match(s.session.ask('job_spec', { job_id }), {
    errand: 'convert',
    artifact_id: id,
    owner: { session_id: /./ },
  })
  s.do('session.attach', { artifact_id: id })
  t.same(s.last?.tells, [], 'a repeat enqueues nothing')
})

t.test('the end of the errand is recorded once', async (t) => {
  for (const [told, conversion] of [
    [{ outcome: 'completed', result: { state: 'ready' } }, { state: 'ready' }],
    [
      { outcome: 'completed', result: { state: 'failed', error: 'It is damaged.' } },
      { state: 'failed', error: 'It is damaged.' },
    ],
    [{ outcome: 'failed' }, { state: 'failed', error: /Upload the file again/ }],
  ] as const) {
    const { s, id, job_id } = stored()
    s.do('job.settled', { job_id, attempt: 1, ...told })
    t.match(conversionOf(s, id), conversion)
    s.do('job.settled', { job_id, attempt: 1, outcome: 'failed' })
    t.same(s.last?.events, [])
    t.equal(s.session.ask('job_spec', { job_id }), null)
  }
})

t.test('a deleted file is not converted', async (t) => {
  const { s, id, job_id } = stored()
  s.do('session.detach', { artifact_id: id })
  t.same(s.session.ask('job_spec', { job_id }), { errand: 'none' })
  s.do('job.settled', { job_id, attempt: 1, outcome: 'completed', result: { state: 'ready' } })
  t.same(s.last?.events, [])
})
