/** Operations whose host was restarted: the only host of a place continues them under a new id. */
import t from 'tap'
import {
  claim,
  connect,
  created,
  type Environments,
  ID,
  PLACE,
  ready,
  report,
  requests,
  secondsLater,
  use,
} from './support.ts'

const claimAgain = (scene: Environments, seconds: number, more: object = { sole: true }) =>
  scene.when(
    'environment.claim',
    {
      operation: scene.state?.operation?.number ?? 0,
      host: 'h2',
      place: PLACE,
      token_hash: 'hash 2',
      ...more,
    },
    secondsLater(seconds),
  )

t.test('a claimed operation is requested again, and stays with its host', async (t) => {
  let scene: Environments = claim(created())
  t.equal(scene.state?.operation?.host, 'h1')
  for (const second of [2, 6, 14]) {
    const asked = scene.when('wake', {}, secondsLater(second))
    t.same(requests(asked), ['provision 1'], `after ${second} s`)
    t.equal(asked.state?.operation?.host, 'h1')
    scene = asked
  }
  t.match(report(scene).state?.record, { status: 'ready' }, 'the host reports the outcome')
})

t.test('a preparation that a restart interrupted is continued', async (t) => {
  const scene = claim(created())
  t.equal(claimAgain(scene, 3, {}).refused?.refused, 'conflict', 'the place may have more hosts')
  const elsewhere = claimAgain(scene, 3, { sole: true, place: 'local/2' })
  t.equal(elsewhere.refused?.refused, 'conflict', 'another place')
  const taken = claimAgain(scene, 3)
  t.match(taken.reply, { operation: 1, kind: 'provision', environment_id: ID })
  const late = taken.when('environment.report', { operation: 1, host: 'h1', outcome: 'failed' })
  t.same(late.events, [], 'the earlier process has no say')
  t.match(report(taken).state?.record, { status: 'ready', place: PLACE })
})

t.test('an interrupted start continues with a new worker', async (t) => {
  const first = claim(use(ready(), 'job_1'))
  const generation = first.state?.worker.generation ?? 0
  const taken = claimAgain(first, 5)
  t.match(taken.reply, { operation: 2, kind: 'start', worker: { generation: generation + 1 } })
  const old = { instance: 'worker-0', generation }
  t.equal(taken.when('environment.connect', old).refused?.refused, 'forbidden')
  t.equal(taken.state?.worker.token_hash, 'hash 2')
  const working = connect(report(taken))
  t.match(working.state, {
    record: { status: 'running' },
    worker: { state: 'connected', generation: generation + 1 },
    jobs: { job_1: { admitted: true } },
  })
})

t.test('the worker of an interrupted start has ended, even if it had connected', async (t) => {
  const first = connect(claim(use(ready(), 'job_1')))
  const taken = claimAgain(first, 5)
  t.match(taken.state?.worker, { state: 'starting', session: undefined })
  t.ok(
    taken.events.some(({ type }) => type === 'environment.worker_ended'),
    'the leases of its jobs end',
  )
})

t.test('an interrupted removal is continued', async (t) => {
  const scene = claim(ready().when('environment.delete', {}))
  t.same(requests(scene.when('wake', {}, secondsLater(40))), ['destroy 2'])
  const taken = claimAgain(scene, 5)
  t.match(taken.reply, { operation: 2, kind: 'destroy' })
  t.match(report(taken).state?.record, { status: 'destroyed', cleanup_status: 'succeeded' })
})
