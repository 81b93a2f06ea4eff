/**
 * The queue actor: the jobs of one queue name in one shard, waiting or under a lease. Its id is
 * `<shard>.<name>`. The shard host, gateways and executors match its jobs with workers.
 *
 * Invariants:
 * Q1. A job is in exactly one state: gated until its environment admits it (environments.ts),
 *     waiting, resting before its next attempt, under one lease, or ended. A job that was admitted
 *     is never gated again. Reports and heartbeats must present the complete lease token, so a
 *     superseded token changes nothing, except for late results (report.ts).
 * Q2. A job whose cancellation was requested is never leased again.
 * Q3. A job that returns to the queue keeps its `enqueued_at`, and therefore its place within its
 *     fairness key.
 * Q4. The state alone makes every command idempotent, so no command ids are stored.
 * Q5. Lease renewals are soft events, so a new owner assumes that every lease has its full duration
 *     left. If ownership changes repeatedly within that duration, leases are extended repeatedly.
 *     The worker's gateway may therefore report that an assumed lease has expired.
 * Q6. A lease expires when its duration has passed since its claim or its last heartbeat (`dueAt`
 *     in state.ts). `wake` then ends it, and the job gets another attempt or fails (`loseLease`).
 *     The time during which a node cannot write does not count (W5 of
 *     nodes/host/durability/write-gate.ts).
 */

import { timestamp } from '../../protocol/common.ts'
import type { QueueCommands } from '../../protocol/internal.ts'
import { leaseToken } from '../../protocol/jobs/lease-token.ts'
import type { GrantedLease, Renewal } from '../../protocol/jobs/leases.ts'
import type { QueueEvent } from '../../protocol/jobs/rows.ts'
import { matchingKeyOf } from '../../protocol/subjects.ts'
import type { WorkerTiming } from '../../protocol/workers/timing.ts'
import type { Actor } from '../actor.ts'
import { add, inOrder } from '../heap.ts'
import { leaseOf, publishArtifact } from './artifacts.ts'
import { deliveries, isObsolete, nameOf } from './deliveries.ts'
import { admit, unavailable } from './environments.ts'
import {
  cancelJob,
  type Ended,
  endRest,
  loseLease,
  mergeEnded,
  reasons,
  requeueUncounted,
} from './outcomes.ts'
import { judge } from './report.ts'
import {
  attemptsOf,
  byDue,
  dueAt,
  endPause,
  find,
  finish,
  type Held,
  initialQueue,
  isFinished,
  lease,
  pauseJob,
  type QueueState,
  restoreDueOrder,
  unlease,
} from './state.ts'
import { enter, leave, waitingJobs } from './waiting-jobs.ts'

/** Maximum number of leases and pauses that one command ends. The others end at a later wake. */
const MAX_ENDED_LEASES = 64

type Ending = { readonly id: string }

/**
 * Ends leases and pauses in order, up to `MAX_ENDED_LEASES`, or up to the first job that ends. A run
 * may react to the end of a job with hundreds of events, for example by cancelling all of its other
 * work, so one command ends only one job.
 */
function endFirst(due: Iterable<Held>, at: number): Ended {
  const ended: Ended[] = []
  for (const held of due) {
    const one = held.rest === undefined ? loseLease(held, at) : endRest(held, at)
    ended.push(one)
    if (ended.length === MAX_ENDED_LEASES || one.tells?.some(({ name }) => name === 'job.settled'))
      break
  }
  return mergeEnded(ended)
}

/** Yields the jobs whose lease or pause ends by `at`, in the order of these times. */
function* dueBy(state: QueueState, at: number): Generator<Held> {
  for (const id of inOrder(state.due, byDue, state)) {
    const held = state.jobs[id] as Held
    if (dueAt(held) > at) return
    yield held
  }
}

const unique = (ids: readonly string[]): string[] => [...new Set(ids)]
const heldOf = (state: QueueState, ids: readonly string[]): Held[] =>
  unique(ids).flatMap((id) => find(state, id) ?? [])

/**
 * Creates the queue actor.
 * @param timing lease duration and heartbeat cadence, in seconds.
 */
