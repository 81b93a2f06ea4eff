/**
 * Examples of operations that cannot be recorded. Most of these operations need a host of
 * environments, a connected worker, a repository host or a receiver of deliveries, which the
 * recorded service does not have. The response of `cluster.get` differs between machines.
 */
import type { RowName } from '../../protocol/api.ts'
import type { Example } from '../../protocol/openapi/examples.ts'
import type { Place } from '../hostile/support/rows.ts'

const at = '2026-01-05T09:00:00.000Z'

export const unrecorded: {
  readonly [N in RowName]?: (place: Place) => Pick<Example, 'status' | 'answer'>
} = {
  'environment.attach': ({ environment }) => ({
    status: 201,
    answer: {
      id: environment,
      name: 'laptop',
      provider: 'worker',
      status: 'ready',
      lifetime: 'explicit',
      retention_policy: 'manual',
      cleanup_status: 'none',
      mode: 'manual',
      current_worker_session_id: 'wst_01KE6QJBR1ZR4F0WY9V0CNE9RQ',
      created_at: at,
      updated_at: at,
    },
  }),
  'environment.worker_logs': ({ environment }) => ({
    status: 200,
    answer: {
      environment_id: environment,
      log_name: 'worker',
      content: 'the worker is ready\n',
      truncated: false,
      fetched_at: at,
    },
  }),
  'environment.git_credentials': () => ({
    status: 200,
    answer: {
      host: 'github.com',
      username: 'x-access-token',
      token: 'example',
      expires_at: at,
      repo_full_name: 'shop/orders',
    },
  }),
  'webhook.resend': ({ webhook }) => ({
    status: 202,
    answer: {
      id: 'whd_01KE6QJBR1ZR4F0WY9V0CNE9RQ',
      webhook_id: webhook,
      event_type: 'order.paid',
      status: 'pending',
      attempts: 0,
      created_at: at,
    },
  }),
  'cluster.get': () => ({
    status: 200,
    answer: {
      generated_at: at,
      node: 'gateway-1',
      version: '0.1.0',
      nodes: [
        {
          id: 'gateway-1',
          roles: ['gateway', 'views'],
          version: '0.1.0',
          host: 'host-a',
          pid: 4711,
          started_at: at,
          seen_ms_ago: 120,
          shards: 0,
          stops: [],
        },
        {
          id: 'shards-1',
          roles: ['shards', 'executor'],
          version: '0.1.0',
          host: 'host-b',
          pid: 812,
          started_at: at,
          seen_ms_ago: 310,
          shards: 1,
          stops: [],
        },
      ],
      shards: [{ partition: 0, shard: 0, owner: 'shards-1', epoch: 3 }],
      partitions: [
        {
          partition: 0,
          first_sequence: 1,
          last_sequence: 12000,
          view_sequence: 12000,
          view_lag: 0,
        },
      ],
      nats: {
        connected: true,
        server: 'nats-1',
        version: '2.12.0',
        cluster: 'baton',
        servers: ['nats-1', 'nats-2'],
        streams: [
          {
            name: 'JOURNAL_0',
            kind: 'journal',
            partition: 0,
            messages: 12000,
            bytes: 8400000,
            replicas: 2,
            leader: 'nats-1',
            followers: [{ server: 'nats-2', current: true, offline: false, lag: 0 }],
          },
        ],
      },
      files: { store: 's3', bucket: 'baton-files' },
      storage: { stops: [], warnings: [] },
      faults: [],
    },
  }),
}
