/**
 * Reads the state of the installation for its administrators: nodes, shards, partitions, streams
 * and storage. All calls within `FRESH_MS` share one reading, so that pages that refresh often
 * cause little load. A part that does not answer is left out and listed in `faults`.
 */
import type { StorageReport } from '../../gateway/ports.ts'
import type { Cluster } from '../../protocol/cluster/rows.ts'
import { timestamp } from '../../protocol/common.ts'
import { names, subjects } from '../../protocol/subjects.ts'
import type { Membership } from '../host/cluster/membership.ts'
import type { Bus, Clock, Journal, Registry } from '../host/ports.ts'
import { accountUse } from '../nats/server/account.ts'
import type { Nats } from '../nats/server/connect.ts'

/** The parts of a node from which the state is read. `readiness` reads the same parts. */
export interface ClusterParts {
  readonly nats: Nats
  readonly membership: Membership
  readonly cluster: Registry
  readonly journal: Journal
  readonly bus: Bus
  readonly partitions: number
  readonly shards: number
}
interface Asked extends ClusterParts {
  readonly node: string
  readonly version: string
  readonly clock: Clock
  /** Name of the S3 bucket that stores files. If absent, the object store of NATS stores them. */
  readonly bucket?: string | undefined
  storage(): StorageReport
}
type Streams = Cluster['nats']['streams']
type StreamKind = Streams[number]['kind']

/** Milliseconds for which a reading is reused. */
const FRESH_MS = 2000
/** Timeout of the query for the position of a view, in milliseconds. */
const VIEW_TIMEOUT_MS = 1000

/** Creates a function that returns the state of the installation. */
export function clusterReader(asked: Asked): () => Promise<Cluster> {
  const { clock } = asked
  let reading: { readonly at: number; readonly state: Promise<Cluster> } | undefined
  return () => {
    const at = clock.elapsed()
    if (!reading || at - reading.at >= FRESH_MS) reading = { at, state: read(asked) }
    return reading.state
  }
}

async function read(asked: Asked): Promise<Cluster> {
  const { node, version, clock, nats, bucket } = asked
  const faults: string[] = []
  const attempt = async <T>(what: string, run: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await run()
    } catch (error) {
      faults.push(`${what}: ${error instanceof Error ? error.message : String(error)}`)
      return undefined
    }
  }
  const each = <T>(run: (partition: number) => Promise<T>) =>
    Promise.all(Array.from({ length: asked.partitions }, (_, partition) => run(partition)))
  const [shards, partitions, streams, account] = await Promise.all([
    attempt('shards', () => shardsOf(asked)),
    each((partition) => partitionState(asked, partition, attempt)),
    Promise.all(
      streamNames(asked.partitions).map(({ name, ...about }) =>
        attempt(`stream ${name}`, () => streamOf(nats, name, about)),
      ),
    ).then((all) => all.filter((stream) => stream !== undefined)),
    attempt('account', () => accountUse(nats)),
  ])
  const { info } = nats.connection
  const files = streams.find(({ kind }) => kind === 'files')
  const servers = streams.flatMap(({ leader, followers }) => [
    ...(leader === undefined ? [] : [leader]),
    ...followers.map(({ server }) => server),
  ])
  return {
    generated_at: timestamp(clock.now()),
    node,
    version,
    nodes: nodesOf(asked),
    shards: shards ?? [],
    partitions,
    nats: {
      connected: nats.connected(),
      ...(info && { server: info.server_name, version: info.version }),
      ...(info?.cluster !== undefined && { cluster: info.cluster }),
      servers: [...new Set([...servers, ...(info ? [info.server_name] : [])])].sort(),
      streams,
      ...(account && { account: { used_bytes: account.used, limit_bytes: account.limit } }),
    },
    files:
      bucket === undefined
        ? { store: 'nats', ...(files && { bytes: files.bytes }) }
        : { store: 's3', bucket },
    storage: {
      stops: [...asked.storage().stops],
      warnings: [...asked.storage().warnings],
    },
    faults: faults.sort(),
  }
}

const nodesOf = ({ membership }: Asked): Cluster['nodes'] =>
  membership
    .nodes()
    .map(({ id, roles, about, silent_ms, shards, stops }) => ({
      id,
      roles: [...roles],
      ...(about && {
        version: about.version,
        host: about.host,
        pid: about.pid,
        started_at: timestamp(about.started_at),
      }),
      seen_ms_ago: Math.round(silent_ms),
      shards: shards.length,
      stops: [...stops],
    }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))

/** Returns all shards. A shard whose recorded owner is not alive has no owner. */
async function shardsOf(asked: Asked): Promise<Cluster['shards']> {
  const live = new Set(asked.membership.members('shards').map(({ id }) => id))
  const records = new Map(
    (await asked.cluster.list('shard.')).map(({ key, value }) => [
      key.slice('shard.'.length),
      JSON.parse(value) as { readonly node: string; readonly epoch: number },
    ]),
  )
  return Array.from({ length: asked.partitions * asked.shards }, (_, i) => {
    const partition = Math.floor(i / asked.shards)
    const shard = i % asked.shards
    const { node = '', epoch = 0 } = records.get(`${partition}.${shard}`) ?? {}
    return { partition, shard, ...(live.has(node) && { owner: node }), epoch }
  })
}

type Attempt = <T>(what: string, run: () => Promise<T>) => Promise<T | undefined>
/**
 * Reads the position of the view before that of the journal, so the reported lag is never too low.
 */
async function partitionState(
  { journal, bus }: Asked,
  partition: number,
  attempt: Attempt,
): Promise<Cluster['partitions'][number]> {
  const view_sequence = await attempt(`view ${partition}`, async () => {
    const question = { name: 'view_position', project: '', input: {}, fresh: 0 }
    const found = await bus.request(subjects.view(partition), question, VIEW_TIMEOUT_MS)
    const { sequence } = (typeof found === 'object' ? found.answer : {}) as { sequence?: unknown }
    if (typeof sequence !== 'number') throw new Error('no answer')
    return sequence
  })
  const position = await attempt(`journal ${partition}`, () => journal.position(partition))
  return {
    partition,
    ...(position && { first_sequence: position.first, last_sequence: position.last }),
    ...(view_sequence !== undefined && { view_sequence }),
    ...(position &&
      view_sequence !== undefined && { view_lag: Math.max(0, position.last - view_sequence) }),
  }
}

interface AboutStream {
  readonly kind: StreamKind
  readonly partition?: number
}
const streamNames = (partitions: number): (AboutStream & { readonly name: string })[] => [
  ...Array.from({ length: partitions }, (_, partition) => [
    { name: names.journal(partition), kind: 'journal' as const, partition },
    { name: `KV_${names.state(partition)}`, kind: 'state' as const, partition },
  ]).flat(),
  { name: `KV_${names.config}`, kind: 'config' },
  { name: `KV_${names.cluster}`, kind: 'cluster' },
  { name: `KV_${names.definitions}`, kind: 'definitions' },
  { name: `OBJ_${names.blobs}`, kind: 'files' },
]
async function streamOf(nats: Nats, name: string, about: AboutStream): Promise<Streams[number]> {
  const { state, config, cluster } = await nats.manager.streams.info(nats.space.stream(name))
  return {
    name,
    ...about,
    messages: state.messages,
    bytes: state.bytes,
    replicas: config.num_replicas,
    ...(cluster?.leader !== undefined && { leader: cluster.leader }),
    followers: (cluster?.replicas ?? []).map((replica) => ({
      server: replica.name,
      current: replica.current,
      offline: replica.offline === true,
      lag: replica.lag ?? 0,
    })),
  }
}
