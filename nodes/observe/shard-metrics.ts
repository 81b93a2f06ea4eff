/** The metrics of the shards that a node owns: commits, commands, appends, actors and jobs. */
import type { Counter } from 'prom-client'
import type { ShardGauges } from '../host/host.ts'
import { FAST, type Instruments } from './instruments.ts'

/** Collects measurements from the shard host. */
export interface ShardMeasure {
  /** Records an acknowledged commit: its duration in seconds and its number of entries. */
  commit(seconds: number, commands: number): void
  /** Counts a decided command; `outcome` is `ok` or the code of the refusal. */
  command(kind: string, outcome: string): void
  /** Records an acknowledged append: its duration in seconds and its size in bytes. */
  append(seconds: number, bytes: number): void
  /** Counts an append whose outcome is unknown. */
  doubted(): void
  /** Sets the number of shards of a partition that this node owns. */
  shardsOwned(partition: number, shards: number): void
  /** Sets the gauges of the shards that this node owns now. Those of other shards are removed. */
  shardGauges(shards: readonly ShardGauges[]): void
  /** Counts offered jobs, and how many of them gateways or executors accepted (`taken`). */
  offer(offered: number, taken: number): void
}

export function createShardMetrics(instruments: Instruments): ShardMeasure {
  const { counter, gauge, histogram } = instruments
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
  const doubts = counter('appends_unknown', 'Appends whose outcome was unknown at first')
  const decided = createCommandCounter(instruments)
  const shards = gauge('shards_owned', 'Shards that this node owns', 'partition')
  const offered = counter('jobs_offered', 'Jobs in offers that a gateway or an executor answered')
  const taken = counter('jobs_taken', 'Offered jobs that were claimed')
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
  return {
    commit: (seconds, size) => {
      commits.observe(seconds)
      batches.observe(size)
    },
    command: (kind, outcome) => decided(kind, outcome).inc(),
    append: (seconds, bytes) => {
      appends.observe(seconds)
      appendedBytes.inc(bytes)
    },
    doubted: () => doubts.inc(),
    shardsOwned: (partition, number) => shards.set({ partition }, number),
    shardGauges: (all) => {
      for (const field of Object.keys(ofShards) as (keyof typeof ofShards)[]) {
        ofShards[field].reset()
        for (const one of all) ofShards[field].set({ shard: one.name }, one[field])
      }
    },
    offer: (number, accepted) => {
      offered.inc(number)
      taken.inc(accepted)
    },
  }
}

/**
 * Creates the counter of decided commands. Returns the counter for a kind and an outcome. Such
 * counters are cached, because the library otherwise sorts and joins the labels on every increment.
 */
function createCommandCounter({
  counter,
}: Instruments): (kind: string, outcome: string) => Counter.Internal {
  const commands = counter(
    'commands',
    'Decided commands, by actor kind and outcome',
    'kind',
    'outcome',
  )
  const known = new Map<string, Map<string, Counter.Internal>>()
  return (kind, outcome) => {
    const outcomes = known.get(kind) ?? new Map<string, Counter.Internal>()
    known.set(kind, outcomes)
    const found = outcomes.get(outcome) ?? commands.labels(kind, outcome)
    outcomes.set(outcome, found)
    return found
  }
}
