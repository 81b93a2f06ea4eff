/** The conditions under which the leader of a stream is asked to step down. */
import t from 'tap'
import { createLeaderStepDown } from '../../../nodes/nats/leader-stepdown.ts'
import { createNamespace } from '../../../nodes/nats/server/namespace.ts'

function given() {
  const asked: string[] = []
  const clock = { now: 0 }
  const relief = createLeaderStepDown(
    {
      ask: async (subject: string) => {
        asked.push(subject)
        return {} as never
      },
      log: { warn: () => {} } as never,
      space: createNamespace({}, 'test'),
    },
    () => clock.now,
  )
  const refuse = (stream: string, subject: string, times: number, every: number) => {
    for (let i = 0; i < times; i++, clock.now += every) relief(stream, subject)
  }
  return { asked, refuse }
}

t.test(
  'a leader that refuses one subject for seconds is asked to step down, then left alone for a while',
  async (t) => {
    const { asked, refuse } = given()
    refuse('JOURNAL_0', 'journal.0.1', 5, 400)
    t.same(asked, [], 'pending writes may take a while')
    refuse('JOURNAL_0', 'journal.0.1', 5, 400)
    t.same(asked, ['$JS.API.STREAM.LEADER.STEPDOWN.JOURNAL_0'])
    refuse('JOURNAL_0', 'journal.0.1', 10, 400)
    t.equal(asked.length, 1)
    refuse('JOURNAL_0', 'journal.0.1', 20, 500)
    t.equal(asked.length, 2)
  },
)

t.test('refusals that are scattered, rare or simultaneous cause no step-down', async (t) => {
  const { asked, refuse } = given()
  for (let i = 0; i < 20; i++) refuse('KV_STATE_0', `key-${i}`, 1, 200)
  refuse('KV_STATE_0', 'seldom', 10, 6000)
  refuse('KV_STATE_0', 'burst', 100, 10)
  t.same(asked, [])
  refuse('KV_CLUSTER', 'node', 10, 400)
  t.same(asked, ['$JS.API.STREAM.LEADER.STEPDOWN.KV_CLUSTER'], 'each stream for itself')
})
