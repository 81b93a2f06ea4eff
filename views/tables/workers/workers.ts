/**
 * Stores and lists worker instances, from the events of `worker` actors: which jobs they accept,
 * and whether they are connected. Their leases are counted in the table of jobs.
 */

import type { Action } from '../../../protocol/actions/rows.ts'
import type { Api } from '../../../protocol/api.ts'
import type { Viewer } from '../../../protocol/channels/schema.ts'
import { timestamp } from '../../../protocol/common.ts'
import type { Reply } from '../../../protocol/contract.ts'
import type { Event, PlacedEntry } from '../../../protocol/entry.ts'
import type { Queue } from '../../../protocol/jobs/queue-rows.ts'
import type { Worker } from '../../../protocol/workers/rows.ts'
import type { Registration, WorkerEvent } from '../../../protocol/workers/socket.ts'
import { type IncludeQuery, wantsAddition } from '../../page.ts'
import type { Store } from '../../store.ts'
import { actionsOf } from '../actions/definitions.ts'
import { jobsHeld } from '../jobs/jobs.ts'
import type { Watch, WorkerFilters } from '../runs/waiting.ts'

/** Applies an entry of a `worker` actor, which updates the row of its worker instance. */
export function applyWorker(store: Store, { entry }: PlacedEntry): void {
  const { id } = entry
  const project = store.numberOf(entry.project)
  const set = (assignment: string, ...values: (string | number | null)[]) =>
    store.run(
      `UPDATE workers SET ${assignment} WHERE project = ? AND id = ?`,
      ...values,
      project,
      id,
    )
  for (const any of entry.events as readonly Event[]) {
    const event = any as WorkerEvent
    switch (event.type) {
      case 'worker.registered': {
        const { session, connected_at } = event.registration
        store.run(
          `INSERT INTO workers (
             id, project, session, connected, draining, gone_at, last_seen, registration
           ) VALUES (?, ?, ?, 1, 0, NULL, ?, ?)
           ON CONFLICT (project, id) DO UPDATE SET session = excluded.session, connected = 1, gone_at = NULL,
             last_seen = max(last_seen, excluded.last_seen), registration = excluded.registration`,
          id,
          project,
          session,
          Math.max(connected_at, entry.origin.at),
          JSON.stringify(event.registration),
        )
        break
      }
      case 'worker.attached':
        set('registration = ?', JSON.stringify(event.registration))
        break
      case 'worker.seen':
        set('last_seen = max(last_seen, ?), gone_at = iif(connected, NULL, gone_at)', event.at)
        break
      case 'worker.disconnected':
        set(
          'connected = 0, gone_at = coalesce(gone_at, ?), last_seen = max(last_seen, ?)',
          event.at,
          event.at,
        )
        break
      case 'worker.stale':
        set('gone_at = coalesce(gone_at, ?)', event.at)
        break
      case 'worker.draining':
      case 'worker.drain_requested':
        set('draining = 1')
        break
      case 'worker.drain_cleared':
        set('draining = 0')
        break
    }
  }
}

interface WorkerRow {
  readonly session: string
  readonly connected: number
  readonly draining: number
  readonly gone_at: number | null
  readonly last_seen: number
  readonly registration: string
  readonly leased: number
}

/**
 * Returns the state of a worker. A worker that was draining and then closed its connection without
 * holding a lease has ended. Any other worker that is gone is stale.
 */
const stateOf = ({ gone_at, draining, connected, leased }: WorkerRow): Worker['state'] =>
  gone_at === null
    ? draining
      ? 'draining'
      : 'online'
    : draining && !connected && leased === 0
      ? 'ended'
      : 'stale'

/**
 * A connected worker in the list of queues. If `queues` is empty, it accepts jobs from any
 * queue.
 */
export type ConnectedWorker = Queue['workers'][number] & { readonly queues: readonly string[] }
/** Returns the workers that are connected, in the order of their ids. */
export const connectedWorkers = (store: Store, project: number): ConnectedWorker[] =>
  store
    .all<WorkerRow>(`SELECT ${COLUMNS} FROM workers WHERE project = ? AND gone_at IS NULL`, project)
    .map((row): ConnectedWorker => {
      const { instance, name, queues, concurrency_limit } = JSON.parse(
        row.registration,
      ) as Registration
      return {
        worker_instance_id: instance,
        ...(name !== undefined && { name }),
        state: row.draining ? 'draining' : 'online',
        slots_used: row.leased,
        slots_free: freeSlots(row, concurrency_limit),
        queues: queues ?? [],
      }
    })
    .sort(byInstance)
