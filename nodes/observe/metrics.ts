/**
 * The metrics of a node, for Prometheus. Every node has a separate registry. The number of label
 * values is bounded.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Counters } from '../../gateway/ports.ts'
import type { ShardGauges } from '../host/host.ts'
import type { ResolverMeasure } from '../resolver/resolver.ts'
import { collectProcessMetrics } from './event-loop-lag.ts'
import { createResolverMetrics } from './resolver-metrics.ts'

/** Bucket bounds in seconds for operations that take milliseconds. */
const FAST = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]

/**
 * Collects measurements from all parts of a node, such as the gateway (`Counters`) and the shard
 * host.
 */
export interface Metrics extends Counters, ResolverMeasure {
  /** Records an acknowledged commit: its duration in seconds and its number of entries. */
  commit(seconds: number, commands: number): void
  /** Counts a decided command; `outcome` is `ok` or the code of the refusal. */
  command(kind: string, outcome: string): void
  /** Records an acknowledged append: its duration in seconds and its size in bytes. */
  append(seconds: number, bytes: number): void
  /** Sets the number of shards of a partition that this node owns. */
  shardsOwned(partition: number, shards: number): void
  /** Sets the number of journal messages that a view has not applied yet. */
  viewLag(partition: number, messages: number): void
  /** Counts a failure to apply the journal to a view. */
  viewAlarm(partition: number): void
  /** Counts an append whose outcome is unknown. */
  doubted(): void
  /** Counts a reconnection to NATS. */
  reconnected(): void
  /**
   * Adds a callback that runs before the metrics are read, for values that are looked up instead of
   * counted.
   */
  onLook(look: () => Promise<void> | void): void
  /** Sets the gauges of the shards that this node owns now. Those of other shards are removed. */
  shardGauges(shards: readonly ShardGauges[]): void
  /**
   * Sets the state of the installation as seen by this node: the number of live nodes per role,
   * whether this node is connected to NATS, and whether its own lease is fresh.
   */
  standing(nodes: Readonly<Record<string, number>>, connected: boolean, fresh: boolean): void
  /** Sets the number of bytes in use, and the limit at which writes stop. */
  storage(used: number, limit: number): void
  /** Sets, for each reason, whether this node currently refuses writes for it. */
  writesStopped(reasons: Readonly<Record<string, boolean>>): void
  /** Sets whether a journal that this node verifies has entries that cannot be read. */
  journalDamaged(partition: number, damaged: boolean): void
  /** Counts offered jobs, and how many of them gateways or executors accepted (`taken`). */
  offer(offered: number, taken: number): void
  /** Returns all metrics in the Prometheus text format. */
  text(): Promise<string>
}

