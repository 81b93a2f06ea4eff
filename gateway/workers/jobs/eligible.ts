/**
 * Determines which jobs a worker may receive, and to which offers its gateway must subscribe. A
 * subject cannot express every filter, so the subscriptions can match more jobs than the filters.
 * Every job is therefore also checked by `isEligible`.
 */
import type { JobHeader } from '../../../protocol/jobs/rows.ts'
import { offerCapability } from '../../../protocol/subjects.ts'
import type { Filters } from '../../../protocol/workers/socket.ts'

/** A filter of offers, which becomes one subscription. An absent field matches any value. */
export interface Interest {
  readonly queue?: string
  readonly capability?: string
}
/** Returns a key that identifies an interest within its project. */
export const keyOf = ({ queue = '', capability = '' }: Interest): string =>
  `${queue}\u0000${capability}`

/** Filters prepared for matching. An absent set means that the worker has listed none. */
export interface PreparedFilters {
  readonly filters: Filters
  readonly queues?: ReadonlySet<string>
  readonly actions?: ReadonlySet<string>
  readonly models?: ReadonlySet<string>
  readonly interests: readonly Interest[]
}
type Matched = Pick<JobHeader, 'kind' | 'executor_kind'> & {
  readonly action_name?: string
  readonly provider?: string
  readonly model?: string
  readonly environment_id?: string
}

/**
 * Maximum number of interests of one filter set. If the filters need more, the interests omit the
 * queues. If there are still too many, a single interest that matches every job is used instead.
 */
const MAX_INTERESTS = 256

const pair = (provider = '', model = ''): string => `${provider}\u0000${model}`

/** Prepares filters for matching. An empty list is equivalent to an absent list. */
export function prepareFilters(filters: Filters): PreparedFilters {
  const { queues = [], action_names = [], models = [] } = filters
  return {
    filters,
    ...(queues.length > 0 && { queues: new Set(queues) }),
    ...(action_names.length > 0 && { actions: new Set(action_names) }),
    ...(models.length > 0 && {
      models: new Set(models.map(({ provider, model }) => pair(provider, model))),
    }),
    interests: interestsOf(filters),
  }
}

/** Maximum number of filter sets in the cache. */
const MAX_CACHED = 1000

/**
 * Creates a variant of `prepareFilters` with a cache: equal filters share one object. The cache is
 * cleared when it is full.
 */
export function createFilterCache(): (filters: Filters) => PreparedFilters {
  const known = new Map<string, PreparedFilters>()
  return (filters) => {
    const key = JSON.stringify([
      filters.queues,
      filters.action_names,
      filters.models,
      filters.environment_id,
      filters.pinned_only,
    ])
    const same = known.get(key)
    if (same) return same
    const made = prepareFilters(filters)
    if (known.size >= MAX_CACHED) known.clear()
    known.set(key, made)
    return made
  }
}

/** Returns the filters of one claim. The lists in the claim replace the registered lists. */
export const claimFilters = (registered: Filters, claim: Filters): Filters => ({
  ...registered,
  ...(claim.queues && { queues: claim.queues }),
  ...(claim.action_names && { action_names: claim.action_names }),
  ...(claim.models && { models: claim.models }),
})

/**
 * Returns whether a worker with these filters may receive a job of a queue.
 * - The job must be for workers (`customer_worker`).
 * - A pinned job matches only workers of its environment. With `pinned_only`, no other job matches.
 * - A generation matches only workers that list its model, whatever its queue.
 * - Any other job matches if its queue is listed or no queues are listed, and if its action is
 *   listed or neither actions nor models are listed.
 */
export function isEligible(job: Matched, queue: string, wants: PreparedFilters): boolean {
  if (job.executor_kind !== 'customer_worker') return false
  const { environment_id, pinned_only } = wants.filters
  if (job.environment_id ? job.environment_id !== environment_id : pinned_only) return false
  if (job.kind === 'llm_generation')
    return wants.models?.has(pair(job.provider, job.model)) ?? false
  if (wants.queues && !wants.queues.has(queue)) return false
  return wants.actions ? wants.actions.has(job.action_name ?? '') : !wants.models
}

function interestsOf({
  queues = [],
  action_names = [],
  models = [],
  environment_id,
  pinned_only,
}: Filters): Interest[] {
  const pinned = environment_id
    ? [...(pinned_only ? [] : [undefined]), environment_id]
    : [undefined]
  const capabilities = (jobs: readonly Omit<Matched, 'executor_kind'>[]): string[] =>
    jobs.flatMap((job) =>
      pinned.map((environment) =>
        offerCapability({ ...job, ...(environment && { environment_id: environment }) }),
      ),
    )
  const actions: (string | undefined)[] =
    action_names.length > 0
      ? capabilities(action_names.map((action_name) => ({ kind: 'action_execution', action_name })))
      : models.length > 0
        ? []
        : [undefined]
  const from: (string | undefined)[] =
    queues.length === 0 || queues.length * actions.length > MAX_INTERESTS
      ? [undefined]
      : [...queues]
  const all = [
    ...from.flatMap((queue) =>
      actions.map((capability) => ({
        ...(queue !== undefined && { queue }),
        ...(capability !== undefined && { capability }),
      })),
    ),
    ...capabilities(
      models.map(({ provider, model }) => ({ kind: 'llm_generation', provider, model })),
    ).map((capability) => ({ capability })),
  ]
  return all.length > MAX_INTERESTS ? [{}] : all
}
