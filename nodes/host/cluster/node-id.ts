/**
 * One process at a time runs under a node id. Every process is an instance with a name of its own; the record of a node names
 * the instance that holds its id.
 *
 * Invariants:
 * I1. An instance listens in its own name before it writes the record, so a claimant that finds it recorded can ask for it.
 * I2. A record is replaced only at the revision at which it was judged, so of several claimants one succeeds.
 * I3. The record of a living instance is not replaced: it answers, or its record changes while a claimant waits. An instance
 *     that was away for longer finds another one recorded, and ends.
 */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { subjects } from '../../../protocol/subjects.ts'
import { StartFault } from '../../process/fault.ts'
import type { Bus, Clock, Registry } from '../ports.ts'
import { GONE, LEASE } from '../timing.ts'

/** A process that runs, or ran, as a node. */
export interface Instance {
  /** Different for every process. */
  readonly instance: string
  /** Where it runs, for people: `process 4711 on host-a`. */
  readonly process: string
}
/** What this module knows of a node's record; `membership.ts` has the rest. Releases before instances leave them out. */
interface Holder extends Partial<Instance> {
  readonly roles: readonly string[]
}
/** Whether an instance answers in its name: `nobody` when the servers know of no listener, `silent` when that cannot be told. */
export type Presence = 'there' | 'nobody' | 'silent'

interface Claim {
  readonly id: string
  readonly roles: readonly string[]
  readonly self: Instance
  readonly registry: Registry
  readonly clock: Clock
  presence(instance: string): Promise<Presence>
}

/** Milliseconds to wait for an instance that is asked whether it is there. */
const PRESENT = 300
/** Other instances that may take the id one after the other while this one waits for each to be dead. */
const MAX_RIVALS = 5

/** The instance that this process is. */
export const createInstance = (): Instance => ({
  instance: randomBytes(8).toString('hex'),
  process: `process ${process.pid} on ${hostname()}`,
})

const subjectOf = (instance: string): string => subjects.node(`instance/${instance}`)

/** Ask for an instance. */
async function presenceOf(bus: Bus, instance: string): Promise<Presence> {
  const answer = await bus.request(subjectOf(instance), {}, PRESENT)
  if (typeof answer === 'object') return 'there'
  return answer === 'no_responders' ? 'nobody' : 'silent'
}

/** The instance that holds the id according to a record; undefined when it left in order, or is `self`. */
export function rivalIn(value: string, self: Instance): Instance | undefined {
  const { instance, process: where = '', roles } = JSON.parse(value) as Holder
  if (instance === undefined || instance === self.instance || roles.length === 0) return undefined
  return { instance, process: where }
}

/** The sentence for a node whose id another instance holds. */
export const idInUse = (id: string, { process: where }: Instance): StartFault =>
  new StartFault(
    `another node is running as ${id} (${where}): give each its own BATON_NODE_ID, or none`,
  )

/**
 * Take a node id for an instance that answers in its name already. An instance that is recorded and does not answer is dead when
 * its record has not changed for `GONE` ms, or for `LEASE` ms when the servers cannot tell that it is gone.
 * @returns the revision of the record, from which the node renews it.
 * @throws StartFault naming the other instance when one lives; what the registry throws otherwise.
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
      await new Promise<void>((over) => clock.later(present === 'nobody' ? GONE : LEASE, over))
      const later = await registry.get(key)
      const holder = later && rivalIn(later.value, self)
      if (holder?.instance === rival.instance && later?.revision !== found?.revision)
        throw idInUse(id, rival)
      if (later?.revision !== found?.revision) continue
    }
    const revision = await registry.put(key, value, found?.revision ?? 0)
    if (revision !== undefined) return revision
    // A put whose answer was lost and that was repeated finds the own record.
    const now = await registry.get(key)
    if (now && (JSON.parse(now.value) as Holder).instance === self.instance) return now.revision
  }
  throw rival
    ? idInUse(id, rival)
    : new StartFault(`the node id ${id} could not be taken: try again`)
}

/** `claimNodeId` for an instance that answers on the bus from now on. Safe to repeat. */
export function claimOverBus(bus: Bus, claim: Omit<Claim, 'presence'>): Promise<number> {
  bus.subscribe(subjectOf(claim.self.instance), () => true)
  return claimNodeId({ ...claim, presence: (instance) => presenceOf(bus, instance) })
}
