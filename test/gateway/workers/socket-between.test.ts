/** Jobs that arrive between two claims of a worker that claims continuously. */
import t from 'tap'
import { hand, header, leased, PROJECT, scene, sessionOf } from './workers.ts'

const claim = (message_id: string, available_slots = 4, more = {}) => ({
  type: 'jobs.claim',
  message_id,
  available_slots,
  ...more,
})
const ids = (jobs: readonly { readonly id: string }[] | undefined) => jobs?.map(({ id }) => id)

t.test('between two claims', async (t) => {
  const taken = (at: ReturnType<typeof scene>, n: number, more = {}) =>
    ids(at.offer([header(n, more)])?.takes.map(({ job_id }) => ({ id: job_id }))) ?? []
  /**
   * Connects a worker that claims, receives job 1, claims again after `after` milliseconds, and is
   * offered job 2. Then clears its recorded frames.
   */
  const claiming = async (after: number, slots = 3, register = {}) => {
    const at = scene()
    const worker = await at.worker({ concurrency_limit: slots, ...register })
    await worker.say(claim('a', slots))
    await hand(at, [header(1)])
    await at.clock.advance(after)
    await worker.say(claim('b', slots - 1))
    await hand(at, [header(2)])
    worker.frames.length = 0
    return { at, worker }
  }

  t.test('a worker that claims promptly gets jobs that fit, with its next claim', async (t) => {
    const { at, worker } = await claiming(5)
    t.same(taken(at, 3), [header(3).id])
    t.same(taken(at, 4), [], 'three slots are three jobs')
    void at.hub.receive({
      type: 'assign',
      project: PROJECT,
      session: sessionOf(at),
      job: leased(header(3)),
    })
    t.same(worker.of('jobs.claimed'), [], 'nothing is answered that was not asked')
    await worker.say(claim('c', 1))
    t.same(
      worker.of('jobs.claimed').map(({ message_id, jobs }) => [message_id, ids(jobs)]),
      [['c', [header(3).id]]],
    )
  })
  t.test('a worker that claims late or falls silent gets nothing', async (t) => {
    t.same(taken((await claiming(60)).at, 3), [])
    const { at } = await claiming(5)
    await at.clock.advance(60)
    t.same(taken(at, 3), [])
  })
  t.test('a worker that reports its only job can get another', async (t) => {
    const at = scene()
    const worker = await at.worker({ concurrency_limit: 1 })
    const report = (n: number) =>
      worker.say({
        type: 'job.report',
        job_id: header(n).id,
        lease_token: leased(header(n)).lease_token,
      })
    for (const n of [1, 2]) {
      await worker.say(claim(`${n}`, 1))
      await hand(at, [header(n)])
      at.on['queue.report'] = () => (n === 1 ? { outcome: 'accepted' } : new Promise(() => {}))
      await report(n)
    }
    t.same(taken(at, 3), [header(3).id], 'before the report is decided')
    t.same(taken(at, 4), [], 'and only one job')
    await report(2)
    t.same(taken(at, 4), [], 'also when it reports again')
  })
  t.test('a failed job that returns before its report is decided occupies a slot', async (t) => {
    const at = scene()
    const worker = await at.worker({ concurrency_limit: 1 })
    const report = (attempt: number) =>
      worker.say({
        type: 'job.report',
        job_id: header(1).id,
        lease_token: leased(header(1), 'default', attempt).lease_token,
        status: 'failed',
      })
    await worker.say(claim('a', 1))
    await hand(at, [header(1)])
    let decide = (_: object): void => {}
    at.on['queue.report'] = () => new Promise<object>((done) => (decide = done))
    await report(1)
    await worker.say(claim('b', 1))
    t.same(taken(at, 1), [header(1).id], 'the queue offers the next attempt')
    void at.hub.receive({
      type: 'assign',
      project: PROJECT,
      session: sessionOf(at),
      job: leased(header(1), 'default', 2),
    })
    decide({ outcome: 'accepted' })
    await at.clock.advance(1)
    t.same(ids(worker.of('jobs.claimed').at(-1)?.jobs), [header(1).id], 'it is delivered')
    await worker.say(claim('c', 1))
    t.same(taken(at, 2), [], 'the only slot is in use')
    await report(2)
    t.same(taken(at, 2), [header(2).id], 'until the new attempt is reported, too')
  })
  t.test('only jobs that match the last claim are taken', async (t) => {
    const at = scene()
    const worker = await at.worker({ concurrency_limit: 3 })
    for (const id of ['a', 'b']) {
      await worker.say(claim(id, 3, { queues: ['fast'] }))
      at.offer([header(id === 'a' ? 1 : 2)], 'fast')
      void at.hub.receive({
        type: 'assign',
        project: PROJECT,
        session: sessionOf(at),
        job: leased(header(id === 'a' ? 1 : 2), 'fast'),
      })
    }
    t.same(taken(at, 3), [])
    t.same(ids(at.offer([header(4)], 'fast')?.takes.map(({ job_id }) => ({ id: job_id }))), [
      header(4).id,
    ])
  })
})
