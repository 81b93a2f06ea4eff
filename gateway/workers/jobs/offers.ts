/**
 * Subscribes to offers of jobs, and takes jobs for sessions. Each interest (project, queue,
 * capability) has one subscription, which all sessions with this interest share. `order.ts` decides
 * the order of jobs across shards, and `choice.ts` the session for which a job is taken.
 *
 * Invariants:
 * O1. A job is taken only for a session with a free slot and an open claim. A claim that is
 *     expected immediately counts as open, so that a busy worker need not wait between two claims.
 *     The slot is reserved before the offer is answered.
 * O2. A session without an open or expected claim never receives a job, only `work.available`.
 */

import { isRefusal } from '../../../protocol/errors.ts'
import type { Take } from '../../../protocol/internal.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { TransientMap } from '../../../protocol/rules/transient-map.ts'
import { matchingKeyOf } from '../../../protocol/subjects.ts'
import type { Offer, OfferReply } from '../../../protocol/workers/messages.ts'
import { andThen, type MaybePromise } from '../../maybe-promise.ts'
import { limits, type Served, type WorkerEdge } from '../edge.ts'
import { type Session, takeableJobs, takesJobs, unusedSlots } from '../session.ts'
import type { Task } from '../timer-wheel.ts'
import {
  type Candidates,
  choose,
  groupOfJob,
  hasRoom,
  matchingSubscriptions,
  openSince,
} from './choice.ts'
import { type Interest, isEligible, keyOf, type PreparedFilters } from './eligible.ts'
import { scheduleHint } from './hint.ts'
import { Order } from './order.ts'

/** A job and the session for which it is reserved. */
interface Promised {
  readonly job_id: string
  readonly session: Session
}
/** A slot of a session that is reserved for a job. */
interface Reservation extends Task {
  readonly session: Session
}
/**
 * A project's state on this gateway: its sessions by interest, its reserved jobs, and its orders.
 */
export interface OfferSubscription extends Candidates {
  /** The reserved slots by job id. A slot is freed when its task is due. */
  readonly promised: TransientMap<string, Reservation>
  /** The orders that merge the offers of several shards, by queue and capability. */
  readonly orders: Map<string, Order<JobHeader, Promised>>
  /** Time of the last announcement of demand. */
  announced: number
  /** Whether another announcement is scheduled. */
  again: boolean
}

/**
 * Updates the subscriptions of a session, and its membership in `claimants`, to match its state.
 * Must be called after every change to the session's slots, claims or filters.
 */
export function updateSubscriptions(edge: WorkerEdge, session: Session): void {
  const now = edge.world.monotonic()
  const listens = !edge.stopping && takesJobs(session) && unusedSlots(session) > 0
  const changed = !areSubscriptionsCurrent(session, listens)
  if (changed)
    listenTo(
      edge,
      session,
      listens ? [...new Set([session.wants, ...session.claims.map((claim) => claim.wants)])] : [],
    )
  const open = takeableJobs(session, now) > 0
  if (!changed && open === session.claimant) return
  session.claimant = open
  for (const listened of session.listened) {
    const { claimants } = listened
    if (open && claimants.size === 0) listened.since = now
    if (open) claimants.add(session)
    else claimants.delete(session)
  }
}

/**
 * Returns whether the subscriptions of a session are known to be up to date. For a listening
 * session with a claim that has other filters, the subscriptions are not compared, and the result
 * is false. Allocates nothing.
 */
const areSubscriptionsCurrent = (
  { listening, wants, claims }: Session,
  listens: boolean,
): boolean =>
  listens
    ? listening.length === 1 &&
      listening[0] === wants &&
      claims.every((claim) => claim.wants === wants)
    : listening.length === 0

function listenTo(edge: WorkerEdge, session: Session, wanted: readonly PreparedFilters[]): void {
  const subscription = subscriptionOf(edge, session.project)
  for (const wants of wanted)
    if (!session.listening.includes(wants))
      for (const interest of wants.interests) listen(edge, subscription, session, interest)
  for (const wants of session.listening)
    if (!wanted.includes(wants))
      for (const interest of wants.interests) unlisten(subscription, session, interest)
  session.listening = wanted
  session.listened = wanted.flatMap(({ interests }) =>
    interests.flatMap((interest) => subscription.interests.get(keyOf(interest)) ?? []),
  )
}

/**
 * Announces that workers of a project have new free slots: immediately, or as soon as
 * `limits.batch` has passed since the last announcement.
 */
function demand(edge: WorkerEdge, project: string): void {
  const subscription = subscriptionOf(edge, project)
  if (subscription.again) return
  const announce = () => {
    subscription.again = false
    subscription.announced = edge.world.monotonic()
    if (!edge.stopping) edge.world.demand(project)
  }
  const wait = subscription.announced + limits.batch - edge.world.monotonic()
  if (wait <= 0) announce()
  else {
    subscription.again = true
    edge.world.later(wait, announce)
  }
}

/**
 * Handles a change after which a session may have more slots or claims: updates its subscriptions,
 * and announces demand if jobs may be taken for it.
 */
export function handleCapacityGain(edge: WorkerEdge, session: Session): void {
  updateSubscriptions(edge, session)
  if (session.claimant) demand(edge, session.project)
}

/**
 * Answers an offer. All of its jobs have the same capability, so all of them are executed either by
 * workers or by the service itself. Returns undefined when it cannot be determined which of the two
 * applies, or when the offer is empty.
 */
function take(edge: WorkerEdge, offer: Offer): MaybePromise<OfferReply | undefined> {
  const [first] = offer.jobs
  if (!first) return undefined
  return andThen(edge.serves(offer.project, first), (served) => {
    if (isRefusal(served)) return undefined
    return served.byService
      ? { gateway: edge.world.node, takes: [], served: true }
      : takeSome(edge, offer, first, served)
  })
}

