/**
 * The row for the state of the installation: its nodes, shards, partitions, streams and storage, as
 * seen by the gateway that answers the request.
 */
import { type Static, Type } from 'typebox'
import { Timestamp } from '../common.ts'
import { query } from '../contract.ts'

const Node = Type.Object({
  id: Type.String(),
  roles: Type.Array(Type.String()),
  version: Type.Optional(Type.String({ description: 'Absent for nodes of older releases' })),
  host: Type.Optional(Type.String()),
  pid: Type.Optional(Type.Integer()),
  started_at: Type.Optional(Timestamp),
  seen_ms_ago: Type.Integer({ description: 'Milliseconds since the last heartbeat of the node' }),
  shards: Type.Integer({ description: 'Number of shards that the node reports as served' }),
  stops: Type.Array(Type.String(), {
    description: 'Reasons for which the node accepts no changes',
  }),
})
const Shard = Type.Object({
  partition: Type.Integer(),
  shard: Type.Integer(),
  owner: Type.Optional(
    Type.String({
      description: 'Id of the node that owns the shard; absent while no live node owns it',
    }),
  ),
  epoch: Type.Integer({ description: 'Number that increases with every change of the owner' }),
})
const Partition = Type.Object({
  partition: Type.Integer(),
  first_sequence: Type.Optional(Type.Integer()),
  last_sequence: Type.Optional(
    Type.Integer({
      description: 'Last sequence of the journal; absent if the journal cannot be reached',
    }),
  ),
  view_sequence: Type.Optional(
    Type.Integer({
      description: 'Last sequence that the view has applied; absent if no view answers',
    }),
  ),
  view_lag: Type.Optional(
    Type.Integer({ description: 'Number of messages that the view has not applied' }),
  ),
})
const Stream = Type.Object({
  name: Type.String(),
  kind: Type.Enum(['journal', 'state', 'config', 'cluster', 'definitions', 'files']),
  partition: Type.Optional(Type.Integer()),
  messages: Type.Integer(),
  bytes: Type.Integer(),
  replicas: Type.Integer(),
  leader: Type.Optional(
    Type.String({ description: 'Name of the leader; absent on a server without a cluster' }),
  ),
  followers: Type.Array(
    Type.Object({
      server: Type.String(),
      current: Type.Boolean(),
      offline: Type.Boolean(),
      lag: Type.Integer({ description: 'Number of messages behind the leader' }),
    }),
  ),
})
export const Cluster = Type.Object({
  generated_at: Timestamp,
  node: Type.String({ description: 'Id of the node that answers' }),
  version: Type.String(),
  nodes: Type.Array(Node),
  shards: Type.Array(Shard),
  partitions: Type.Array(Partition),
  nats: Type.Object({
    connected: Type.Boolean(),
    server: Type.Optional(
      Type.String({ description: 'Name of the server to which the gateway is connected' }),
    ),
    version: Type.Optional(Type.String()),
    cluster: Type.Optional(Type.String()),
    servers: Type.Array(Type.String(), {
      description: 'Names of the servers that have replicas of the streams',
    }),
    streams: Type.Array(Stream),
    account: Type.Optional(
      Type.Object(
        { used_bytes: Type.Integer(), limit_bytes: Type.Integer() },
        { description: 'Storage of the NATS account; absent if it has no limit' },
      ),
    ),
  }),
  files: Type.Object({
    store: Type.Enum(['nats', 's3']),
    bucket: Type.Optional(Type.String()),
    bytes: Type.Optional(
      Type.Integer({
        description: 'Stored bytes including the overhead of chunks; absent for an S3 bucket',
      }),
    ),
  }),
  storage: Type.Object({
    stops: Type.Array(Type.String(), { description: 'Reasons for which changes cannot be stored' }),
    warnings: Type.Array(Type.String()),
  }),
  faults: Type.Array(Type.String(), {
    description: 'Parts that could not be read, with the reason',
  }),
})
/** The state of the installation as one node sees it. */
export type Cluster = Static<typeof Cluster>

export const cluster = {
  'cluster.get': query('GET /cluster', {
    summary: 'Nodes, shards, partitions, NATS streams and storage of the installation',
    answeredBy: 'gateway',
    tag: 'overview',
    permission: 'organization.admin',
    reply: Cluster,
  }),
} as const
