/** The registry record of a node, and the data about the record that other nodes keep in memory. */
import type { Member } from './assignment.ts'
import type { AboutNode, Instance } from './node-id.ts'

/**
 * The record of a node. `listens` is set if the node answers presence probes. Nodes of older
 * releases do not, and are not probed. `shards` lists the shards that the node serves, and `stops`
 * the reasons why it accepts no writes. `reads` is the newest envelope format that the node reads;
 * 1 if absent.
 */
export interface NodeRecord extends Member, Partial<Instance> {
  readonly beat: number
  readonly listens?: true
  readonly shards?: readonly string[]
  readonly stops?: readonly string[]
  readonly reads?: number
}

/** A record as another node has read it. */
export interface Observed {
  readonly member: Member
  readonly beat: number
  readonly value: string
  /** When this value was first read, in monotonic milliseconds. */
  readonly changedAt: number
  readonly listens: boolean
  readonly shards: readonly string[]
  readonly stops: readonly string[]
  readonly reads: number
  readonly about: AboutNode | undefined
  /** Whether the last probe found that the node has no subscriber. */
  unsubscribed: boolean
}

/** Parses a record that was read for the first time at `now`, in monotonic milliseconds. */
export function parseNodeRecord(value: string, now: number): Observed {
  const record = JSON.parse(value) as NodeRecord
  const { id, roles, beat, listens = false, shards = [], stops = [], reads = 1, about } = record
  return {
    member: { id, roles },
    beat,
    value,
    changedAt: now,
    listens,
    shards,
    stops,
    reads,
    about,
    unsubscribed: false,
  }
}

/**
 * A live node as its record describes it. `silent_ms` is the time in milliseconds since a change of
 * its record was last observed.
 */
export interface LiveNode extends Member, Pick<Observed, 'shards' | 'stops' | 'about'> {
  readonly silent_ms: number
}
