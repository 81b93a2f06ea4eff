/**
 * The NATS naming scheme. This file alone defines every subject, stream and bucket name of the
 * service. Subject tokens are project ids, kinds, ids and shard numbers, which have a bounded
 * alphabet; `token` encodes user text.
 */
import { slotOf } from './ids.ts'

/** FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/): stable placement, not security. */
const fnv1a = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return hash
}

/** The partition, and therefore the stream, that stores a project (or the organization). */
export const partitionOf = (project: string, partitions: number): number =>
  fnv1a(project) % partitions

/**
 * The shard of an actor. Ids contain their slot. A queue exists once in every shard: its id is
 * `<shard>.<name>`. Returns undefined when the text is not an id.
 */
export function shardOf(kind: string, id: string, shards: number): number | undefined {
  if (kind === 'queue') {
    const shard = Number.parseInt(id, 10)
    return Number.isInteger(shard) && shard >= 0 && shard < shards ? shard : undefined
  }
  const slot = slotOf(id)
  return slot === undefined ? undefined : slot % shards
}

/** A hash of a text, for rendezvous hashing and for slots of derived ids. */
export const hashOf = fnv1a

/**
 * Encodes any text as one subject token: safe characters stay, each byte of the others becomes
 * `=xx`; the empty text is `=`.
 */
export const token = (text: string): string => (SAFE.test(text) ? text : encoded(text))
const SAFE = /^[A-Za-z0-9_-]+$/
const encoded = (text: string): string =>
  text === '' ? '=' : text.replace(/[^A-Za-z0-9_-]/gu, escaped)
const escaped = (char: string): string =>
  char === '.'
    ? '=2e'
    : Array.from(
        new TextEncoder().encode(char),
        (byte) => `=${byte.toString(16).padStart(2, '0')}`,
      ).join('')

export const names = {
  /** Stream of a partition: the source of truth. */
  journal: (partition: number) => `JOURNAL_${partition}`,
  /** KV bucket of a partition: snapshots and checkpoints, which are only a cache. */
  state: (partition: number) => `STATE_${partition}`,
  /** KV bucket of installation constants: partitions, shards, organization id, sealing secret. */
  config: 'CONFIG',
  /** KV bucket of node and shard leases. */
  cluster: 'CLUSTER',
  /** Object store for values too large for a journal entry. */
  blobs: 'BLOBS',
}

export const subjects = {
  journal: (partition: number, shard: number) => `journal.${partition}.${shard}`,
  journals: (partition: number) => `journal.${partition}.*`,
  /** Commands and reads, sent to the owner of a shard. */
  shard: (partition: number, shard: number) => `shard.${partition}.${shard}`,
  /** Committed entries of one actor, published by the owner after the acknowledgement. */
  live: (project: string, kind: string, id: string) => `live.${project}.${kind}.${token(id)}`,
  /** The cursor up to which the events of a project's feed are committed. */
  moved: (project: string) => `moved.${project}`,
  /**
   * Offers of work. Gateways with free slots subscribe in one queue group. `capability` is an
   * `offerCapability`.
   */
  offer: (project: string, queue: string, capability: string) =>
    `offer.${project}.${token(queue)}.${capability}`,
  /** The subscription filter of a gateway: every queue and every capability unless named. */
  offerFilter: (project: string, queue: string | undefined, capability: string | undefined) =>
    `offer.${project}.${queue === undefined ? '*' : token(queue)}.${capability ?? '*'}`,
  offerGroup: 'gateways',
  /**
   * Offers of work that no worker receives. Executors subscribe to all of them in one queue group.
   */
  serve: (project: string, queue: string, capability: string) =>
    `serve.${project}.${token(queue)}.${capability}`,
  serveAll: 'serve.>',
  serveGroup: 'executors',
  /** A gateway announces that it gained slots for a project. */
  demand: (project: string) => `demand.${project}`,
  demandAll: 'demand.*',
  /** Probes and greetings of a node, which it answers while it is alive. */
  node: (node: string) => `node.${token(node)}`,
  /** The mailbox of one gateway: assigned jobs, cancellations, and cache invalidations. */
  gateway: (node: string) => `gateway.${node}`,
  /** The mailbox name of an executor, distinct from that of a gateway on the same node. */
  executor: (node: string) => `x-${node}`,
  /** Broadcast to all gateways. */
  gateways: 'gateways',
  /** Requests to the views of a partition; one member of a queue group answers each. */
  view: (partition: number) => `view.${partition}`,
  viewGroup: 'views',
  /** Chunks of a model's output, for the followers of the session or run. */
  preview: (project: string, followed: string) => `preview.${project}.${followed}`,
  /** Requests for everything that a transcript message has streamed so far. */
  previewed: (project: string, message: string) => `previewed.${project}.${message}`,
}

/**
 * The matching key of a job: jobs with equal keys have the same candidates, either workers of one
 * capability only, or also the service itself.
 */
export const lineOf = (
  job: Parameters<typeof offerCapability>[0] & { workers_only?: true },
): string => (job.workers_only ? `${offerCapability(job)}!` : offerCapability(job))
/**
 * The capability that a worker needs for a job, as one subject token. It encodes the action name or
 * the (provider, model) pair, the environment that the job is pinned to, and whether a worker may
 * take the job at all.
 */
export function offerCapability(job: {
  kind: string
  executor_kind?: string
  action_name?: string
  provider?: string
  model?: string
  environment_id?: string
}): string {
  const what = (job.executor_kind === 'server_worker' ? 's' : '') + task(job)
  return job.environment_id ? `${what}@${token(job.environment_id)}` : what
}
const task = (job: {
  kind: string
  action_name?: string
  provider?: string
  model?: string
}): string =>
  job.kind === 'llm_generation'
    ? `m${token(`${job.provider ?? ''}/${job.model ?? ''}`)}`
    : `a${token(job.action_name ?? '')}`