/** Creates the metrics of one node. */
export function createMetrics(version: string): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectProcessMetrics(
    registry,
    () => performance.now(),
    (ms, run) => void setInterval(run, ms).unref(),
  )
  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name: `baton_${name}_total`, help, labelNames, registers })
  const gauge = <L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name: `baton_${name}`, help, labelNames, registers })
  const histogram = <L extends string>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: L[]
  ) => new Histogram({ name: `baton_${name}`, help, buckets, labelNames, registers })

  const requests = histogram(
    'request_seconds',
    'Duration of HTTP requests',
    [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 15],
    'operation',
    'status',
  )
  const open = {
    sse: gauge('sse_streams_open', 'Open event streams'),
    worker_sockets: gauge('worker_sockets_open', 'Open worker sockets'),
    followers: gauge(
      'followers_open',
      'Runs and projects that this gateway follows for event streams',
    ),
  }
  const counted = {
    frames_in: counter('worker_frames_in', 'Frames received from workers'),
    frames_out: counter('worker_frames_out', 'Frames sent to workers'),
    events_sent: counter('events_sent', 'Events sent on event streams'),
    stream_fallbacks: counter(
      'stream_fallbacks',
      'Event streams that fell back to replay from the view',
    ),
    rate_limited: counter('rate_limited', 'Requests rejected by a rate limit'),
  }
  const commits = histogram(
    'commit_seconds',
    'Time from the decision of a batch to the acknowledgement of its commit',
    FAST,
  )
  const batches = histogram(
    'commit_commands',
    'Commands per commit',
    [1, 2, 4, 8, 16, 32, 64, 128, 256],
  )
  const appends = histogram('append_seconds', 'Duration of journal appends', FAST)
  const appendedBytes = counter('append_bytes', 'Bytes appended to the journal')
  const commands = counter(
    'commands',
    'Decided commands, by actor kind and outcome',
    'kind',
    'outcome',
  )
  const shards = gauge('shards_owned', 'Shards that this node owns', 'partition')
  const lag = gauge(
    'view_lag_messages',
    'Journal messages that a view has not applied yet',
    'partition',
  )
  const offered = counter('jobs_offered', 'Jobs in offers that a gateway or an executor answered')
  const taken = counter('jobs_taken', 'Offered jobs that were claimed')

  const refusals = counter('refusals', 'Rejected requests, by error code', 'code')
  const alarms = counter('view_alarms', 'Failures to apply the journal to a view', 'partition')
  const doubts = counter('appends_unknown', 'Appends whose outcome was unknown at first')
  const reconnects = counter('nats_reconnects', 'Reconnections to NATS')
  gauge('info', 'Release of this node, in the label; the value is always 1', 'version').set(
    { version },
    1,
  )
  const nodes = gauge(
    'nodes_live',
    'Live nodes of the installation as seen by this node, by role',
    'role',
  )
  const states = {
    connected: gauge('nats_connected', 'Whether this node is connected to NATS (1 or 0)'),
    fresh: gauge(
      'membership_fresh',
      "Whether this node's lease is fresh (1 or 0); its gateway answers 503 while it is 0",
    ),
  }
  const ofShards = {
    mailboxMessages: gauge(
      'shard_mailbox_messages',
      'Commands and reads waiting in the mailbox of a shard',
      'shard',
    ),
    actors: gauge('shard_actors', 'Actor instances of a shard in memory', 'shard'),
    checkpoint_age: gauge(
      'shard_checkpoint_age_seconds',
      'Time since the last complete checkpoint of a shard',
      'shard',
    ),
    jobs_waiting: gauge('jobs_waiting', 'Jobs waiting for a worker', 'shard'),
    jobs_leased: gauge('jobs_leased', 'Jobs leased to workers', 'shard'),
  }
  const storage = {
    used: gauge('storage_used_bytes', 'Bytes used on the storage of the journal'),
    limit: gauge('storage_limit_bytes', 'Limit in bytes at which writes stop'),
  }
  const damage = gauge(
    'journal_damaged',
    'Whether the daily verification found unreadable entries in a journal (1 or 0)',
    'partition',
  )
  const stopped = gauge(
    'writes_stopped',
    'Whether writes are rejected (1 or 0), by reason',
    'reason',
  )
  const looks: (() => Promise<void> | void)[] = []

  const known = new Map<string, Map<string, Counter.Internal>>()
  /**
   * Returns the counter for a kind and an outcome. Counters are cached, because the library
   * otherwise sorts and joins the labels on every increment.
   */
  const decided = (kind: string, outcome: string): Counter.Internal => {
    const outcomes = known.get(kind) ?? new Map<string, Counter.Internal>()
    known.set(kind, outcomes)
    const found = outcomes.get(outcome) ?? commands.labels(kind, outcome)
    outcomes.set(outcome, found)
    return found
  }

  return {
    ...createResolverMetrics(registry),
    request: (operation, status, seconds) => requests.observe({ operation, status }, seconds),
    open: (what, change) => open[what].inc(change),
    inc: (name) => counted[name].inc(),
    commit: (seconds, size) => {
      commits.observe(seconds)
      batches.observe(size)
    },
    command: (kind, outcome) => decided(kind, outcome).inc(),
    append: (seconds, bytes) => {
      appends.observe(seconds)
      appendedBytes.inc(bytes)
    },
    shardsOwned: (partition, number) => shards.set({ partition }, number),
    viewLag: (partition, messages) => lag.set({ partition }, messages),
    offer: (number, accepted) => {
      offered.inc(number)
      taken.inc(accepted)
    },
    refused: (code) => refusals.inc({ code }),
    viewAlarm: (partition) => alarms.inc({ partition }),
    doubted: () => doubts.inc(),
    reconnected: () => reconnects.inc(),
    onLook: (look) => void looks.push(look),
    shardGauges: (all) => {
      for (const field of Object.keys(ofShards) as (keyof typeof ofShards)[]) {
        ofShards[field].reset()
        for (const one of all) ofShards[field].set({ shard: one.name }, one[field])
      }
    },
    standing: (live, connected, fresh) => {
      for (const [role, number] of Object.entries(live)) nodes.set({ role }, number)
      states.connected.set(connected ? 1 : 0)
      states.fresh.set(fresh ? 1 : 0)
    },
    storage: (used, limit) => {
      storage.used.set(used)
      storage.limit.set(limit)
    },
    journalDamaged: (partition, damaged) =>
      damage.set({ partition: String(partition) }, damaged ? 1 : 0),
    writesStopped: (reasons) => {
      for (const [reason, now] of Object.entries(reasons)) stopped.set({ reason }, now ? 1 : 0)
    },
    text: async () => {
      // If a lookup fails, its gauge keeps the previous value.
      await Promise.allSettled(looks.map(async (look) => look()))
      return registry.metrics()
    },
  }
}