export function queueActor(
  timing: WorkerTiming,
): Actor<QueueState, QueueEvent, Record<never, never>, 'queue', QueueCommands> {
  const duration = timing.lease * 1000
  const end = (state: QueueState, { id }: Ending): QueueState => {
    const held = find(state, id)
    if (!held) return state
    if (held.lease) unlease(state, held, true)
    else if (held.rest !== undefined) endPause(state, held)
    else if (!held.gated) leave(state, id, false)
    finish(state, id)
    return state
  }
  return {
    kind: 'queue',
    naturallyIdempotent: true,
    initial: initialQueue,
    decide: {
      'queue.enqueue': (state, { job, record }) => ({
        events:
          find(state, job.id) || isFinished(state, job.id)
            ? []
            : [{ type: 'job.queued', id: job.id, header: job, job: record }],
        reply: undefined,
      }),
      'queue.claim': (state, { gateway, takes }, cause) => {
        const free = new Map<
          string,
          { readonly take: (typeof takes)[number]; readonly held: Held }
        >()
        for (const take of takes) {
          const held = find(state, take.job_id)
          if (held && !held.lease && !held.gated && held.rest === undefined)
            free.set(take.job_id, { take, held })
        }
        const expires_at = cause.at + duration
        const [queue, now, expiry] = [
          nameOf(cause.self),
          timestamp(cause.at),
          timestamp(expires_at),
        ]
        const events = [...free.values()].map(
          ({ take: { job_id, session, instance, served, losses = 0 }, held }): QueueEvent => ({
            type: 'job.claimed',
            id: job_id,
            header:
              losses > held.header.max_losses && !held.header.strict
                ? { ...held.header, max_losses: losses }
                : held.header,
            lease: {
              token: leaseToken(cause.secret(), queue),
              attempt: attemptsOf(held) + 1,
              session,
              instance,
              gateway,
              expires_at,
            },
            job: {
              status: 'claimed',
              claim_attempt: attemptsOf(held) + 1,
              worker_instance_id: instance,
              claimed_at: now,
              lease_expires_at: expiry,
              updated_at: now,
              ...(served && { executor_kind: 'server_worker' }),
            },
          }),
        )
        return { events, reply: { claimed: [...free.keys()] } }
      },
      'queue.report': (state, report, cause) => {
        const { outcome, events, tells = [] } = judge(state, report, cause.at)
        return { events, tells, reply: { outcome } }
      },
      'queue.heartbeat': (state, { job_id, lease_token, gateway }, cause) => {
        const held = find(state, job_id)
        if (!held?.lease || held.lease.token !== lease_token)
          return { events: [], reply: { alive: false } }
        const cancel = held.cancel && {
          requested_at: timestamp(held.cancel.at),
          ...(held.cancel.reason !== undefined && { reason: held.cancel.reason }),
        }
        return {
          events: [],
          soft: [{ type: 'lease.renewed', id: job_id, expires_at: cause.at + duration, gateway }],
          reply: { alive: true, ...(cancel && { cancel }) },
        }
      },
      'queue.cancel': (state, { job_ids, reason }, cause) => {
        const why = reason === undefined ? {} : { reason }
        const ended = heldOf(state, job_ids)
          .filter((held) => !held.cancel)
          .map((held) => {
            if (!held.lease) return cancelJob(held, cause.at, reason)
            const { gateway, session } = held.lease
            const job = { cancel_requested: true, updated_at: timestamp(cause.at) }
            const events: QueueEvent[] = [
              {
                type: 'job.cancel_requested',
                id: held.header.id,
                ...why,
                at: cause.at,
                gateway,
                session,
                job,
              },
            ]
            return { events }
          })
        return { ...mergeEnded(ended), reply: undefined }
      },
      // A heartbeat proves that the job was delivered, so only a lease without a heartbeat can be
      // released.
      'queue.release': (state, { job_id, lease_token }, cause) => {
        const held = find(state, job_id)
        const undelivered = held?.lease?.token === lease_token && !held.lease.heard
        return {
          ...(undelivered
            ? requeueUncounted(held, 'release', reasons.undelivered, cause.at)
            : { events: [] }),
          reply: undefined,
        }
      },
      'queue.lose': (state, { session, job_ids }, cause) => {
        const gone = heldOf(state, job_ids).filter((held) => held.lease?.session === session)
        const ended = endFirst(gone, cause.at)
        // Each ended lease is one event. The others expire now, so the next wakes end them.
        const soft = gone.slice(ended.events.length).flatMap(({ header: { id }, lease }) =>
          lease
            ? [
                {
                  type: 'lease.renewed' as const,
                  id,
                  expires_at: cause.at,
                  gateway: lease.gateway,
                },
              ]
            : [],
        )
        return { ...ended, soft, reply: undefined }
      },
      'queue.expire': (state, { session, job_id }, cause) => {
        const held = find(state, job_id)
        const expired = held?.lease?.session === session && held.lease.assumed
        return { ...(expired ? loseLease(held, cause.at) : { events: [] }), reply: undefined }
      },
      'queue.admit': admit,
      'queue.unavailable': unavailable,
      'job.publish_artifact': publishArtifact,
      wake: (state, _input, cause) => {
        return { ...endFirst(dueBy(state, cause.at), cause.at), reply: undefined }
      },
    },
    evolve: {
      'job.queued': (state, { id, header }) => {
        state.jobs[id] = {
          header,
          capability: matchingKeyOf(header),
          arrival: state.arrivals++,
          failures: 0,
          losses: 0,
          shutdowns: 0,
          place: 0,
          ...(header.environment && { gated: true }),
        }
        if (!header.environment) enter(state, id)
        return state
      },
      'job.admitted': (state, { id, fence }) => {
        const held = find(state, id)
        if (!held?.gated) return state
        held.header = { ...held.header, environment_fence: fence }
        delete held.gated
        enter(state, id)
        return state
      },
      'job.claimed': (state, { id, lease: grant, header }) => {
        const held = find(state, id)
        if (!held) return state
        held.header = header
        leave(state, id, true)
        lease(state, id, grant)
        return state
      },
      'job.requeued': (state, { id, counted, reason, not_before }) => {
        const held = find(state, id)
        if (!held?.lease) return state
        unlease(state, held, counted === 'failure' || counted === 'none')
        if (counted === 'failure') held.failures++
        if (counted === 'loss') held.losses++
        if (reason === reasons.shutdown) held.shutdowns++
        if (not_before === undefined) enter(state, id)
        else pauseJob(state, id, not_before)
        return state
      },
      'job.rested': (state, { id }) => {
        const held = find(state, id)
        if (held?.rest === undefined) return state
        endPause(state, held)
        enter(state, id)
        return state
      },
      'job.cancel_requested': (state, { id, at, reason }) => {
        const held = find(state, id)
        if (!held?.lease) return state
        held.cancel = { at, until: at + duration, ...(reason !== undefined && { reason }) }
        restoreDueOrder(state, held)
        return state
      },
      'job.completed': end,
      'job.failed': end,
      'job.cancelled': end,
      'lease.renewed': (state, { id, expires_at, gateway }) => {
        const held = find(state, id)
        if (!held?.lease) return state
        Object.assign(held.lease, { expires_at, gateway, heard: true })
        delete held.lease.assumed
        restoreDueOrder(state, held)
        return state
      },
    },
    react: deliveries(timing),
    isObsolete: isObsolete,
    ask: {
      /** Headers of the jobs to offer next, in order, at most `limit` per capability. */
      waiting: (state, { limit }: { readonly limit: number }) => waitingJobs(state, limit),
      /** The number of leased jobs, and the number of waiting, resting and gated jobs. */
      depth: ({ jobs, due }) => {
        const leased = due.filter((id) => jobs[id]?.lease).length
        return { waiting: Object.keys(jobs).length - leased, leased }
      },
      /** The jobs that a worker session holds, with their lease tokens. */
      leases: (state, { session }: { readonly session: string }) =>
        state.due.flatMap((job_id): GrantedLease[] => {
          const lease = find(state, job_id)?.lease
          return lease?.session === session ? [{ job_id, lease_token: lease.token }] : []
        }),
      /** The facts about a lease, for an upload by the worker that holds it. */
      lease: leaseOf,
      /** The current leases of the given jobs. */
      renewals: (state, { job_ids }: { readonly job_ids: readonly string[] }) =>
        job_ids.flatMap((job_id): Renewal[] => {
          const lease = find(state, job_id)?.lease
          if (!lease) return []
          const { expires_at, heard, assumed } = lease
          return [
            {
              job_id,
              lease_expires_at: timestamp(expires_at),
              ...(heard && !assumed && { last_heartbeat_at: timestamp(expires_at - duration) }),
            },
          ]
        }),
    },
    deadline: (state) => {
      const first = state.due[0]
      return first === undefined ? undefined : dueAt(state.jobs[first] as Held)
    },
    // All leases get the same deadline, so their order in the heap stays valid. The heap is rebuilt
    // only if it also contains resting jobs, whose deadlines do not change.
    recover: (state, at) => {
      for (const id of state.due) {
        const held = state.jobs[id] as Held
        if (held.lease) Object.assign(held.lease, { expires_at: at + duration, assumed: true })
        if (held.cancel) held.cancel.until = at + duration
      }
      if (state.due.some((id) => state.jobs[id]?.rest !== undefined))
        for (const id of state.due.splice(0)) add(state.due, id, byDue, state)
      return state
    },
  }
}
