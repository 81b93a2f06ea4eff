/** How the errors of handlers are reported. */
import t from 'tap'
import { jobOf, stand } from './stand.ts'

t.test('an error without a message is described by the errors that it contains', async (t) => {
  const [first, second] = ['connect ECONNREFUSED ::1:1', 'connect ECONNREFUSED 127.0.0.1:1']
  const several = new AggregateError(
    [first, second, second].map((text) => new Error(text)),
    '',
  )
  const values: Record<string, Error> = {
    [`${first}; ${second}`]: several,
    ECONNREFUSED: Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
    inner: new Error('', { cause: new Error('inner') }),
    own: new AggregateError([new Error('inner')], 'own'),
    '': new Error(),
  }
  for (const [error_message, error] of Object.entries(values)) {
    const { worker, peer } = stand({ actions: { work: () => Promise.reject(error) } })
    void worker.start()
    peer().accept()
    await peer().give(jobOf('work'))
    t.match(peer().last('job.report'), { status: 'failed', error_type: error.name })
    t.equal(peer().last('job.report').error_message, error_message)
  }
})
