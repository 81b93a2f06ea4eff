/**
 * The order of the waiting jobs of a queue. Leased and resting jobs are in state.ts.
 *
 * Higher priority goes first. Within a priority the capabilities take turns, within a capability
 * the fairness keys take turns, and within a key the oldest job goes first. A job is one unit of
 * service, so taking turns is start-time fair queuing (Goyal et al. 1996) with equal weights. While
 * two keys of one capability both have waiting jobs, the numbers of their claimed jobs differ by at
 * most one. Jobs whose capability no worker has do not block other jobs.
 */
import type { JobHeader } from '../../protocol/jobs/rows.ts'
import { add, inOrder, type Order, removeAt } from '../heap.ts'
import {
  alternate,
  emptyRing,
  isEmpty,
  join,
  leave as leaveRing,
  member,
  moveToBack,
  type Ring,
  turns,
} from './ring.ts'
import type { Held, QueueState } from './state.ts'

/** Waiting jobs of one fairness key: a heap, oldest first. */
type Key = string[]
export interface Level {
  readonly priority: number
  readonly capabilities: Ring<Ring<Key>>
}

/**
 * Returns the name of a fairness key in a ring. The prefix is needed because a key may be any
 * string, but a ring accepts neither an empty name nor `__proto__`.
 */
const nameOf = (header: JobHeader): string => `:${header.fairness_key}`
const byAge: Order<QueueState, string> = {
  before: ({ jobs }, a, b) => {
    const [x, y] = [jobs[a] as Held, jobs[b] as Held]
    return x.header.enqueued_at === y.header.enqueued_at
      ? x.arrival < y.arrival
      : x.header.enqueued_at < y.header.enqueued_at
  },
  placed: ({ jobs }, id, index) => {
    ;(jobs[id] as Held).place = index
  },
}

/** Returns the index of the level of a priority, or the index at which to insert a new level. */
function levelAt({ levels }: QueueState, priority: number): number {
  let [low, high] = [0, levels.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((levels[middle] as Level).priority > priority) low = middle + 1
    else high = middle
  }
  return low
}

/** Adds a job to the queue of waiting jobs. */
export function enter(state: QueueState, id: string): void {
  const { header, capability } = state.jobs[id] as Held
  const index = levelAt(state, header.priority)
  let level = state.levels[index]
  if (level?.priority !== header.priority) {
    level = { priority: header.priority, capabilities: emptyRing() }
    state.levels.splice(index, 0, level)
  }
  const keys =
    member(level.capabilities, capability) ??
    join<Ring<Key>>(level.capabilities, capability, emptyRing())
  const name = nameOf(header)
  add(member(keys, name) ?? join<Key>(keys, name, []), id, byAge, state)
}

/**
 * Removes a job from the queue of waiting jobs.
 * @param served whether the job was claimed. If so, its fairness key and its capability move to the
 * back of the round-robin order.
 */
export function leave(state: QueueState, id: string, served: boolean): void {
  const { header, capability, place } = state.jobs[id] as Held
  const at = levelAt(state, header.priority)
  const level = state.levels[at]
  const keys = level && member(level.capabilities, capability)
  const name = nameOf(header)
  const key = keys && member(keys, name)
  if (!key) throw new Error(`queue: ${id} is not in line`)
  removeAt(key, place, byAge, state)
  if (key.length === 0) leaveRing(keys, name)
  else if (served) moveToBack(keys, name)
  if (isEmpty(keys)) leaveRing(level.capabilities, capability)
  else if (served) moveToBack(level.capabilities, capability)
  if (isEmpty(level.capabilities)) state.levels.splice(at, 1)
}

/**
 * Returns the headers of the jobs to offer next, in order, at most `limit` per capability. Costs
 * O(log limit) per returned job.
 */
export function waitingJobs(state: QueueState, limit: number): JobHeader[] {
  if (state.levels.length === 0) return []
  const left = new Map<string, number>()
  const jobs: JobHeader[] = []
  function* upTo(keys: Ring<Key>): Generator<Held, void> {
    for (const id of alternate(turns(keys), (key) => inOrder(key, byAge, state))) {
      const held = state.jobs[id] as Held
      const count = left.get(held.capability) ?? limit
      if (count <= 0) return
      left.set(held.capability, count - 1)
      yield held
    }
  }
  for (const level of state.levels)
    for (const held of alternate(turns(level.capabilities), upTo)) jobs.push(held.header)
  return jobs
}
