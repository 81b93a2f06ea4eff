/** Parsing of frames from workers. */
import t from 'tap'
import { readFrame } from '../../../gateway/workers/frames.ts'

const lease = { job_id: 'job_1', lease_token: 'lt_1' }
const report = { type: 'job.report', message_id: 'm', ...lease }
const read = (frame: object) => readFrame(JSON.stringify(frame))

t.test('a report with a job id is always accepted; malformed members are ignored', async (t) => {
  t.strictSame(
    read({ ...report, error_message: 5, error_type: {}, result: { a: 1 }, colour: 'blue' }),
    { frame: { ...report, result: { a: 1 }, colour: 'blue' } },
  )
  t.strictSame(read({ ...report, status: 'failed', result: 'text', error_type: 'Error' }), {
    frame: { ...report, status: 'failed', error_type: 'Error' },
  })
  t.strictSame(read({ ...report, message_id: 'x'.repeat(129) }), {
    frame: { type: 'job.report', ...lease },
  })
  t.strictSame(read({ ...report, lease_token: 7 }), { frame: { ...report, lease_token: '' } })
  t.match(
    read({ ...report, job_id: 7 }),
    { fault: 'bad_frame', type: 'job.report', message_id: 'm' },
    'a report of nothing',
  )
})

t.test('a report that leaves the outcome open counts as a failure', async (t) => {
  for (const odd of [
    { result: 'text' },
    { status: 'completed', result: [1] },
    { status: 'done', result: {} },
    { status: 5 },
  ]) {
    t.match(
      read({ ...report, ...odd }),
      {
        frame: {
          ...report,
          status: 'failed',
          error_type: 'ResultInvalid',
          error_message: /^the report is invalid: (result|status): /,
        },
      },
      JSON.stringify(odd),
    )
  }
})

t.test('queue names in frames are well-formed Unicode', async (t) => {
  const frames = [
    { type: 'worker.register', worker_instance_id: 'box' },
    { type: 'worker.ready' },
    { type: 'jobs.claim' },
  ]
  for (const frame of frames) {
    t.match(read({ ...frame, queues: ['größe ✓', '😀', '\ufeffmail'] }), { frame })
    t.match(read({ ...frame, message_id: 'm', queues: ['mail', 'a\ud800'] }), {
      fault: 'bad_frame',
      message: /^queues\[1\]: must match .*Unicode/,
      message_id: 'm',
    })
  }
})