/**
 * Takes jobs for sessions. If none can be taken, the answer is `busy`, so that the shard offers the
 * jobs to another gateway.
 */
function takeSome(
  edge: WorkerEdge,
  offer: Offer,
  first: JobHeader,
  { losses }: Served,
): MaybePromise<OfferReply> {
  const subscription = subscriptionOf(edge, offer.project)
  const order = orderOf(edge, subscription, offer.queue, first)
  return andThen(order.offer(offer.source, offer.jobs, offer.ahead), ({ taken, left }) => {
    const takes: Take[] = []
    for (const { job_id, session } of taken) {
      const { id, instance } = session
      takes.push({ job_id, session: id, instance, ...(losses !== undefined && { losses }) })
      updateSubscriptions(edge, session)
    }
    if (left.length > 0) remindIdle(edge, subscription, offer.queue, left)
    return { gateway: edge.world.node, takes, ...(takes.length === 0 && { busy: true }) }
  })
}
/**
 * Returns the `Order` of the queue's jobs with the capability of `first`. Creates it if necessary.
 */
function orderOf(
  edge: WorkerEdge,
  subscription: OfferSubscription,
  queue: string,
  first: JobHeader,
): Order<JobHeader, Promised> {
  const key = keyOf({ queue, capability: matchingKeyOf(first) })
  const known = subscription.orders.get(key)
  if (known) return known
  if (subscription.orders.size >= limits.orders)
    for (const [other, { idle }] of subscription.orders) if (idle) subscription.orders.delete(other)
  const { monotonic: now, later } = edge.world
  const group = groupOfJob(queue, first)
  const order = new Order<JobHeader, Promised>({
    fits: (job) => subscription.promised.has(job.id) || hasRoom(subscription, group, job, now()),
    take: (job, again) => {
      const session =
        subscription.promised.get(job.id)?.session ??
        (again ? undefined : choose(subscription, group, job, now()))
      if (!session) return undefined
      reserve(edge, subscription, session, job.id)
      return { job_id: job.id, session }
    },
    now,
    later,
    shards: edge.world.settings.shards,
    since: () => openSince(subscription, group),
  })
  subscription.orders.set(key, order)
  return order
}
/** Sends `work.available` to the sessions without open claims that could accept one of the jobs. */
function remindIdle(
  edge: WorkerEdge,
  subscription: OfferSubscription,
  queue: string,
  left: readonly JobHeader[],
): void {
  const [first] = left
  if (!first) return
  for (const { sessions } of matchingSubscriptions(subscription, groupOfJob(queue, first))) {
    for (const session of sessions.keys())
      if (session.claims.length === 0 && left.some((job) => isEligible(job, queue, session.wants)))
        scheduleHint(edge, session)
  }
}

/**
 * Frees the slot that is reserved for a job.
 * @returns whether there was a reserved slot.
 */
export function unreserve(edge: WorkerEdge, session: Session, job_id: string): boolean {
  if (session.promised === 0) return false
  const { promised } = subscriptionOf(edge, session.project)
  const reservation = promised.get(job_id)
  if (reservation?.session !== session) return false
  edge.timerWheel.remove(reservation)
  promised.delete(job_id)
  session.promised--
  return true
}
/** Frees the reserved slots of a session. */
export function unreserveAll(edge: WorkerEdge, session: Session): void {
  if (session.promised === 0) return
  for (const job_id of subscriptionOf(edge, session.project).promised.keys())
    unreserve(edge, session, job_id)
}

function reserve(
  edge: WorkerEdge,
  subscription: OfferSubscription,
  session: Session,
  job_id: string,
): void {
  unreserve(edge, session, job_id)
  const reservation: Reservation = {
    session,
    due: () => {
      unreserve(edge, session, job_id)
      handleCapacityGain(edge, session)
    },
    round: undefined,
    place: undefined,
  }
  subscription.promised.set(job_id, reservation)
  session.promised++
  edge.timerWheel.add(limits.reservation, reservation)
}

function listen(
  edge: WorkerEdge,
  subscription: OfferSubscription,
  session: Session,
  interest: Interest,
): void {
  const key = keyOf(interest)
  let listened = subscription.interests.get(key)
  if (!listened) {
    listened = {
      sessions: new Map(),
      claimants: new Set(),
      since: 0,
      stop: edge.world.onOffer(session.project, interest.queue, interest.capability, (offer) =>
        take(edge, offer),
      ),
    }
    subscription.interests.set(key, listened)
  }
  listened.sessions.set(session, (listened.sessions.get(session) ?? 0) + 1)
}
function unlisten(subscription: OfferSubscription, session: Session, interest: Interest): void {
  const key = keyOf(interest)
  const listened = subscription.interests.get(key)
  if (!listened) return
  const count = (listened.sessions.get(session) ?? 0) - 1
  if (count > 0) listened.sessions.set(session, count)
  else {
    listened.sessions.delete(session)
    listened.claimants.delete(session)
  }
  if (listened.sessions.size > 0) return
  subscription.interests.delete(key)
  listened.stop()
}

function subscriptionOf(edge: WorkerEdge, project: string): OfferSubscription {
  const known = edge.offerSubscriptions.get(project)
  if (known) return known
  const subscription: OfferSubscription = {
    interests: new Map(),
    served: 0,
    promised: new TransientMap(),
    orders: new Map(),
    announced: 0,
    again: false,
  }
  edge.offerSubscriptions.set(project, subscription)
  return subscription
}
