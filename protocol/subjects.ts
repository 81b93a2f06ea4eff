/**
 * The NATS naming scheme: names of subjects, streams and buckets of the service. Tokens such as
 * project ids, kinds and shard numbers have a limited alphabet. `token` encodes text from users.
 */
import { slotOf } from './ids.ts'

/**
 * Returns the 32-bit FNV-1a hash of a text (http://www.isthe.com/chongo/tech/comp/fnv/). It is
 * computed over UTF-16 code units. It is not suitable for security.
 */
const fnv1a = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return hash
}

/** Returns the partition, and therefore the stream, that stores a project or the organization. */
export const partitionOf = (project: string, partitions: number): number =>
  fnv1a(project) % partitions

/**
 * Returns the shard of an actor. Ids contain their slot, which determines the shard. A queue has
 * one actor in every shard, with the id `<shard>.<name>`. Returns undefined when the text is not an
 * id.
 */
export function shardOf(kind: string, id: string, shards: number): number | undefined {
  if (kind === 'queue') {
    const shard = Number.parseInt(id, 10)
    return Number.isInteger(shard) && shard >= 0 && shard < shards ? shard : undefined
  }
  const slot = slotOf(id)
  return slot === undefined ? undefined : slot % shards
}

/** Returns a 32-bit hash of a text, for rendezvous hashing and derived ids. */
export const hashOf = fnv1a

/**
 * Encodes any text as one token of a subject. ASCII letters, digits, `_` and `-` are unchanged, and
 * each UTF-8 byte of any other character becomes `=xx`. The empty text becomes `=`.
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
  /** The stream of a partition, which is the source of truth. */
  journal: (partition: number) => `JOURNAL_${partition}`,
  /** The KV bucket with the snapshots and checkpoints of a partition. It is only a cache. */
  state: (partition: number) => `STATE_${partition}`,
  /**
   * The KV bucket with the constants of the installation: the numbers of partitions and shards, the
   * id of the organization, and the sealing secret.
   */
  config: 'CONFIG',
  /** The KV bucket with the leases of nodes and shards. */
  cluster: 'CLUSTER',
  /** The KV bucket with the definitions that the definition resolver sent. */
  definitions: 'DEFINITIONS',
  /** The stream with the log lines of jobs. It may be lost, and is not part of a backup. */
  logs: 'LOGS',
  /** The object store for files, and for values that are too large for a journal entry. */
  blobs: 'BLOBS',
}

export const subjects = {
  journal: (partition: number, shard: number) => `journal.${partition}.${shard}`,
  journals: (partition: number) => `journal.${partition}.*`,
  /** Commands and owner queries to the owner of a shard. */
  shard: (partition: number, shard: number) => `shard.${partition}.${shard}`,
  /** Committed entries of one actor. The owner publishes them once the append is acknowledged. */
  live: (project: string, kind: string, id: string) => `live.${project}.${kind}.${token(id)}`,
  /** The cursor up to which the feed of a project is committed. */
  moved: (project: string) => `moved.${project}`,
  /**
   * Offers of jobs to workers. Gateways with free slots subscribe in one queue group. `capability`
   * is the result of `offerCapability`.
   */
  offer: (project: string, queue: string, capability: string) =>
    `offer.${project}.${token(queue)}.${capability}`,
  /**
   * The subject to which a gateway subscribes for offers. An undefined queue or capability matches
   * any value.
   */
  offerFilter: (project: string, queue: string | undefined, capability: string | undefined) =>
    `offer.${project}.${queue === undefined ? '*' : token(queue)}.${capability ?? '*'}`,
  offerGroup: 'gateways',
  /**
   * Offers of jobs that the service itself performs. Executors subscribe to all of them in one
   * queue group.
   */
  serve: (project: string, queue: string, capability: string) =>
    `serve.${project}.${token(queue)}.${capability}`,
  serveAll: 'serve.>',
  serveGroup: 'executors',
  /** Announcements by gateways and executors that they have free slots for a project again. */
  demand: (project: string) => `demand.${project}`,
  demandAll: 'demand.*',
  /** Probes and greetings sent to a node. The node answers them while it is alive. */
  node: (node: string) => `node.${token(node)}`,
  /**
   * The mailbox of one gateway or executor for assigned jobs, cancellations and cache
   * invalidations.
   */
  gateway: (node: string) => `gateway.${node}`,
  /**
   * The name of an executor in claims, and the argument of `gateway` for its mailbox. It differs
   * from the name of a gateway on the same node.
   */
  executor: (node: string) => `x-${node}`,
  /** Requests to the views of a partition. One member of a queue group answers each request. */
  view: (partition: number) => `view.${partition}`,
  viewGroup: 'views',
  /**
   * Requests to the view of a partition on one node. The node subscribes in the group of `view`, so
   * that the permissions of `view` suffice.
   */
  viewOf: (partition: number, node: string) => `view.${partition}-${token(node)}`,
  /**
   * Requests to a provider from environments that do not belong to a place. One member of a queue
   * group receives each request.
   */
  hostsOf: (provider: string) => `hosts.provider.${token(provider)}`,
  hostGroup: 'hosts',
  /**
   * Requests from environments that belong to a place. Every host of the place receives each
   * request.
   */
  hostsAt: (place: string) => `hosts.place.${token(place)}`,
  /** Requests for the logs of environments at a place. */
  hostLogs: (place: string) => `hosts.logs.${token(place)}`,
  /** Requests to open a terminal. The gateway of the environment's worker answers. */
  openTerminal: (environment_id: string) => `terminal.open.${token(environment_id)}`,
  /** Terminal messages to the worker. */
  terminalDown: (terminal_id: string) => `terminal.down.${token(terminal_id)}`,
  /** Terminal messages to the person. */
  terminalUp: (terminal_id: string) => `terminal.up.${token(terminal_id)}`,
  /** Requests for embeddings. One member of the group `executors` answers each request. */
  embed: 'embed',
  /** Chunks of a model's output, for the followers of the session or run. */
  preview: (project: string, followed: string) => `preview.${project}.${followed}`,
  /** The log lines of a run, or of a turn of a session. */
  logs: (project: string, target: string) => `logs.${project}.${target}`,
  logsOf: (project: string) => `logs.${project}.*`,
  logsAll: 'logs.*.*',
  /** Announcements that log lines were stored. */
  logged: (project: string, target: string) => `logged.${project}.${target}`,
  /** Requests for the whole preview of a transcript's message. */
  previewed: (project: string, message: string) => `previewed.${project}.${message}`,
}

/**
 * First tokens of all subjects. They cannot be prefixes of installations, because an installation
 * with such a prefix would receive messages of other installations.
 */
export const firstTokens: ReadonlySet<string> = new Set([
  'journal',
  'shard',
  'live',
  'moved',
  'offer',
  'serve',
  'demand',
  'node',
  'gateway',
  'gateways',
  'view',
  'preview',
  'previewed',
  'hosts',
  'terminal',
  'embed',
  'logs',
  'logged',
])

/**
 * Returns the matching key of a job. Jobs with equal keys have the same candidates: the workers
 * with one capability and, unless `workers_only` is set, the service itself.
 */
export const matchingKeyOf = (
  job: Parameters<typeof offerCapability>[0] & { workers_only?: true },
): string => (job.workers_only ? `${offerCapability(job)}!` : offerCapability(job))
/**
 * Returns the capability that a worker needs for a job, as one token of a subject. It encodes the
 * action name, or the provider and the model; the environment to which the job is pinned; and
 * whether only the service itself may perform the job.
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
