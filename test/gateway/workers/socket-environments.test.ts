/** Workers of environments on the worker socket: registration, and the jobs that they accept. */
import t from 'tap'
import { isEligible, prepareFilters } from '../../../gateway/workers/jobs/eligible.ts'
import { makeId } from '../../../protocol/ids.ts'
import { header, PROJECT, scene, sessionOf, settle } from './workers.ts'

const id = (n: number) => makeId('environment', n, new Uint8Array(9).fill(n))
const ENV = id(1)
const OTHER = id(2)
const own = { environment: { id: ENV, generation: 3 } }
const codeOf = (worker: { frames: readonly object[] }) =>
  worker.frames.map((frame) => (frame as { error?: { code: string } }).error?.code)

t.test('the worker of an environment registers for its own', async (t) => {
  for (const frame of [{}, { environment_id: ENV }, { environment_id: null }]) {
    const it = scene()
    const worker = await it.worker(frame, own)
    t.same(worker.types, ['worker.registered'])
    t.strictSame(
      it.commands.map(({ name, id: to, input }) => [
        name,
        name.startsWith('environment.') ? [to, input] : undefined,
      ]),
      [
        ['environment.connect', [ENV, { instance: 'box', generation: 3 }]],
        ['worker.register', undefined],
        [
          'environment.connected',
          [ENV, { instance: 'box', session: sessionOf(it), generation: 3 }],
        ],
      ],
    )
    t.match(it.named('worker.register')[0]?.input, { environment_id: ENV })
  }
})

t.test('the worker of an environment registers for no other environment', async (t) => {
  for (const environment_id of [OTHER, 'gpu-box']) {
    const it = scene()
    const worker = await it.worker({ environment_id }, own)
    t.same(codeOf(worker), ['environment_forbidden'])
    t.match(worker.closed, { code: 1011 })
    t.same(it.commands, [])
  }
})

t.test('the worker of an environment receives only jobs that are pinned to it', async (t) => {
  const it = scene()
  const worker = await it.worker({ action_names: ['mail'] }, own)
  await worker.say({ type: 'jobs.claim', message_id: 'c', available_slots: 2 })
  t.equal(it.offer([header(1)]), undefined, 'its gateway does not listen to other jobs')
  t.equal(it.offer([header(2, { environment_id: ENV })])?.takes.length, 1)
  const wants = prepareFilters({ environment_id: ENV, pinned_only: true })
  t.notOk(isEligible(header(1), 'default', wants))
  t.notOk(isEligible(header(1, { environment_id: OTHER }), 'default', wants))
  t.ok(isEligible(header(1, { environment_id: ENV }), 'default', wants))
  t.ok(
    isEligible(header(1), 'default', prepareFilters({ environment_id: ENV })),
    'a label does not bind',
  )
})

t.test('other workers name an environment or a label', async (t) => {
  const it = scene()
  await it.worker({ environment_id: 'gpu-box' })
  t.same(
    it.commands.map(({ name }) => name),
    ['worker.register'],
  )
  const named = scene()
  await named.worker({ environment_id: ENV })
  t.strictSame(named.named('environment.connect')[0]?.input, { instance: 'box' })
  const similar = scene()
  await similar.worker({ environment_id: 'env_x' })
  t.same(
    similar.commands.map(({ name }) => name),
    ['worker.register'],
    'a label may begin like an id',
  )
})

t.test('a refusal of the environment is no reason to end the process', async (t) => {
  for (const [refused, code] of [
    ['environment_worker_conflict', 'environment_conflict'],
    ['forbidden', 'environment_forbidden'],
    ['not_found', 'environment_forbidden'],
    ['service_unavailable', 'temporarily_unavailable'],
  ] as const) {
    const it = scene()
    it.on['environment.connect'] = () => ({ refused })
    const worker = await it.worker({}, own)
    t.same(codeOf(worker), [code], refused)
    t.match(worker.closed, { code: 1011 })
    t.same(it.named('worker.register'), [])
  }
})

t.test('a worker whose environment does not answer leaves the registry again', async (t) => {
  const it = scene()
  it.on['environment.connected'] = () => ({ refused: 'service_unavailable' })
  const worker = await it.worker({}, own)
  t.same(codeOf(worker), ['temporarily_unavailable'])
  t.match(it.named('worker.closed')[0]?.input, { session: sessionOf(it), leases: 0 })
})

t.test('a session takes the jobs of an environment that it attached', async (t) => {
  const it = scene()
  const worker = await it.worker({ action_names: ['mail'] })
  await worker.say({ type: 'jobs.claim', message_id: 'c', available_slots: 2 })
  const job = header(1, { environment_id: ENV })
  t.equal(it.offer([job]), undefined)
  const message = { type: 'attach', project: PROJECT, environment_id: ENV } as const
  t.same(await it.hub.receive({ ...message, session: 'wst_unknown' }), { ok: false })
  t.same(await it.hub.receive({ ...message, session: sessionOf(it) }), { ok: true })
  await settle()
  t.equal(it.offer([job])?.takes.length, 1)
  t.equal(it.offer([header(2)])?.takes.length, 1, 'and other jobs as before')
})
