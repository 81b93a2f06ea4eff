/**
 * Examples of operations that need a host of environments, a connected worker or a repository host,
 * which the recorded service does not have.
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
}
