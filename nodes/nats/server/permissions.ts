/**
 * Defines the permissions of each node role's NATS account in one table. Each role gets only the
 * permissions that it needs. `baton nats-permissions` prints the table, docs/operations/security.md
 * describes it, and test/scenarios/cluster/nats-permissions.test.ts runs a cluster with exactly
 * these permissions. Answers need no entry, because `allow_responses` permits one answer to each
 * received request.
 */
import { names, subjects } from '../../../protocol/subjects.ts'
import { createNamespace } from './namespace.ts'

/**
 * The account roles, in the order in which they appear in a client's reply subjects. The last three
 * are not roles of nodes.
 */
export const accountRoles = [
  'gateway',
  'shards',
  'views',
  'executor',
  'hosts',
  'provision',
  'backup',
  'restore',
] as const
export type AccountRole = (typeof accountRoles)[number]

/**
 * Subjects, which may contain wildcards. A subject followed by a space and a name permits only
 * subscriptions in the queue group of that name.
 */
export interface Permissions {
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
}
export interface AccountScope {
  readonly partitions: number
  readonly prefix?: string
  readonly domain?: string
}
/** Operations on a stream, spelled as in the subjects of the JetStream API. */
type Operation =
  | 'INFO'
  | 'CREATE'
  | 'UPDATE'
  | 'DELETE'
  | 'PURGE'
  | 'MSG.GET'
  | 'SNAPSHOT'
  | 'RESTORE'
  | 'LEADER.STEPDOWN'

