/**
 * Subscribes to offers of jobs, and takes jobs for sessions. Each interest (project, queue,
 * capability) has one subscription, which all sessions with this interest share. An offer is
 * matched against all sessions with a matching interest, regardless of the subscription that
 * received it. `order.ts` decides the order of jobs across shards.
 *
 * Invariants:
 * O1. A job is taken only for a session that has a free slot and either an open claim or a next
 *     claim that is expected immediately. So a busy worker need not wait between two claims. The
 *     slot is reserved before the offer is answered.
 * O2. A session without an open or expected claim never receives a job, only `work.available`.
 * O3. Of the sessions for which a job may be taken, the least recently served one receives it.
 * O4. The cost of an offer does not depend on the number of sessions without a matching interest.
 */

import { isRefusal } from '../../../protocol/errors.ts'
import type { Take } from '../../../protocol/internal.ts'
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { lineOf, offerCapability } from '../../../protocol/subjects.ts'
import type { Offer, Taking } from '../../../protocol/workers/messages.ts'
import { andThen, type MaybePromise } from '../../maybe-promise.ts'
import { type Edge, limits, type Served } from '../edge.ts'
import { claims, free, freeSlots, type Session, takes } from '../session.ts'
import { eligible, type Interest, type Wants } from './eligible.ts'
import { remind } from './hint.ts'
import { Order } from './order.ts'

/** The subscription of one interest, and the sessions with free slots that have this interest. */
interface Listened {
  /** For each session, the number of its filters that contain this interest. */
  readonly sessions: Map<Session, number>
  /** The sessions for which jobs may be taken, the least recently served first. */
  readonly claimants: Set<Session>
  /** The time at which `claimants` last became non-empty, in Unix milliseconds. */
  since: number
  readonly stop: () => void
}
/** A job and the session for which it is reserved. */
interface Promised {
  readonly job_id: string
  readonly session: Session
}
/** The sessions of one project on this gateway, and their interests. */
export interface OfferSubscription {
  readonly interests: Map<string, Listened>
  /**
   * Counts how many times a session was chosen for a job. The chosen session stores the new count
   * in its own `served`.
   */
  served: number
  /** The sessions for which jobs are reserved, by job id. */
  readonly promised: Map<string, Session>
  /** The orders that merge the offers of several shards, by queue and capability. */
  readonly orders: Map<string, Order<JobHeader, Promised>>
  /**
   * `announced` is the time of the last announcement of demand. `again` is true while another
   * announcement is scheduled.
   */
  announced: number
  again: boolean
}

/**
 * Updates the subscriptions of a session, and its membership in `claimants`, to match its state.
 * Must be called after every change of the session's slots, claims or filters.
 */
export function settle(edge: Edge, session: Session): void {
  const subscription = subscriptionOf(edge, session.project)
  const listens = !edge.stopping && takes(session) && free(session) > 0
  if (!settled(session, listens))
    listenTo(
      edge,
      subscription,
      session,
      listens ? [...new Set([session.wants, ...session.claims.map((claim) => claim.wants)])] : [],
    )
  const open = freeSlots(session, edge.world.now()) > 0
  for (const listened of listenedBy(subscription, session)) {
    const { claimants } = listened
    if (open && claimants.size === 0) listened.since = edge.world.now()
    if (open) claimants.add(session)
    else claimants.delete(session)
  }
}

function* listenedBy(subscription: OfferSubscription, session: Session): Generator<Listened> {
  for (const wants of session.listening) {
    for (const interest of wants.interests) {
      const listened = subscription.interests.get(keyOf(interest))
      if (listened) yield listened
    }
  }
}
/** Returns the subscriptions that match an offer. All jobs of an offer have the same capability. */
function listenedFor(subscription: OfferSubscription, { queue, jobs: [first] }: Offer): Listened[] {
  if (!first) return []
  const capability = offerCapability(first)
  return [{ queue, capability }, { queue }, { capability }, {}].flatMap(
    (interest) => subscription.interests.get(keyOf(interest)) ?? [],
  )
}