const freeSlots = ({ gone_at, draining, leased }: WorkerRow, limit: number): number =>
  gone_at !== null || draining ? 0 : Math.max(0, limit - leased)
const byInstance = (
  a: { readonly worker_instance_id: string },
  b: { readonly worker_instance_id: string },
): number => (a.worker_instance_id < b.worker_instance_id ? -1 : 1)
const COLUMNS = `session, connected, draining, gone_at, last_seen, registration,
       (SELECT count(*) FROM jobs WHERE jobs.project = workers.project AND jobs.holder = workers.session) AS leased`

/**
 * Returns connected workers and, for a limited time, workers that have disconnected or become
 * stale.
 * @param now Unix milliseconds.
 * @param lasting milliseconds for which workers that are no longer connected are still listed.
 * @param input `include` lists the additions. The addition `jobs` requires a viewer.
 */
export function workerList(
  store: Store,
  project: number,
  now: number,
  lasting: number,
  input: IncludeQuery & { readonly viewer?: Viewer },
): { items: Worker[] } {
  const { viewer } = input
  const rows = store.all<WorkerRow>(
    `SELECT ${COLUMNS}
     FROM workers WHERE project = ? AND (gone_at IS NULL OR gone_at > ?) ORDER BY id`,
    project,
    now - lasting,
  )
  const items = rows.map((row): Worker => {
    const {
      instance,
      name,
      version,
      concurrency_limit,
      queues,
      action_names,
      models,
      capabilities,
      environment_id,
      principal_id,
      connected_at,
      gateway,
    } = JSON.parse(row.registration) as Registration
    return {
      worker_instance_id: instance,
      ...(name !== undefined && { name }),
      ...(version !== undefined && { version }),
      state: stateOf(row),
      concurrency_limit,
      leased: row.leased,
      queues: [...(queues ?? [])],
      action_names: [...(action_names ?? [])],
      models: [...(models ?? [])],
      capabilities: [...(capabilities ?? [])],
      ...(environment_id !== undefined && { environment_id }),
      principal_id,
      connected_at: timestamp(connected_at),
      last_seen_at: timestamp(row.last_seen),
      ...(wantsAddition(input, 'gateway') && { gateway }),
      ...(wantsAddition(input, 'draining') && { draining: row.draining === 1 }),
      ...(wantsAddition(input, 'slots_free') && { slots_free: freeSlots(row, concurrency_limit) }),
      ...(viewer &&
        wantsAddition(input, 'jobs') && { jobs: jobsHeld(store, project, row.session, viewer) }),
    }
  })
  return { items: items.sort(byInstance) }
}

/**
 * Returns the data that `../runs/waiting.ts` needs for one query. It consists of the project's
 * workers that are connected and not draining, which are read at most once, and of the actions
 * that the service calls itself.
 * @param now Unix milliseconds.
 */
export function watchOf(store: Store, project: number, now: number): Watch {
  let known: WorkerFilters[] | undefined
  const served = (action: string) =>
    actionsOf<Action>(store, project, action).some(({ endpoint_kind }) => endpoint_kind === 'http')
  return {
    now,
    served,
    workers: () =>
      (known ??= store
        .all<{ registration: string }>(
          'SELECT registration FROM workers WHERE project = ? AND gone_at IS NULL AND draining = 0',
          project,
        )
        .map(({ registration }): WorkerFilters => {
          const { queues, action_names, models, environment_id } = JSON.parse(
            registration,
          ) as Registration
          return {
            queues: queues ?? [],
            action_names: action_names ?? [],
            models: models ?? [],
            ...(environment_id !== undefined && { environment_id }),
          }
        })),
  }
}

/**
 * Returns the models of workers that are connected and not draining, with the number of such
 * workers for each model, ordered by provider and model.
 */
export function workerModels({ workers }: Watch): Reply<Api['catalog.worker_models']> {
  const counts = new Map<string, { provider: string; model: string; worker_count: number }>()
  for (const { models } of workers())
    for (const key of new Set(
      models.map(({ provider, model }) => JSON.stringify([provider, model])),
    )) {
      const [provider = '', model = ''] = JSON.parse(key) as string[]
      counts.set(key, { provider, model, worker_count: (counts.get(key)?.worker_count ?? 0) + 1 })
    }
  const items = [...counts.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { provider, model, worker_count }]) => ({
      provider,
      model,
      worker_count,
      route: { mode: 'worker' as const, provider, model },
    }))
  return { items }
}
