/** The environment actor, command by command. */
import t from 'tap'
import { START } from '../../support/given.ts'
import {
  agent,
  asked,
  claim,
  connect,
  created,
  done,
  ID,
  other,
  PLACE,
  ready,
  report,
  requests,
  secondsLater,
  settings,
  use,
  working,
} from './support.ts'

t.test('an environment is prepared by the host that claims it first', async (t) => {
  const first = created({ name: 'box' })
  t.same(requests(first), ['provision 1'])
  t.equal(first.state?.record.status, 'provisioning')
  const claimed = claim(first)
  t.match(claimed.reply, { kind: 'provision', environment_id: ID })
  t.equal(claim(claimed, 'h2').refused?.refused, 'conflict', 'another host')
  t.match(claim(claimed).reply, { operation: 1 }, 'the same host again')
  const late = claimed.when('environment.report', { operation: 1, host: 'h2', outcome: 'failed' })
  t.same(late.events, [], 'only the host that claimed it may report')
  const finished = report(claimed)
  t.match(finished.state?.record, { status: 'ready', place: PLACE })
  t.equal(finished.state?.operation, undefined)
})

t.test('an environment that no host prepares fails and names the missing role', async (t) => {
  let scene = created()
  t.ok((scene.deadline() ?? 0) <= START + 2000)
  scene = scene.when('wake', {}, secondsLater(2))
  t.same(requests(scene), ['provision 1'], 'the same operation is requested again')
  scene = use(scene, 'job_1')
  t.same(asked(scene, 'queue.unavailable'), [], 'the job waits while it is prepared')
  scene = scene.when('wake', {}, { at: START + settings.provision_ms })
  t.match(scene.state?.record, { status: 'failed', error: /role "hosts"/ })
  t.same(asked(scene, 'queue.unavailable'), ['job_1'])
})

t.test('a host that dies while it prepares is replaced, at another place', async (t) => {
  const claimed = claim(created())
  const kept = claimed
    .when('environment.progress', { operation: 1, host: 'h1' }, secondsLater(60))
    .when('wake', {}, secondsLater(100))
  t.equal(kept.state?.operation?.number, 1, 'a host that reports progress keeps it')
  const lost = claimed.when('wake', {}, secondsLater(91))
  t.same(requests(lost), ['provision 2'])
  t.equal(lost.state?.record.place, undefined)
  const moved = claim(lost, 'h2', 'local/2')
  t.equal(moved.state?.record.place, 'local/2')
  const stale = moved.when('environment.report', { operation: 1, host: 'h1', outcome: 'done' })
  t.same(stale.events, [])
  const leftover = moved.when('environment.seen', {
    place: PLACE,
    host: 'h1',
    presence: 'present',
  })
  t.same(leftover.reply, { expected: false }, 'the first host removes what it has')
})

t.test('a job has the worker started, is admitted, and ends', async (t) => {
  const waiting = use(ready(), 'job_1')
  t.same(asked(waiting, 'queue.admit'), ['job_1'])
  t.same(requests(waiting), ['start 2'])
  t.equal(waiting.state?.record.status, 'running')
  const task = claim(waiting)
  t.match(task.reply, { kind: 'start', worker: { generation: 1 } })
  t.match(task.ask('credential', { token_hash: 'hash' }), { environment_id: ID, generation: 1 })
  t.equal(task.ask('credential', { token_hash: 'wrong' }), null)
  const live = connect(report(task))
  t.match(live.state?.record, { current_worker_session_id: 'wst_1' })
  t.equal(live.state?.worker.wanted, undefined)
  const second = use(live, 'job_2')
  t.same(requests(second), [], 'the worker is there')
  t.same(use(second, 'job_2').events, [], 'a repeat')
  const last = done(done(second, 'job_1'), 'job_2')
  t.equal(last.state?.record.status, 'ready')
  t.equal(last.deadline(), START + 90_000, 'only the place is watched')
  t.same(done(last, 'job_1').events, [], 'a repeat')
})

