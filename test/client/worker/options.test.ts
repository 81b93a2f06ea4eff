/** Workers whose options cannot be used or are rejected by the service. */
import t from 'tap'
import { jobOf, settled, stand } from './stand.ts'

t.test('a worker with an address or a key that cannot be used is not created', async (t) => {
  for (const url of ['127.0.0.1:8080', 'nonsense', 'ftp://a.test', 'http://a.test#x'])
    for (const urls of [url, ['http://a.test', url]])
      t.throws(() => stand({ url: urls, actions: {} }), {
        name: 'WorkerError',
        code: 'invalid_options',
        message: url,
      })
  for (const key of ['bat_secret\n', 'bat_\u0000', 'bat_sécret', 'bat_🔑']) {
    const error = t.throws(() => stand({ key, actions: {} }), { code: 'invalid_options' })
    t.notMatch(String(error), 'bat_')
  }
  for (const url of ['http://a.test/', 'HTTPS://a.test/base', 'ws://a.test', 'wss://a.test'])
    t.doesNotThrow(() => stand({ url, key: '', actions: {} }))
})

t.test('files are published over HTTP, whatever scheme the address has', async (t) => {
  const asked: string[] = []
  t.intercept(globalThis, 'fetch', {
    value: async (url: string) => {
      asked.push(url)
      return new Response('{"id":"art_1","name":"a","mime_type":"b","size_bytes":1}', {
        status: 201,
        headers: { 'content-type': 'application/json' },
      })
    },
  })
  for (const url of ['ws://a.test', 'WSS://a.test/base', 'https://a.test']) {
    const { worker, peer } = stand({
      url,
      actions: { work: (_, { publish }) => publish(Buffer.from('x'), { name: 'a' }) },
    })
    void worker.start()
    peer().accept()
    await peer().give(jobOf('work'))
    await settled()
    t.match(peer().last('job.report').result, { type: 'artifact', id: 'art_1' })
  }
  t.strictSame(asked, [
    'http://a.test/v1/projects/default/artifacts',
    'httpS://a.test/base/v1/projects/default/artifacts',
    'https://a.test/v1/projects/default/artifacts',
  ])
})

t.test('a worker ends when a socket cannot be created', async (t) => {
  const { clock, worker, peers, peer } = stand(
    { url: ['http://a.test', 'http://b.test'], actions: {} },
    (url) => {
      if (url.includes('b.test')) throw new SyntaxError('Invalid URL')
    },
  )
  const started = worker.start()
  const rejected = t.rejects(started, {
    name: 'WorkerError',
    code: 'refused',
    message: /b\.test.*Invalid URL/,
  })
  peer().events.refused(0, 'ECONNREFUSED')
  await clock.pass(60_000)
  await rejected
  t.match(await worker.ended, { reason: 'failed' })
  t.equal(peers.length, 1)
  t.equal(clock.timers, 0)
  const first = stand({ actions: {} }, () => {
    throw new SyntaxError('Invalid URL')
  })
  await t.rejects(first.worker.start(), { code: 'refused' })
  t.equal(first.clock.timers, 0)
})

t.test('a registration that the service cannot accept ends the worker', async (t) => {
  for (const code of ['bad_frame', 'unknown_frame', 'payload_too_large'] as const) {
    const { clock, worker, peers, peer } = stand({ queues: [''], actions: {} })
    const started = worker.start()
    peer().events.opened()
    peer().say({ type: 'error', error: { code, message: 'queues[0]: must not be empty' } })
    await t.rejects(started, {
      name: 'WorkerError',
      code,
      message: /registration: queues\[0\]: must not be empty\. Correct/,
    })
    t.match(await worker.ended, { reason: 'failed', error: { code } })
    await clock.pass(60_000)
    t.equal(peers.length, 1)
    t.equal(clock.timers, 0)
  }
})

t.test('a worker that was registered before repeats a rejected registration', async (t) => {
  const { clock, worker, peers, peer } = stand({ actions: { send: () => ({}) } })
  void worker.start()
  peer().accept()
  peer().events.closed(1012, '')
  await clock.pass(100)
  peer().events.opened()
  peer().say({ type: 'error', error: { code: 'bad_frame', message: 'leases: unknown' } })
  await clock.pass(1000)
  t.equal(peers.length, 3)
  peer().accept()
  t.equal(peer().all('jobs.claim').length, 1)
})

t.test('a worker without actions claims no jobs, and returns one that it receives', async (t) => {
  const { clock, worker, peer } = stand({ actions: {} })
  void worker.start()
  peer().accept()
  peer().say({ type: 'work.available' })
  await clock.pass(20_000)
  t.equal(peer().last('worker.register').available_slots, 0)
  t.strictSame(peer().all('jobs.claim'), [])
  peer().say({ type: 'jobs.claimed', jobs: [jobOf('send')] })
  await settled()
  t.match(peer().last('job.report'), { status: 'failed', error_type: 'WorkerOverCapacity' })
  peer().acknowledge()
  t.match(await worker.drain(), { reason: 'drained' })
})

t.test('a worker without a key sends no credential', async (t) => {
  for (const [key, headers] of [
    ['', {}],
    ['bat_k', { authorization: 'Bearer bat_k' }],
  ] as const) {
    const { worker, peer } = stand({ key, actions: {} })
    void worker.start()
    t.strictSame(peer().headers, headers)
  }
})
