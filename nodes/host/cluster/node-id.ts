/**
 * Ensures that at most one process at a time runs under a node id. Every process is an instance
 * with a unique name. The record of a node contains the instance that has claimed the node id.
 *
 * Invariants:
 * I1. An instance subscribes under its own name before it writes the record, so a claimant that
 *     finds the instance in the record can probe it.
 * I2. A record is replaced only if its revision has not changed since it was checked, so only one
 *     of several claimants succeeds.
 * I3. The record of a live instance is not replaced: the instance answers, or its record changes
 *     while a claimant waits. An instance that was away for longer than the wait finds another
 *     instance in the record, and ends.
 */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { subjects } from '../../../protocol/subjects.ts'
import { StartFault } from '../../process/fault.ts'
import type { Bus, Clock, Registry } from '../ports.ts'
import { DEAD_WITHOUT_SUBSCRIBER_MS, LEASE_DURATION_MS, PROBE_TIMEOUT_MS } from '../timing.ts'

/** A process that runs, or ran, as a node. */
export interface Instance {
  /** Unique for every process. */
  readonly instance: string
  /** Where the process runs, in human-readable form: `process 4711 on host-a`. */
  readonly process: string
  /** Absent in records of older releases. */
  readonly about?: AboutNode
}
/** Facts about a process for administrators. `started_at` is in Unix milliseconds. */
export interface AboutNode {
  readonly version: string
  readonly host: string
  readonly pid: number
  readonly started_at: number
}
/**
 * The part of a node's record that this module reads; `node-record.ts` defines the rest. Older
 * releases omit the fields of the instance.
 */
interface Holder extends Partial<Instance> {
  readonly roles: readonly string[]
}
/**
 * Whether an instance answers: `nobody` when the NATS servers report no subscriber, `silent` when
 * that cannot be determined.
 */
export type Presence = 'there' | 'nobody' | 'silent'

interface Claim {
  readonly id: string
  readonly roles: readonly string[]
  readonly self: Instance
  readonly registry: Registry
  readonly clock: Clock
  presence(instance: string): Promise<Presence>
}

/**
 * Number of attempts to claim the id. An attempt fails when another instance has claimed the id in
 * the meantime.
 */
const MAX_RIVALS = 5

/** Creates the instance that represents this process. */
export const createInstance = (
  about?: Pick<AboutNode, 'version' | 'started_at'>,
): Instance & { readonly about?: AboutNode } => ({
  instance: randomBytes(8).toString('hex'),
  process: `process ${process.pid} on ${hostname()}`,
  ...(about && { about: { ...about, host: hostname(), pid: process.pid } }),
})

const subjectOf = (instance: string): string => subjects.node(`instance/${instance}`)

async function presenceOf(bus: Bus, instance: string): Promise<Presence> {
  const answer = await bus.request(subjectOf(instance), {}, PROBE_TIMEOUT_MS)
  if (typeof answer === 'object') return 'there'
  return answer === 'no_responders' ? 'nobody' : 'silent'
}

/**
 * Returns the instance that has claimed the id according to a record. Returns undefined when this
 * instance is `self` or has left gracefully, or when the record contains no instance.
 */
export function rivalIn(value: string, self: Instance): Instance | undefined {
  const { instance, process: where = '', roles } = JSON.parse(value) as Holder
  if (instance === undefined || instance === self.instance || roles.length === 0) return undefined
  return { instance, process: where }
}

/** Returns the error for a node whose id another instance has claimed. */
export const idInUse = (id: string, { process: where }: Instance): StartFault =>
  new StartFault(
    `another node is running with the id ${id} (${where}): set a different BATON_NODE_ID for each node, or none`,
  )

/**
 * Claims a node id for an instance that already answers under its own name. A recorded instance
 * that does not answer is dead when its record has not changed for `LEASE_DURATION_MS`. If the NATS
 * servers report no subscriber for the instance, `DEAD_WITHOUT_SUBSCRIBER_MS` suffices.
 * @returns the revision of the record, which the node's next renewal expects.
 * @throws StartFault when another instance is alive under the id, or when other instances claimed
 *   the id first in every attempt.
 * @throws Error when the registry cannot be reached.
 */
export async function claimNodeId(claim: Claim): Promise<number> {
  const { id, roles, self, registry, clock, presence } = claim
  const key = `node.${id}`
  const value = JSON.stringify({ id, roles, beat: 0, ...self })
  let rival: Instance | undefined
  for (let rivals = 0; rivals < MAX_RIVALS; rivals++) {
    const found = await registry.get(key)
    rival = found && rivalIn(found.value, self)
    if (rival) {
      const present = await presence(rival.instance)
      if (present === 'there') throw idInUse(id, rival)
      const limit = present === 'nobody' ? DEAD_WITHOUT_SUBSCRIBER_MS : LEASE_DURATION_MS
      await new Promise<void>((over) => clock.later(limit, over))
      const later = await registry.get(key)
      const holder = later && rivalIn(later.value, self)
      if (holder?.instance === rival.instance && later?.revision !== found?.revision)
        throw idInUse(id, rival)
      if (later?.revision !== found?.revision) continue
    }
    const revision = await registry.put(key, value, found?.revision ?? 0)
    if (revision !== undefined) return revision
    // A put is sent again if its answer was lost. If the first copy was stored, the second fails
    // although the record now belongs to this instance.
    const now = await registry.get(key)
    if (now && (JSON.parse(now.value) as Holder).instance === self.instance) return now.revision
  }
  throw rival
    ? idInUse(id, rival)
    : new StartFault(`the node id ${id} could not be claimed: try again`)
}

/**
 * Subscribes the instance under its own name, then calls `claimNodeId`. May be called again after
 * an error.
 */
export function claimOverBus(bus: Bus, claim: Omit<Claim, 'presence'>): Promise<number> {
  bus.subscribe(subjectOf(claim.self.instance), () => true)
  return claimNodeId({ ...claim, presence: (instance) => presenceOf(bus, instance) })
}

/** A node id that this process has claimed. */
export interface Claimed {
  readonly self: Instance
  /** Revision of the record that the claim wrote. */
  readonly revision: number
  /** Called when another process has claimed the id. */
  superseded(fault: Error): void
}