t.test('jobs fail when no worker comes, and only after it was started', async (t) => {
  let scene = use(ready(), 'job_1')
  t.same(requests(scene), ['start 2'])
  scene = report(claim(scene), 'failed')
  t.equal(scene.state?.record.error, 'The disk is full.')
  t.same(asked(scene, 'queue.unavailable'), [])
  scene = scene.when('wake', {}, secondsLater(1))
  t.same(requests(scene), ['start 3'], 'after a pause')
  scene = scene.when('wake', {}, { at: START + settings.wake_ms })
  t.same(asked(scene, 'queue.unavailable'), ['job_1'])
  t.equal(scene.state?.worker.state, 'stopped')
  t.equal(Object.keys(scene.state?.jobs ?? {}).length, 1, 'until the queue reports its end')
  t.same(requests(scene.when('wake', {}, secondsLater(200))), [], 'the failed job starts nothing')
})

t.test('a passive job starts nothing and waits', async (t) => {
  const scene = use(ready(), 'job_1', agent, { passive: true })
  t.same(requests(scene), [])
  const later = scene.when('wake', {}, secondsLater(80))
  t.same(asked(later, 'queue.unavailable'), [])
})

t.test('a worker that ends itself is started again for the next job', async (t) => {
  const idle = done(working(), 'job_1').when('environment.exited', {
    place: PLACE,
    generation: 1,
    idle: true,
  })
  t.match(idle.state?.worker, { state: 'stopped', failures: 0 })
  t.equal(idle.state?.record.current_worker_session_id, undefined)
  const next = use(idle, 'job_2')
  t.same(requests(next), ['start 3'])
  t.equal(next.state?.worker.generation, 2)
})

t.test('the leases of a worker that is gone end, and it is superseded', async (t) => {
  const gone = working().when('environment.exited', {
    place: PLACE,
    generation: 1,
    idle: false,
    exit_code: 137,
    error: 'The worker was killed.',
  })
  t.match(gone.effects, [{ tell: { name: 'queue.lose', input: { session: 'wst_1' } } }])
  const again = gone.when('wake', {}, secondsLater(1))
  t.same(requests(again), ['start 3'])
  const old = { instance: 'worker-1', generation: 1 }
  t.equal(again.when('environment.connect', old).refused?.refused, 'forbidden')
  const late = again.when('environment.connected', { ...old, session: 'wst_9' })
  t.equal(late.state?.worker.session, undefined)
  const stale = again.when('environment.exited', { place: PLACE, generation: 1, idle: true })
  t.same(stale.events, [], 'a late report about the previous worker')
})

t.test('two workers never serve one environment', async (t) => {
  const second = { instance: 'worker-2', generation: 1 }
  t.equal(
    working().when('environment.connect', second).refused?.refused,
    'environment_worker_conflict',
  )
  const own = working().when('environment.connect', { instance: 'worker-1', generation: 1 })
  t.same(own.events, [], 'the same worker connects again')
  const stranger = working().when('environment.connect', { instance: 'x' })
  t.equal(stranger.refused?.refused, 'forbidden', 'a worker that no host started')
})

t.test('a lease keeps the jobs of others out', async (t) => {
  const leased = ready().when('environment.acquire', { holder: agent, ttl_seconds: 20 })
  t.match(leased.reply, { lease: { holder: agent }, environment: { status: 'ready' } })
  t.equal(leased.state?.fence, 1)
  const foreign = use(leased, 'job_1', other)
  t.same(asked(foreign, 'queue.admit'), [])
  const own = use(foreign, 'job_2', agent)
  t.match(
    own.effects.find((effect) => 'tell' in effect),
    { tell: { name: 'queue.admit', input: { job_ids: ['job_2'], fence: 1 } } },
  )
  const taken = foreign.when('environment.acquire', { holder: other })
  t.match(taken.refused, { refused: 'environment_leased', details: { holder: agent } })
  const { id } = leased.state?.record.lease ?? {}
  const kept = foreign
    .when('environment.acquire', { lease_id: id, ttl_seconds: 20 }, secondsLater(10))
    .when('wake', {}, secondsLater(25))
  t.equal(kept.state?.record.lease?.id, id, 'a renewed lease')
  t.equal(kept.state?.fence, 1)
  t.same(asked(kept.when('wake', {}, secondsLater(30)), 'queue.admit'), ['job_1'], 'expired')
  const released = foreign.when('environment.release', { lease_id: id })
  t.same(asked(released, 'queue.admit'), ['job_1'])
  t.notOk(released.when('environment.release', { lease_id: id }).refused, 'a repeat')
  const late = released.when('environment.acquire', { lease_id: id })
  t.equal(late.refused?.refused, 'lease_lost')
  const busy = released.when('environment.acquire', { holder: agent })
  t.match(busy.refused, { refused: 'environment_leased', details: { holder: other } })
})

