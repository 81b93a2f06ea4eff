/**
 * Random histories of environments: jobs, hosts, workers, leases, faults, owner changes and time,
 * in any order. Messages may be late or repeated.
 *
 * Invariants: at most one operation and one worker exist at a time. Operation numbers, fences and
 * worker generations only grow. No job is admitted while another holder has the lease. An operation
 * is ended only by its host. A destroyed environment has no operation, worker or lease. After
 * enough time without hosts or workers, every job that is not passive has been admitted to a live
 * worker or refused.
 */
import fc from 'fast-check'
import t from 'tap'
import type { ExistingEnvironment } from '../../../protocol/environments/events.ts'
import type { Holder } from '../../../protocol/environments/schema.ts'
import { START } from '../../support/given.ts'
import {
  actor,
  created,
  type Decided,
  type Environments,
  PLACE,
  ready,
  working,
} from './support.ts'

const holders: readonly Holder[] = [
  { kind: 'agent', id: 'agt_1' },
  { kind: 'principal', id: 'user_1' },
]
const step = fc.record({
  what: fc.constantFrom(
    ...(['use', 'use', 'done', 'claim', 'claim', 'report', 'report', 'progress'] as const),
    ...(['seen', 'missing', 'exited', 'connect', 'connect', 'gone', 'acquire'] as const),
    ...(['release', 'renew', 'delete', 'start', 'run_ended', 'wake', 'recover'] as const),
  ),
  /** Index of the job, host, holder or session. */
  one: fc.nat(3),
  /** How far the sent operation number or worker generation lags behind the current one. */
  lag: fc.constantFrom(0, 0, 0, 0, 1),
  fails: fc.boolean(),
  /** Seconds that pass before the command. */
  pause: fc.constantFrom(0, 0, 1, 5, 31, 95, 4000),
})
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

const binding = { mode: 'agent', owner_id: 'agt_1' }
const session = (one: number, scene: Environments): string =>
  `wst_${one}_${scene.state?.worker.generation ?? 0}`

function perform(scene: Environments, { what, one, lag, fails }: Step, at: number): Decided {
  const operation = Math.max(0, (scene.state?.operation?.number ?? 0) - lag)
  const generation = Math.max(0, (scene.state?.worker.generation ?? 0) - lag)
  const holder = holders[one % 2]
  const host = one === 3 ? 'h1' : 'h0'
  const time = { at }
  const lease_id = scene.state?.record.lease?.id ?? 'elease_0'
  switch (what) {
    case 'use':
      return scene.when(
        'environment.use',
        { job_id: `job_${one}`, queue: '0.q', holder, ...(fails && { binding }) },
        time,
      )
    case 'done':
      return scene.when('environment.done', { job_id: `job_${one}` }, time)
    case 'claim': {
      const place = one === 3 ? 'local/2' : PLACE
      return scene.when('environment.claim', { operation, host, place, token_hash: 'h' }, time)
    }
    case 'report':
      return scene.when(
        'environment.report',
        { operation, host, outcome: fails ? 'failed' : 'done' },
        time,
      )
    case 'progress':
      return scene.when('environment.progress', { operation, host }, time)
    case 'seen':
    case 'missing':
      return scene.when(
        'environment.seen',
        {
          place: PLACE,
          host,
          presence: what === 'seen' ? 'present' : 'missing',
          ...(fails && { generation }),
        },
        time,
      )
    case 'exited':
      return scene.when('environment.exited', { place: PLACE, generation, idle: fails }, time)
    case 'connect': {
      const worker = { instance: `worker-${one % 2}`, generation }
      return scene
        .when('environment.connect', worker, time)
        .when('environment.connected', { ...worker, session: session(one % 2, scene) })
    }
    case 'gone':
      return scene.when('environment.worker_gone', { session: session(one % 2, scene) }, time)
    case 'acquire':
      return scene.when('environment.acquire', { holder, ttl_seconds: 40 }, time)
    case 'renew':
      return scene.when('environment.acquire', { lease_id, ttl_seconds: 40 }, time)
    case 'release':
      return scene.when('environment.release', { lease_id }, time)
    case 'delete':
      return scene.when('environment.delete', {}, time)
    case 'start':
      return scene.when('environment.start_worker', {}, time)
    case 'run_ended':
      return scene.when('environment.run_ended', { run_id: 'run_1', status: 'failed' }, time)
    case 'wake':
    case 'recover':
      return scene.when('wake', {}, time)
  }
}