/**
 * Returns whether the subscriptions of a session are certainly up to date, without allocating.
 * Returns false for a listening session that has a claim with different filters.
 */
const settled = ({ listening, wants, claims }: Session, listens: boolean): boolean =>
  listens
    ? listening.length === 1 &&
      listening[0] === wants &&
      claims.every((claim) => claim.wants === wants)
    : listening.length === 0

function listenTo(
  edge: Edge,
  subscription: OfferSubscription,
  session: Session,
  wanted: readonly Wants[],
): void {
  for (const wants of wanted)
    if (!session.listening.includes(wants))
      for (const interest of wants.interests) listen(edge, subscription, session, interest)
  for (const wants of session.listening)
    if (!wanted.includes(wants))
      for (const interest of wants.interests) unlisten(subscription, session, interest)
  session.listening = wanted
}

/**
 * Announces that workers of a project have new free slots: at once, or as soon as `limits.batch`
 * has passed since the last announcement.
 */
function demand(edge: Edge, project: string): void {
  const subscription = subscriptionOf(edge, project)
  if (subscription.again) return
  const announce = () => {
    subscription.again = false
    subscription.announced = edge.world.now()
    if (!edge.stopping) edge.world.demand(project)
  }
  const wait = subscription.announced + limits.batch - edge.world.now()
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
export function gained(edge: Edge, session: Session): void {
  settle(edge, session)
  if (freeSlots(session, edge.world.now()) > 0) demand(edge, session.project)
}

/**
 * Answers an offer. All of its jobs have the same capability, so all of them are executed either by
 * workers or by the service itself. Returns undefined when this cannot be determined, or when the
 * offer is empty.
 */
function take(edge: Edge, offer: Offer): MaybePromise<Taking | undefined> {
  const [first] = offer.jobs
  if (!first) return undefined
  return andThen(edge.serves(offer.project, first), (served) => {
    if (isRefusal(served)) return undefined
    return served.byService
      ? { gateway: edge.world.node, takes: [], served: true }
      : takeSome(edge, offer, served)
  })
}

/**
 * Takes jobs for sessions. If none can be taken, the answer is `busy`, so that the shard offers the
 * jobs to another gateway.
 */
function takeSome(edge: Edge, offer: Offer, { losses }: Served): MaybePromise<Taking> {
  const subscription = subscriptionOf(edge, offer.project)
  const order = orderOf(edge, subscription, offer)
  return andThen(order.offer(offer.source, offer.jobs, offer.ahead), ({ taken, left }) => {
    for (const { session } of taken) settle(edge, session)
    if (left.length > 0) remindIdle(edge, subscription, offer, left)
    const takes = taken.map(
      ({ job_id, session: { id, instance } }): Take => ({
        job_id,
        session: id,
        instance,
        ...(losses !== undefined && { losses }),
      }),
    )
    return { gateway: edge.world.node, takes, ...(takes.length === 0 && { busy: true }) }
  })
}
/** Returns the order that merges this offer with the offers of other shards. */
function orderOf(
  edge: Edge,
  subscription: OfferSubscription,
  offer: Offer,
): Order<JobHeader, Promised> {
  const [first] = offer.jobs
  const key = keyOf({ queue: offer.queue, ...(first && { capability: lineOf(first) }) })
  const known = subscription.orders.get(key)
  if (known) return known
  if (subscription.orders.size >= limits.orders)
    for (const [other, { idle }] of subscription.orders) if (idle) subscription.orders.delete(other)
  const { now, later } = edge.world
  const order = new Order<JobHeader, Promised>({
    fits: (job) => subscription.promised.has(job.id) || hasRoom(edge, subscription, offer, job),
    take: (job, again) => takeOne(edge, subscription, offer, job, again),
    now,
    later,
    shards: edge.world.settings.shards,
    since: () => openSince(subscription, offer),
  })
  subscription.orders.set(key, order)
  return order
}
/**
 * Returns the earliest `since` of the interests that match an offer and have claimants, or Infinity
 * when there are none.
 */
const openSince = (subscription: OfferSubscription, offer: Offer): number =>
  Math.min(
    ...listenedFor(subscription, offer).flatMap(({ claimants, since }) =>
      claimants.size > 0 ? [since] : [],
    ),
  )
/** Returns whether a job of an offer may be taken for at least one session. */
function hasRoom(
  { world }: Edge,
  subscription: OfferSubscription,
  offer: Offer,
  job: JobHeader,
): boolean {
  const now = world.now()
  for (const { claimants } of listenedFor(subscription, offer))
    for (const session of claimants)
      if (freeSlots(session, now) > 0 && claims(session, job, offer.queue)) return true
  return false
}
/**
 * Takes a job for the session for which it is reserved. Without a reservation, takes it for the
 * least recently served session, unless `again` is set.
 */
function takeOne(
  edge: Edge,
  subscription: OfferSubscription,
  offer: Offer,
  job: JobHeader,
  again: boolean,
): Promised | undefined {
  const session =
    subscription.promised.get(job.id) ??
    (again
      ? undefined
      : firstFor(edge, subscription, listenedFor(subscription, offer), job, offer.queue))
  if (!session) return undefined
  reserve(edge, subscription, session, job.id)
  return { job_id: job.id, session }
}
/** Sends `work.available` to the sessions without open claims that could take one of the jobs. */
function remindIdle(
  edge: Edge,
  subscription: OfferSubscription,
  offer: Offer,
  left: readonly JobHeader[],
): void {
  for (const { sessions } of listenedFor(subscription, offer)) {
    for (const session of sessions.keys())
      if (
        session.claims.length === 0 &&
        left.some((job) => eligible(job, offer.queue, session.wants))
      )
        remind(edge, session)
  }
}

/**
 * Frees the slot that is reserved for a job.
 * @returns whether there was a reserved slot.
 */
export function unreserve(edge: Edge, session: Session, job_id: string): boolean {
  const cancel = session.reserved.get(job_id)
  if (!cancel) return false
  cancel()
  session.reserved.delete(job_id)
  subscriptionOf(edge, session.project).promised.delete(job_id)
  return true
}

function reserve(
  edge: Edge,
  subscription: OfferSubscription,
  session: Session,
  job_id: string,
): void {
  unreserve(edge, session, job_id)
  subscription.promised.set(job_id, session)
  session.reserved.set(
    job_id,
    edge.world.later(limits.reservation, () => {
      unreserve(edge, session, job_id)
      gained(edge, session)
    }),
  )
}

/**
 * Returns the least recently served of the sessions for which a job may be taken, and marks it as
 * the most recently served.
 */
function firstFor(
  { world }: Edge,
  subscription: OfferSubscription,
  listened: readonly Listened[],
  job: JobHeader,
  queue: string,
): Session | undefined {
  const now = world.now()
  let first: Session | undefined
  for (const { claimants } of listened) {
    for (const session of claimants) {
      if (first && session.served >= first.served) break
      if (freeSlots(session, now) <= 0 || !claims(session, job, queue)) continue
      first = session
      break
    }
  }
  if (!first) return undefined
  first.served = ++subscription.served
  for (const { claimants } of listenedBy(subscription, first))
    if (claimants.delete(first)) claimants.add(first)
  return first
}

const keyOf = ({ queue = '', capability = '' }: Interest): string => `${queue}\u0000${capability}`

function listen(
  edge: Edge,
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

function subscriptionOf(edge: Edge, project: string): OfferSubscription {
  const known = edge.markets.get(project)
  if (known) return known
  const subscription: OfferSubscription = {
    interests: new Map(),
    served: 0,
    promised: new Map(),
    orders: new Map(),
    announced: 0,
    again: false,
  }
  edge.markets.set(project, subscription)
  return subscription
}