t.test('a deleted environment is torn down, and a failed teardown is repeated', async (t) => {
  const deleted = use(working(), 'job_2').when('environment.delete')
  t.match(deleted.reply, { status: 'destroying', cleanup_status: 'pending' })
  t.same(asked(deleted, 'queue.cancel').sort(), ['job_1', 'job_2'])
  t.same(requests(deleted), ['destroy 3'])
  const failed = report(claim(deleted), 'failed')
  t.match(failed.state?.record, { status: 'failed', cleanup_status: 'failed' })
  const again = failed.when('wake', {}, secondsLater(30))
  t.same(requests(again), ['destroy 4'], 'the teardown is repeated')
  const gone = report(claim(again))
  t.match(gone.state?.record, { status: 'destroyed', cleanup_status: 'succeeded' })
  t.match(gone.tells, [{ to: { id: 'evn_1' }, name: 'environment_name.keep' }])
  t.match(gone.when('environment.delete').reply, { status: 'destroyed' })
  const job = use(gone, 'job_3')
  t.same(asked(job, 'queue.unavailable'), ['job_3'])
  t.same(created().when('environment.delete').state?.record.status, 'destroyed', 'nowhere yet')
})

t.test('each job that waits in a deleted environment gets a separate command', async (t) => {
  const held = ready().when('environment.acquire', { holder: other })
  const waiting = ['job_1', 'job_2', 'job_3'].reduce((scene, job) => use(scene, job), held)
  const { effects } = waiting.when('environment.delete', {})
  t.match(
    effects.filter((effect) => 'tell' in effect),
    ['job_1', 'job_2', 'job_3'].map((job) => ({ tell: { input: { job_ids: [job] } } })),
  )
})

t.test('the environment of a run ends with the run', async (t) => {
  const binding = { mode: 'run' as const, owner_id: 'run_1' }
  const bound = (retention_policy?: string) =>
    report(
      claim(
        use(created().when('environment.delete'), 'job_1', agent, {
          binding: { ...binding, ...(retention_policy && { retention_policy }) },
        }),
      ),
    )
  const ended = (scene: ReturnType<typeof bound>, status: string) =>
    done(scene, 'job_1').when('environment.run_ended', { run_id: 'run_1', status })
  t.match(bound().state?.record, { mode: 'run', lifetime: 'run', run_id: 'run_1' })
  t.equal(ended(bound(), 'completed').state?.record.status, 'destroying')
  t.equal(ended(bound(), 'failed').state?.record.status, 'destroying')
  t.equal(ended(bound('retain_on_failure'), 'completed').state?.record.status, 'destroying')
  const retained = ended(bound('retain_on_failure'), 'failed')
  t.equal(retained.state?.record.status, 'retained')
  const seen = { place: PLACE, host: 'h1', presence: 'present' }
  const week = { at: START + settings.retain_ms }
  t.equal(
    retained.when('environment.seen', seen, week).state?.record.status,
    'destroying',
    'after the time of retention',
  )
  const strange = bound().when('environment.run_ended', { run_id: 'run_2', status: 'completed' })
  t.same(strange.events, [], 'another run')
})