const kept = (scene: Environments): ExistingEnvironment => scene.state as ExistingEnvironment
const same = (a: Holder, b: Holder) => a.kind === b.kind && a.id === b.id

function check(before: Environments, after: Decided, { what }: Step, at: number): void {
  const [old, now] = [kept(before), kept(after)]
  const fault = (what: string) => {
    throw new Error(`${what}: ${JSON.stringify(after.events)} → ${JSON.stringify(now)}`)
  }
  if (now.operations < old.operations) fault('an operation number went back')
  if (now.fence < old.fence) fault('a fence went back')
  if (now.worker.generation < old.worker.generation) fault('a worker number went back')
  if (now.operation && now.operation.number !== now.operations) fault('an old operation is current')
  if (old.operation && now.operation && old.operation.number !== now.operation.number) {
    const ends = after.events.some(({ type }) => type === 'environment.operation_ended')
    if (!ends) fault('an operation was replaced')
  }
  for (const event of after.events)
    if (event.type === 'environment.jobs_admitted') {
      const { lease_until, record } = now
      const foreign = (event['jobs'] as { readonly job_id: string }[]).some(({ job_id }) => {
        const holder = now.jobs[job_id]?.holder
        return (
          lease_until !== undefined &&
          holder !== undefined &&
          record.lease !== undefined &&
          !same(record.lease.holder, holder)
        )
      })
      if (foreign) fault('a job of another holder was admitted')
    }
  if (now.record.status === 'destroyed')
    if (now.operation || now.worker.state !== 'stopped' || now.lease_until !== undefined)
      fault('something of a destroyed environment is left')
  if ((now.record.lease === undefined) !== (now.lease_until === undefined))
    fault('the record does not show the lease')
  if ((now.worker.state === 'connected') !== (now.worker.session !== undefined))
    fault('a worker is connected without a session')
  if (what === 'wake' && (after.deadline() ?? Infinity) <= at)
    fault('a deadline has passed and would be woken for ever')
}

/** Wakes the environment at each deadline within one hour. No host or worker acts. */
function settle(scene: Environments, start: number): Environments {
  let [now, at] = [scene, start]
  for (let i = 0; i < 200; i++) {
    const due = now.deadline()
    if (due === undefined || due > start + 3_600_000) break
    at = Math.max(at, due)
    now = now.when('wake', {}, { at })
  }
  return now
}

t.test('the invariants of environments hold in every history', (t) => {
  let [admitted, refused, destroyed, connected] = [0, 0, 0, 0]
  fc.assert(
    fc.property(fc.nat(3), fc.array(step, { maxLength: 60 }), (start, steps) => {
      const run = { mode: 'run', run_id: 'run_1' } as const
      let scene: Environments =
        [created(run), ready(run), working(), working().when('environment.delete')][start] ??
        created(run)
      let at = START
      for (const one of steps) {
        at += one.pause * 1000
        if (one.what === 'recover')
          // A takeover restarts the timeouts for silent hosts.
          scene = {
            ...scene,
            state: actor.recover?.(scene.state as never, at) as ExistingEnvironment,
          }
        const after = perform(scene, one, at)
        check(scene, after, one, at)
        for (const { type } of after.events) {
          if (type === 'environment.jobs_admitted') admitted++
          if (type === 'environment.jobs_refused') refused++
          if (type === 'environment.destroyed') destroyed++
          if (type === 'environment.worker_connected') connected++
        }
        scene = after
      }
      const end = kept(settle(scene, at))
      if (end.worker.state !== 'connected' && end.lease_until === undefined)
        for (const job of Object.values(end.jobs))
          if (!job.refused) throw new Error(`a job waits for ever: ${JSON.stringify(end)}`)
    }),
    { numRuns: 2000, seed: 25 },
  )
  for (const [name, count] of Object.entries({ admitted, refused, destroyed, connected }))
    t.ok(count > 50, `${name}: ${count}`)
  t.end()
})
