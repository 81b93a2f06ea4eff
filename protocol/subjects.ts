/**
 * The NATS grammar. Every subject, stream and bucket name of the service is spelled here and nowhere else.
 * Tokens of a subject are project ids, kinds, ids and shard numbers: bounded in alphabet; user text is encoded by `token`.
 */
import { slotOf } from './ids.ts'

/** FNV-1a, 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/): stable placement, not security. */
const fnv1a = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return hash
}

/** The partition, and so the stream, that a project (or the organization) lives in. */
export const partitionOf = (project: string, partitions: number): number =>
  fnv1a(project) % partitions

/**
 * The shard of an actor. Ids carry their slot. A queue exists once in every shard: its id is `<shard>.<name>`.
 * Returns undefined for a text that is no id.
 */
export function shardOf(kind: string, id: string, shards: number): number | undefined {
  if (kind === 'queue') {
    const shard = Number.parseInt(id, 10)
    return Number.isInteger(shard) && shard >= 0 && shard < shards ? shard : undefined
  }
  const slot = slotOf(id)
  return slot === undefined ? undefined : slot % shards
}

/** A number a text hashes to, for rendezvous hashing and for slots of derived ids. */
export const hashOf = fnv1a

/** Any text as one subject token: safe characters stay, others become `=xx`; the empty text is `=`. */
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
  /** Stream of a partition: the truth. */
  journal: (partition: number) => `JOURNAL_${partition}`,
  /** KV bucket of a partition: snapshots and checkpoints, a cache. */
  state: (partition: number) => `STATE_${partition}`,
  /** KV bucket of installation constants: partitions, shards, organization id, sealing secret. */
  config: 'CONFIG',
  /** KV bucket of node and shard leases. */
  cluster: 'CLUSTER',
  /** Object store of values too large for an entry. */
  blobs: 'BLOBS',
}

export const subjects = {
  journal: (partition: number, shard: number) => `journal.${partition}.${shard}`,
  journals: (partition: number) => `journal.${partition}.*`,
  /** Commands and reads for the owner of a shard. */
  shard: (partition: number, shard: number) => `shard.${partition}.${shard}`,
  /** Committed entries of one actor, published by the owner after the acknowledgement. */
  live: (project: string, kind: string, id: string) => `live.${project}.${kind}.${token(id)}`,
  /** How far what the feed of a project tells of has been committed. */
  moved: (project: string) => `moved.${project}`,
  /** Work is offered here; gateways with free slots listen in one queue group. `capability` is an `offerCapability`. */
  offer: (project: string, queue: string, capability: string) =>
    `offer.${project}.${token(queue)}.${capability}`,
  /** What a gateway listens to: every queue and every capability unless named. */
  offerFilter: (project: string, queue: string | undefined, capability: string | undefined) =>
    `offer.${project}.${queue === undefined ? '*' : token(queue)}.${capability ?? '*'}`,
  offerGroup: 'gateways',
  /** Work that no worker gets is offered here: executors listen to all of it in one queue group. */
  serve: (project: string, queue: string, capability: string) =>
    `serve.${project}.${token(queue)}.${capability}`,
  serveAll: 'serve.>',
  serveGroup: 'executors',
  /** A gateway says that it gained slots for a project. */
  demand: (project: string) => `demand.${project}`,
  demandAll: 'demand.*',
  /** Where a node says that it is there. */
  node: (node: string) => `node.${token(node)}`,
  /** The mailbox of one gateway: assigned jobs, cancels, barriers. */
  gateway: (node: string) => `gateway.${node}`,
  /** The name of an executor's mailbox, beside that of a gateway of the same node. */
  executor: (node: string) => `x-${node}`,
  /** Broadcast to all gateways. */
  gateways: 'gateways',
  /** Questions to the views of a partition, answered by one of a queue group. */
  view: (partition: number) => `view.${partition}`,
  viewGroup: 'views',
  /** Pieces of what a model says, for whoever follows the session, or the run. */
  preview: (project: string, followed: string) => `preview.${project}.${followed}`,
  /** Asked for everything that a row has shown so far. */
  previewed: (project: string, message: string) => `previewed.${project}.${message}`,
}

/** Jobs with the same are handed out alike: to workers of one capability, or also by the service itself. */
export const lineOf = (
  job: Parameters<typeof offerCapability>[0] & { workers_only?: true },
): string => (job.workers_only ? `${offerCapability(job)}!` : offerCapability(job))
/** What a worker must be able to do to take a job, as one subject token: an action name or a (provider, model) pair, the environment it is pinned to, and whether it is for a worker at all. */
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