t.test('a request is repeated immediately when its place reports again', async (t) => {
  const seen = { place: PLACE, host: 'h1', presence: 'present' }
  // An unclaimed request is repeated after pauses of 2, 4, 8 and 16 s.
  let scene = use(ready(), 'job_1')
  for (const second of [2, 6, 14]) scene = scene.when('wake', {}, secondsLater(second))
  t.same(requests(scene.when('wake', {}, secondsLater(15))), [], 'the next request is at 30 s')
  const back = scene.when('environment.seen', seen, secondsLater(16))
  t.same(requests(back), ['start 2'], 'the same operation')
  t.same(requests(back.when('environment.seen', seen, secondsLater(16.5))), [], 'not twice')
  t.same(requests(scene.when('environment.seen', { ...seen, place: 'local/2' })), [])

  const claimed = claim(use(ready(), 'job_1'))
  const early = claimed.when('environment.seen', seen, secondsLater(4))
  t.equal(early.state?.operation?.host, 'h1', 'the report may be older than the claim')
  const other = claimed.when('environment.seen', { ...seen, host: 'h2' }, secondsLater(10))
  t.equal(other.state?.operation?.host, 'h1', 'another host of the place')
  const lost = claimed.when('environment.seen', seen, secondsLater(10))
  t.equal(lost.state?.operation, undefined, 'the host has restarted')
  t.same(requests(lost.when('wake', {}, secondsLater(11))), ['start 3'])
  t.same(asked(lost, 'queue.unavailable'), [], 'the job waits')
})

t.test('a job creates its environment at the provider for which the name stands', async (t) => {
  const at = (provider?: string) =>
    use(created().when('environment.delete'), 'job_1', agent, {
      binding: { mode: 'agent', owner_id: 'agt_1', ...(provider && { provider }) },
    }).state?.record.provider
  t.equal(at('sprites'), settings.aliases['sprites'])
  t.equal(at(), settings.default_provider)
  for (const name of ['docker', 'constructor']) t.equal(at(name), name)
})

t.test('the environment of an agent is created again under its id', async (t) => {
  const binding = {
    mode: 'agent',
    owner_id: 'agt_1',
    repositories: [{ full_name: 'a/b', push: false }],
  }
  const first = report(
    claim(use(created().when('environment.delete'), 'job_1', agent, { binding })),
  )
  t.match(first.state?.record, { mode: 'agent', lifetime: 'lease', status: 'running' })
  t.equal(first.state?.worker.generation, 1)
  const more = use(first, 'job_2', agent, {
    binding: { ...binding, repositories: [{ full_name: 'a/b', push: true }] },
  })
  t.match(more.state?.record.repositories, [{ full_name: 'a/b', push: true }])
  const gone = report(claim(more.when('environment.delete')))
  const again = report(claim(use(gone, 'job_3', agent, { binding })))
  t.equal(again.state?.record.status, 'running')
  t.equal(again.state?.worker.generation, 2, 'numbers continue')
  t.match(again.state?.record.repositories, [{ full_name: 'a/b', push: false }])
})

t.test('a job of an environment that never existed fails and leaves nothing', async (t) => {
  const none = created().when('environment.delete')
  t.ok(none)
  const { given } = await import('../../support/given.ts')
  const { actor } = await import('./support.ts')
  const scene = given<null>(actor).when('environment.use', {
    job_id: 'job_1',
    queue: '0.default',
    holder: agent,
  })
  t.match(scene.effects, [
    { tell: { name: 'queue.unavailable', input: { error_type: 'not_found' } } },
  ])
  t.equal(scene.state, null)
  t.same(scene.when('environment.done', { job_id: 'job_1' }).events, [])
})