/** Returns the sorted permissions of an account that is used in all of the given roles. */
export function permissionsOf(roles: readonly AccountRole[], scope: AccountScope): Permissions {
  const space = createNamespace(scope, inboxOf(roles))
  const partitions = Array.from({ length: scope.partitions }, (_, partition) => partition)
  const journals = partitions.map((partition) => names.journal(partition))
  const states = partitions.map((partition) => `KV_${names.state(partition)}`)
  const [config, cluster, definitions, blobs, logs] = [
    `KV_${names.config}`,
    `KV_${names.cluster}`,
    `KV_${names.definitions}`,
    `OBJ_${names.blobs}`,
    names.logs,
  ]
  const every = [...journals, ...states, config, cluster, definitions, blobs, logs]

  const core = (...plain: string[]) => plain.map((subject) => space.subject(subject))
  const stream = (streams: readonly string[], ...operations: Operation[]) =>
    operations.flatMap((operation) =>
      streams.map((name) => `${space.api}.STREAM.${operation}.${space.stream(name)}`),
    )
  const keys = (bucket: string) => space.publishedKey(bucket, '*')
  /** Permissions to read streams through the reader's own consumers, including flow control. */
  const reading = (streams: readonly string[]) => [
    ...streams.flatMap((plain) => {
      const name = space.stream(plain)
      return [
        `${space.api}.CONSUMER.CREATE.${name}.>`,
        `${space.api}.CONSUMER.INFO.${name}.*`,
        `${space.api}.CONSUMER.DELETE.${name}.*`,
        `${space.api}.CONSUMER.MSG.NEXT.${name}.*`,
      ]
    }),
    '$JS.ACK.>',
    '$JS.FC.>',
  ]
  const readingBlobs = [...stream([blobs], 'INFO', 'MSG.GET'), ...reading([blobs])]
  const objects = `$O.${space.bucket(names.blobs)}`
  const writingBlobs = [`${objects}.C.*`, `${objects}.M.*`, ...stream([blobs], 'PURGE')]

  /**
   * Every node checks that all streams exist, reads the installation's records and is a cluster
   * member.
   */
  const node: Permissions = {
    publish: [
      ...stream(every, 'INFO'),
      ...stream([config], 'MSG.GET'),
      ...stream([cluster], 'MSG.GET', 'PURGE', 'LEADER.STEPDOWN'),
      keys(names.cluster),
      ...core('node.*'),
    ],
    subscribe: core('node.*'),
  }
  /**
   * Nodes that act for users send commands to shards, query views, and store files and definitions
   * of agents.
   */
  const edge: Permissions = {
    publish: [
      ...core(
        'shard.*.*',
        'view.*',
        subjects.demandAll,
        'gateway.*',
        'preview.*.*',
        'previewed.*.*',
      ),
      space.publishedKey(names.definitions, '*.*.*'),
      ...stream([definitions], 'MSG.GET', 'PURGE', 'LEADER.STEPDOWN'),
      ...readingBlobs,
      ...writingBlobs,
    ],
    subscribe: core('live.*.*.*', 'moved.*', 'gateway.*', 'preview.*.*', 'previewed.*.*'),
  }
  const table: Readonly<Record<AccountRole, readonly Permissions[]>> = {
    gateway: [
      node,
      edge,
      {
        publish: [
          ...core(subjects.embed, 'hosts.logs.*', 'terminal.*.*', subjects.logsAll, 'logged.*.*'),
          `${space.api}.DIRECT.GET.${space.stream(logs)}`,
        ],
        subscribe: core(`offer.*.*.* ${subjects.offerGroup}`, 'terminal.*.*', 'logged.*.*'),
      },
    ],
    executor: [
      node,
      edge,
      {
        publish: stream([logs], 'PURGE'),
        subscribe: core(
          `${subjects.serveAll} ${subjects.serveGroup}`,
          `${subjects.embed} ${subjects.serveGroup}`,
        ),
      },
    ],
    hosts: [
      node,
      {
        publish: core('shard.*.*'),
        subscribe: core(
          `hosts.provider.* ${subjects.hostGroup}`,
          'hosts.place.*',
          `hosts.logs.* ${subjects.hostGroup}`,
        ),
      },
    ],
    shards: [
      node,
      {
        publish: [
          ...core('journal.*.*', 'shard.*.*', 'view.*', 'live.*.*.*', 'moved.*'),
          ...core('offer.*.*.*', 'serve.*.*.*', 'gateway.*'),
          ...core('hosts.provider.*', 'hosts.place.*'),
          ...partitions.map((partition) => keys(names.state(partition))),
          ...stream(journals, 'MSG.GET', 'LEADER.STEPDOWN'),
          ...stream(states, 'MSG.GET', 'PURGE', 'LEADER.STEPDOWN'),
          // The lease bucket is in memory. A shard node recreates it after a restart of all
          // servers.
          ...stream([cluster], 'CREATE'),
          ...reading(journals),
          ...readingBlobs,
          ...writingBlobs,
        ],
        subscribe: core('shard.*.*', subjects.demandAll),
      },
    ],
    views: [
      node,
      {
        publish: [...core(subjects.embed), ...reading(journals), ...readingBlobs],
        subscribe: core(`view.* ${subjects.viewGroup}`),
      },
    ],
    provision: [
      {
        publish: [
          ...stream(every, 'INFO', 'CREATE', 'UPDATE'),
          ...stream([...states, logs], 'DELETE'),
          ...stream([config], 'MSG.GET'),
          keys(names.config),
        ],
        subscribe: [],
      },
    ],
    backup: [
      {
        publish: [
          ...stream([...journals, config, definitions], 'INFO', 'MSG.GET'),
          ...stream([...journals, definitions, blobs], 'SNAPSHOT'),
          ...[...journals, definitions, blobs].map(
            (name) => `$JS.SNAPSHOT.ACK.${space.stream(name)}.*`,
          ),
          ...reading(journals),
          ...readingBlobs,
        ],
        subscribe: [],
      },
    ],
    restore: [
      {
        publish: [
          `${space.api}.STREAM.NAMES`,
          ...stream(every, 'INFO', 'DELETE'),
          ...stream([config], 'MSG.GET', 'PURGE', 'CREATE', 'UPDATE'),
          keys(names.config),
          ...stream([...journals, definitions, blobs], 'RESTORE'),
          ...[...journals, definitions, blobs].map(
            (name) => `$JS.SNAPSHOT.RESTORE.${space.stream(name)}.*`,
          ),
          ...readingBlobs,
          ...writingBlobs,
        ],
        subscribe: [],
      },
    ],
  }
  const given = accountRoles.filter((role) => roles.includes(role)).flatMap((role) => table[role])
  const distinct = (all: readonly string[]) => [...new Set(all)].sort()
  return {
    // The program and the client library request information about the account.
    publish: distinct([`${space.api}.INFO`, ...given.flatMap(({ publish }) => publish)]),
    subscribe: distinct([`${space.inbox}.>`, ...given.flatMap(({ subscribe }) => subscribe)]),
  }
}

/**
 * Returns the roles in the reply subjects of a client, joined by `-`. `provision` is left out when
 * the client also has other roles.
 */
function inboxOf(roles: readonly AccountRole[]): string {
  const nodes = accountRoles.filter((role) => roles.includes(role) && role !== 'provision')
  return nodes.length === 0 ? 'provision' : nodes.join('-')
}

/**
 * Seconds within which a request may be answered. They exceed the maximum request deadline
 * (`BATON_DEADLINE`).
 */
export const ANSWER_SECONDS = 130

/** Returns the `permissions` block of a user for a nats-server configuration file. */
export function configurationOf({ publish, subscribe }: Permissions): string {
  const list = (all: readonly string[]) =>
    all.map((one) => `      ${JSON.stringify(one)}`).join('\n')
  return `permissions {
  publish {
    allow [
${list(publish)}
    ]
  }
  subscribe {
    allow [
${list(subscribe)}
    ]
  }
  allow_responses { max: 1, expires: "${ANSWER_SECONDS}s" }
}
`
}
