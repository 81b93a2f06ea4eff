/** Queries to views of which one stands still. */
import t from 'tap'
import { ViewRequests } from '../../../nodes/view-requests.ts'
import { ManualClock } from '../../support/memory.ts'

const query = { name: 'run.list', project: 'prj_1', input: {} }

/** Creates the queries of a gateway. `respond` returns the answer to a request to a subject. */
function scene(live: string[], respond: (subject: string) => unknown) {
  const clock = new ManualClock()
  const sent: string[] = []
  const requests = new ViewRequests({
    node: 'g1',
    clock,
    deadline: 15_000,
    nodes: () => live,
    bus: {
      request: (subject, _message, timeout) => {
        sent.push(subject)
        const answer = respond(subject)
        if (answer !== 'timeout') return Promise.resolve(answer as 'no_responders')
        return new Promise((done) => void clock.later(timeout ?? 0, () => done('timeout')))
      },
    },
  })
  return { clock, sent, send: () => requests.send(0, query) }
}

t.test('a query that is not answered in time is repeated at another live node', async (t) => {
  const { clock, sent, send } = scene(['v1', 'v2'], (subject) =>
    subject === 'view.0-v2' ? { answer: 'rows' } : 'timeout',
  )
  const answer = send()
  await clock.advance(2000)
  await clock.advance(5000)
  t.equal(await answer, 'rows')
  t.strictSame(sent, ['view.0', 'view.0-v1', 'view.0-v2'])
})

t.test('further queries are addressed to live nodes for a while', async (t) => {
  const live = ['v1', 'v2']
  const { clock, sent, send } = scene(live, (subject) =>
    subject === 'view.0-v2' ? { answer: 'rows' } : 'timeout',
  )
  const first = send()
  live.splice(0, 1)
  await clock.advance(2500)
  t.equal(await first, 'rows')
  t.strictSame(sent.splice(0), ['view.0', 'view.0-v2'])
  t.equal(await send(), 'rows')
  t.equal(await send(), 'rows')
  t.strictSame(sent.splice(0), ['view.0-v2', 'view.0-v2'])
  await clock.advance(10_000)
  void send()
  t.strictSame(sent, ['view.0'], 'the node may have resumed')
})

t.test('any view answers when a node does not receive addressed queries', async (t) => {
  let failures = 1
  const { clock, sent, send } = scene(['old'], (subject) => {
    if (subject !== 'view.0') return 'no_responders'
    return failures-- > 0 ? 'timeout' : { answer: 'rows' }
  })
  const answer = send()
  await clock.advance(2000)
  await clock.advance(100)
  await clock.advance(100)
  t.equal(await answer, 'rows')
  t.strictSame(sent, ['view.0', 'view.0-old', 'view.0'])
})