t.test('an environment whose place is silent is orphaned until it is seen', async (t) => {
  const seen = { place: PLACE, host: 'h1', presence: 'present', generation: 1 }
  const heard = working().when('environment.seen', seen, secondsLater(60))
  t.same(heard.events, [], 'no commit for a sign of life')
  t.equal(heard.when('wake', {}, secondsLater(100)).state?.record.status, 'running')
  const silent = heard.when('wake', {}, secondsLater(150))
  t.equal(silent.state?.record.status, 'orphaned')
  const back = silent.when('environment.seen', seen, secondsLater(160))
  t.equal(back.state?.record.status, 'running')
  const missing = working().when('environment.seen', { ...seen, presence: 'missing' })
  t.equal(missing.state?.record.status, 'orphaned')
  t.match(missing.effects, [{ tell: { name: 'queue.lose' } }])
  const restarted = working().when(
    'environment.seen',
    { place: PLACE, host: 'h1', presence: 'present' },
    secondsLater(6),
  )
  t.equal(restarted.state?.worker.state, 'stopped', 'a host that restarted has no worker')
})

t.test('start_worker starts one worker, or answers the live one', async (t) => {
  const asleep = ready().when('environment.start_worker', { keep_warm: 'forever' })
  t.match(asleep.reply, { started: true, environment: { id: ID } })
  t.same(requests(asleep), ['start 2'])
  const second = asleep.when('environment.start_worker')
  t.same(requests(second), [], 'one worker')
  const task = claim(second)
  t.match(task.reply, { worker: { keep_warm: 'forever', generation: 1 } })
  const live = connect(report(task))
  t.match(live.when('environment.start_worker').reply, {
    started: false,
    worker_session_id: 'wst_1',
  })
  const crashed = live.when('environment.exited', { place: PLACE, generation: 1, idle: false })
  t.same(requests(crashed.when('wake', {}, secondsLater(1))), ['start 3'], 'it is kept awake')
  const destroyed = created().when('environment.delete').when('environment.start_worker')
  t.equal(destroyed.refused?.refused, 'environment_not_ready')
  const wrong = ready().when('environment.start_worker', { keep_warm: 'soon' })
  t.match(wrong.refused, { details: { fields: [{ field: 'keep_warm', actual: 'soon' }] } })
  for (const keep_warm of ['', '5m', 'Always'])
    t.match(ready().when('environment.start_worker', { keep_warm }).reply, { started: true })
})

t.test('an attached environment follows its worker', async (t) => {
  const worker = { session: 'wst_1', instance: 'laptop' }
  const attached = created({ provider: 'worker', name: 'mine' }).when(
    'environment.reattach',
    worker,
  )
  t.match(attached.state?.record, { status: 'ready', current_worker_session_id: 'wst_1' })
  t.same(requests(attached), [])
  t.equal(
    attached.when('environment.connect', { instance: 'y' }).refused?.refused,
    'environment_worker_conflict',
  )
  const lost = use(attached, 'job_1').when('environment.worker_gone', { session: 'wst_1' })
  t.equal(lost.state?.record.status, 'orphaned')
  t.match(lost.effects, [{ tell: { name: 'queue.lose' } }])
  const back = lost.when('environment.reattach', { ...worker, session: 'wst_2' })
  t.match(back.state?.record, { status: 'running', current_worker_session_id: 'wst_2' })
  const abandoned = done(lost, 'job_1').when('wake', {}, secondsLater(24 * 3600 + 1))
  t.match(abandoned.state?.record, { status: 'destroyed', cleanup_status: 'skipped' })
  const removed = attached.when('environment.delete')
  t.match(removed.state?.record, { status: 'destroyed', cleanup_status: 'skipped' })
})

t.test('clients change scope, owner and tags', async (t) => {
  const scene = ready({ name: 'box', owned_by: 'user_1' })
  const changed = scene.when('environment.update', { scope: 'owner', tags: { team: 'a' } })
  t.match(changed.events, [{ changes: { scope: { to: 'owner' }, tags: { to: { team: 'a' } } } }])
  t.match(changed.tells, [{ name: 'environment_name.keep', input: { key: 'owner/user_1' } }])
  t.same(changed.when('environment.update', { tags: { team: 'a' } }).events, [])
  const cleared = changed.when('environment.update', { scope: null, tags: {} })
  t.notOk(cleared.state?.record.scope ?? cleared.state?.record.tags)
})
